# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: PLR0917 - arguments are in the order of the API that profiles are written for
"""TRex's field engine, as profiles write it: instructions that change fields from packet to packet.

Names, arguments and defaults are those of TRex's documented API. Instructions are only described
here; `linerate.traffic.trex.packet.variables` says what they mean.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from linerate.traffic.trex.profile.errors import ProfileError
from linerate.traffic.trex.profile.lines import Lines

Offset = int | str
SIZES = (1, 2, 4, 8)
OPERATIONS = ("inc", "dec", "random")


def number(value: Any, what: str) -> int:
    """A whole number, or an IPv4 address as one."""
    if isinstance(value, str):
        try:
            return int(ipaddress.IPv4Address(value))
        except ValueError:
            raise ProfileError(
                f"{what} {value!r} is neither a number nor an IPv4 address"
            ) from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ProfileError(f"{what} {value!r} is no whole number")
    return int(value)


class Instruction:
    """`kind` and its arguments, and where in the profile it was made."""

    kind = ""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.line = Lines.here()

    def description(self) -> dict[str, Any]:
        return {"kind": self.kind, "line": self.line, **self.arguments}


class STLVmFlowVar(Instruction):
    kind = "variable"

    def __init__(
        self,
        name: str,
        min_value: Any = None,
        max_value: Any = None,
        value_list: Any = None,
        init_value: Any = None,
        size: int = 4,
        step: int = 1,
        op: str = "inc",
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        del split_to_cores
        if size not in SIZES:
            raise ProfileError(f"size {size} of variable {name!r}: not one of 1, 2, 4, 8")
        if op not in OPERATIONS:
            raise ProfileError(f"op {op!r} of variable {name!r}: not one of inc, dec, random")
        values = None
        if value_list is not None:
            values = [number(each, f"value of variable {name!r}:") for each in value_list]
            least = most = 0
        else:
            least = 0 if min_value is None else number(min_value, f"min_value of {name!r}:")
            largest = (1 << 8 * size) - 1
            most = largest if max_value is None else number(max_value, f"max_value of {name!r}:")
        first = None if init_value is None else number(init_value, f"init_value of {name!r}:")
        super().__init__(
            name=str(name), size=size, op=op, min=least, max=most, values=values, init=first,
            step=number(step, f"step of {name!r}:"), next=next_var,
        )  # fmt: skip


class STLVmFlowVarRepeatableRandom(Instruction):
    kind = "repeatable_random"

    def __init__(
        self,
        name: str,
        size: int = 4,
        limit: int = 100,
        seed: int | None = None,
        min_value: Any = 0,
        max_value: Any = None,
    ) -> None:
        if size not in SIZES:
            raise ProfileError(f"size {size} of variable {name!r}: not one of 1, 2, 4, 8")
        largest = (1 << 8 * size) - 1
        super().__init__(
            name=str(name), size=size, limit=number(limit, f"limit of {name!r}:"),
            seed=None if seed is None else number(seed, f"seed of {name!r}:"),
            min=0 if min_value is None else number(min_value, f"min_value of {name!r}:"),
            max=largest if max_value is None else number(max_value, f"max_value of {name!r}:"),
        )  # fmt: skip


class STLVmTupleGen(Instruction):
    kind = "tuple"

    def __init__(
        self,
        name: str,
        ip_min: Any = "0.0.0.1",
        ip_max: Any = "0.0.0.10",
        port_min: int = 1025,
        port_max: int = 65535,
        limit_flows: int = 100_000,
        flags: int = 0,
    ) -> None:
        super().__init__(
            name=str(name), ip_min=number(ip_min, f"ip_min of {name!r}:"),
            ip_max=number(ip_max, f"ip_max of {name!r}:"),
            port_min=number(port_min, f"port_min of {name!r}:"),
            port_max=number(port_max, f"port_max of {name!r}:"),
            limit=number(limit_flows, f"limit_flows of {name!r}:"),
            flags=number(flags, f"flags of {name!r}:"),
        )  # fmt: skip


class STLVmWrFlowVar(Instruction):
    kind = "write"

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Offset,
        offset_fixup: int = 0,
        add_val: int = 0,
        is_big: bool = True,
    ) -> None:
        super().__init__(
            name=str(fv_name), offset=pkt_offset, fixup=offset_fixup, add=add_val, big=bool(is_big)
        )


class STLVmWrMaskFlowVar(Instruction):
    kind = "write_mask"

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_value: int = 0,
        offset_fixup: int = 0,
        is_big: bool = True,
    ) -> None:
        if pkt_cast_size not in (1, 2, 4):
            raise ProfileError(f"pkt_cast_size {pkt_cast_size}: not one of 1, 2, 4")
        super().__init__(
            name=str(fv_name), offset=pkt_offset, fixup=offset_fixup, add=add_value,
            big=bool(is_big), size=pkt_cast_size, mask=mask, shift=shift,
        )  # fmt: skip


class STLVmFixIpv4(Instruction):
    kind = "fix_ipv4"

    def __init__(self, offset: Offset) -> None:
        super().__init__(offset=offset)


class CTRexVmInsFixHwCs:
    """Which checksum behind the IP header is made."""

    L4_TYPE_UDP, L4_TYPE_TCP, L4_TYPE_IP = 11, 13, 17


class STLVmFixChecksumHw(Instruction):
    kind = "fix_checksums"

    def __init__(self, l3_offset: Offset, l4_offset: Offset, l4_type: int) -> None:
        super().__init__(
            l3=l3_offset, l4=l4_offset, only_ip=l4_type == CTRexVmInsFixHwCs.L4_TYPE_IP
        )


class STLVmTrimPktSize(Instruction):
    kind = "trim"

    def __init__(self, fv_name: str) -> None:
        super().__init__(name=str(fv_name))


class STLVmFixIcmpv6(Instruction):
    kind = "fix_checksums"

    def __init__(self, l3_offset: Offset, l4_offset: Offset) -> None:
        super().__init__(l3=l3_offset, l4=l4_offset, only_ip=False)


class STLScVmRaw:
    """A list of instructions. How TRex splits or keeps them makes no difference to the packets."""

    def __init__(
        self,
        list_of_commands: Any = None,
        split_by_field: Any = None,
        cache_size: int | None = None,
    ) -> None:
        del split_by_field, cache_size
        self.commands: list[Any] = list(list_of_commands or [])

    def add_cmd(self, command: Any) -> None:
        self.commands.append(command)


class STLVM(STLScVmRaw):
    """The same, by methods."""

    def var(
        self,
        name: str,
        min_value: Any = None,
        max_value: Any = None,
        size: int = 4,
        step: int = 1,
        op: str = "inc",
        value_list: Any = None,
        split_to_cores: bool = True,
        init_value: Any = None,
        next_var: str | None = None,
    ) -> None:
        self.add_cmd(
            STLVmFlowVar(
                name, min_value, max_value, value_list, init_value, size, step, op,
                split_to_cores, next_var,
            )
        )  # fmt: skip

    def repeatable_random_var(
        self,
        fv_name: str,
        size: int = 4,
        limit: int = 100,
        seed: int | None = None,
        min_value: Any = 0,
        max_value: Any = None,
    ) -> None:
        self.add_cmd(STLVmFlowVarRepeatableRandom(fv_name, size, limit, seed, min_value, max_value))

    def tuple_var(
        self,
        name: str,
        ip_min: Any = "0.0.0.1",
        ip_max: Any = "0.0.0.10",
        port_min: int = 1025,
        port_max: int = 65535,
        limit_flows: int = 100_000,
        flags: int = 0,
    ) -> None:
        self.add_cmd(STLVmTupleGen(name, ip_min, ip_max, port_min, port_max, limit_flows, flags))

    def write(
        self,
        fv_name: str,
        pkt_offset: Offset,
        offset_fixup: int = 0,
        add_val: int = 0,
        is_big: bool = True,
    ) -> None:
        self.add_cmd(STLVmWrFlowVar(fv_name, pkt_offset, offset_fixup, add_val, is_big))

    def write_mask(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_val: int = 0,
        offset_fixup: int = 0,
        is_big: bool = True,
    ) -> None:
        self.add_cmd(
            STLVmWrMaskFlowVar(
                fv_name, pkt_offset, pkt_cast_size, mask, shift, add_val, offset_fixup, is_big
            )
        )

    def fix_chksum(self, offset: Offset = "IP") -> None:
        self.add_cmd(STLVmFixIpv4(offset))

    def fix_chksum_hw(
        self, l3_offset: Offset = "IP", l4_offset: Offset = "UDP", l4_type: int = 11
    ) -> None:
        self.add_cmd(STLVmFixChecksumHw(l3_offset, l4_offset, l4_type))

    def fix_chksum_icmpv6(self, l3_offset: Offset = "IPv6", l4_offset: Offset = "ICMPv6") -> None:
        self.add_cmd(STLVmFixIcmpv6(l3_offset, l4_offset))

    def trim(self, fv_name: str) -> None:
        self.add_cmd(STLVmTrimPktSize(fv_name))

    def set_cached(self, cache_size: int) -> None:
        """How many packets TRex keeps made: no difference to them."""


def instructions(vm: Any) -> list[dict[str, Any]]:
    """Those of a packet builder's `vm`."""
    if vm is None:
        return []
    commands = vm.commands if isinstance(vm, STLScVmRaw) else vm
    if not isinstance(commands, (list, tuple)):
        raise ProfileError(f"vm is a {type(vm).__name__}, not STLVM, STLScVmRaw or a list")
    for each in commands:
        if not isinstance(each, Instruction):
            raise ProfileError(f"vm has a {type(each).__name__}, which is no instruction")
    return [each.description() for each in commands]
