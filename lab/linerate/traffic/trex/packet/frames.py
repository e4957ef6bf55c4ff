# SPDX-License-Identifier: BSD-3-Clause
"""A stream's packet and its VM as `packet`, `size` and `payload` of an OTG flow.

Every byte is as TRex sends it, but for what is said in notes. Lengths and checksums are left to the
generator where that comes to the same, or where the profile has them made.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linerate.traffic.trex import described
from linerate.traffic.trex.packet import checksums, sizes
from linerate.traffic.trex.packet.headers import (
    ETHER_TYPES,
    PROTOCOLS,
    UDP_PORTS,
    Field,
    Format,
    dissect,
)
from linerate.traffic.trex.packet.sizes import Sizes
from linerate.traffic.trex.packet.variables import Counter, Listed, Random, Sequence, sequences
from linerate.traffic.trex.packet.writes import Fields, offset_of, placed
from linerate.traffic.trex.refusal import RefusalError

Json = dict[str, Any]
_CHECKSUMS = ("header_checksum", "rest_checksum", "pseudo_checksum")
_IP = ("ipv4", "ipv6")


@dataclass(frozen=True)
class Frames:
    """`payload` is absent where it is zeros."""

    packet: list[Json]
    payload: Json | None
    sizes: Sizes
    notes: list[str]


def frames(
    packet: bytes, vm: list[described.Instruction], seed: int | None, *, marked: bool
) -> Frames:
    """The frames of a stream; `marked`: its metrics take the last bytes of the payload.

    Raises `RefusalError`.
    """
    return _Frames(packet, vm, seed, marked=marked).made()


class _Frames:
    def __init__(
        self, packet: bytes, vm: list[described.Instruction], seed: int | None, *, marked: bool
    ) -> None:
        self._packet, self._vm, self._marked = packet, vm, marked
        self._headers = dissect(packet)
        if not self._headers:
            raise RefusalError(f"a packet of {len(packet)} bytes has no Ethernet header")
        self._known, self._notes = sequences(vm, seed)
        self._fields = Fields(
            placed(vm, self._known, self._headers, len(packet)), self._known, packet
        )
        self._end = self._headers[-1].at + self._headers[-1].length
        self._changed = {
            (number, field.name): changed
            for number, header in enumerate(self._headers)
            for field in header.fields()
            if (changed := self._fields.changed(header, field))
        }
        self._trim = next((each for each in vm if isinstance(each, described.Trim)), None)
        self._good = self._fixed_checksums()
        # The frame as its lengths count it: with what fills it up, unless these have to be right.
        self._filled = packet.ljust(sizes.SHORTEST, b"\0")
        made_anew = marked or any(self._good[each] for each in range(len(self._headers))
                                  if self._headers[each].kind.name not in _IP)  # fmt: skip
        self._counted = packet if made_anew else self._filled

    def made(self) -> Frames:
        self._refuse_writes_beside()
        found_sizes = self._sizes()
        self._notes += found_sizes.notes
        packet = [self._header(number) for number in range(len(self._headers))]
        if self._has_drawn_lists():
            self._notes.append(
                "random values are a list of 4096 draws where the model has no random field"
            )
        if self._counted is self._packet and len(self._packet) < sizes.SHORTEST:
            self._notes.append(
                f"the packet of {len(self._packet)} bytes is filled up to {sizes.SHORTEST}, and "
                "its lengths count that"
            )
        return Frames(packet, self._payload(), found_sizes, list(dict.fromkeys(self._notes)))

    def _has_drawn_lists(self) -> bool:
        return any(
            changed.drawn and not (field.rule == "length" and self._follows_size(number, field))
            for number, header in enumerate(self._headers)
            for field in header.fields()
            if (changed := self._changed.get((number, field.name)))
        )

    def _refuse_writes_beside(self) -> None:
        write = self._fields.beside_headers(self._headers, len(self._packet))
        if write is not None:
            stack = "/".join(each.kind.name for each in self._headers)
            raise RefusalError(
                f"writes {write.name!r} to bytes {write.at} to {write.at + write.size - 1}, which "
                f"are not all fields of the model's headers ({stack}, {self._end} bytes): the "
                "payload of a flow is the same in all frames",
                write.line,
            )

    def _sizes(self) -> Sizes:
        if self._trim is None:
            return sizes.fixed(len(self._packet))
        name, line = self._trim.name, self._trim.line
        if name not in self._known:
            raise RefusalError(f"trims to {name!r}, which is no variable", line)
        found = sizes.trimmed(self._known[name], name, len(self._packet), line)
        if found.smallest - sizes.FCS < self._end:
            raise RefusalError(
                f"trims to {found.smallest - sizes.FCS} bytes: the headers have {self._end}", line
            )
        for (number, _), changed in self._changed.items():
            field = next(each for each in self._headers[number].fields()
                         if (number, each.name) in self._changed
                         and self._changed[number, each.name] is changed)  # fmt: skip
            follows = field.rule == "length" and self._follows_size(number, field)
            if any(each.name == name for each in changed.writes) and not follows:
                if found.in_step:
                    continue
                raise RefusalError(
                    f"{field.name} of {self._headers[number].kind.name} follows the size of the "
                    f"frame (variable {name!r}) otherwise than as its length, and sizes of OTG "
                    "are random or in an order of their own",
                    changed.writes[-1].line,
                )
        return found

    def _follows_size(self, number: int, field: Field) -> bool:
        """Whether a length is written from the trim's variable, and so is always right."""
        changed = self._changed.get((number, field.name))
        if self._trim is None or changed is None or len(changed.writes) != 1:
            return False
        (write,) = changed.writes
        header = self._headers[number]
        return (
            write.name == self._trim.name
            and write.big
            and write.shift == 0
            and (write.size, 8 * (write.at - header.at)) == (2, field.offset)
            and write.mask == 0xFFFF
            and write.add == -(header.at + field.after)
        )

    def _fixed_checksums(self) -> dict[int, bool]:
        """The headers whose checksum the profile has made for each packet."""
        found = dict.fromkeys(range(len(self._headers)), False)
        for each in self._vm:
            offsets: list[int] = []
            if isinstance(each, described.FixIpv4):
                offsets = [offset_of(each.offset, self._headers, each.line)]
            elif isinstance(each, described.FixChecksums):
                offsets = [offset_of(each.l3, self._headers, each.line)]
                if not each.only_ip:
                    offsets.append(offset_of(each.l4, self._headers, each.line))
            for offset in offsets:
                number = next(
                    (at for at, header in enumerate(self._headers) if header.at == offset), None
                )
                if number is None:
                    raise RefusalError(
                        f"makes a checksum at byte {offset}, where no header begins", each.line
                    )
                found[number] = True
        return found

    def _header(self, number: int) -> Json:
        header = self._headers[number]
        found: Json = {}
        for field in header.fields():
            if field.rule in _CHECKSUMS:
                value = self._checksum(number, field)
            else:
                value = self._value(number, field)
            if value is not None:
                _put(found, field.name, value)
        if header.kind.name in ("icmp", "icmpv6"):
            found = {"choice": "echo", "echo": found.get("echo", {})}
        return {"choice": header.kind.name, header.kind.name: found}

    def _value(self, number: int, field: Field) -> Json | None:
        """What a field has; None: what it has anyway."""
        header = self._headers[number]
        changed = self._changed.get((number, field.name))
        if field.rule == "length" and self._follows_size(number, field):
            return None
        if changed is not None:
            return pattern(field, changed.values)
        value = self._fields.constant(header, field)
        anyway = field.default
        if field.rule == "length" and self._trim is None:
            anyway = len(self._counted) - header.at - field.after
        elif field.rule == "length":
            anyway = -1
        elif field.rule == "words":
            anyway = header.length // 4
        elif field.rule == "type":
            anyway = self._type_of_next(number, field)
        return None if value == anyway else pattern(field, Counter(value, 0, 1))

    def _type_of_next(self, number: int, field: Field) -> int:
        following = self._headers[number + 1 : number + 2]
        numbers = (
            UDP_PORTS
            if self._headers[number].kind.name == "udp"
            else PROTOCOLS
            if self._headers[number].kind.name in _IP
            else ETHER_TYPES
        )
        return numbers.get(following[0].kind.name, field.default) if following else field.default

    def _checksum(self, number: int, field: Field) -> Json | None:
        header = self._headers[number]
        changed = self._changed.get((number, field.name))
        if changed is not None:
            raise RefusalError(
                f"writes the checksum of {header.kind.name}: those of OTG are good, bad, or one "
                "number for all frames",
                changed.writes[-1].line,
            )
        value = self._fields.constant(header, field)
        good = None  # the model's default
        custom = {"choice": "custom", "custom": value}
        if self._good[number]:
            return good
        if value == 0 and header.kind.name == "udp":
            return custom
        of_header = field.rule == "header_checksum"
        if self._marked and not of_header:
            return good
        if value != checksums.right(self._counted, self._headers, number, field):
            return custom
        if self._covers_changes(number, of_header=of_header):
            self._notes.append(
                f"all packets have the first packet's {header.kind.name} checksum, as TRex sends "
                "them: the profile does not recompute it"
            )
            return custom
        return good

    def _covers_changes(self, number: int, *, of_header: bool) -> bool:
        """Whether a field changes that this header's checksum covers."""
        if of_header:
            trimmed = self._trim is not None
            lengths = (each for each in self._headers[number].fields() if each.rule == "length")
            if trimmed and any(self._follows_size(number, each) for each in lengths):
                return True
            return any(where == number for where, _ in self._changed)
        before = [at for at in range(number) if self._headers[at].kind.name in _IP]
        addresses = {(before[-1], "src"), (before[-1], "dst")} if before else set()
        covered = any(at >= number for at, _ in self._changed)
        return covered or bool(addresses & set(self._changed)) or self._trim is not None

    def _payload(self) -> Json | None:
        rest = self._packet[self._end :]
        if not any(rest):
            return None
        filled = self._end + len(rest) < sizes.SHORTEST
        if len(set(rest)) == 1 and not filled:
            return {"choice": "fixed", "fixed": {"pattern": f"{rest[0]:02x}", "repeat": True}}
        return {"choice": "fixed", "fixed": {"pattern": rest.hex(), "repeat": False}}


def _put(found: Json, path: str, value: Json) -> None:
    *outer, name = path.split(".")
    for each in outer:
        found = found.setdefault(each, {"choice": name} if each == "priority" else {})
    found[name] = value


def pattern(field: Field, values: Sequence) -> Json:
    """A field's values as the model has them."""

    def text(value: int) -> int | str:
        return _TEXT[field.format](value)

    if isinstance(values, Random):
        limits = {"min": text(values.min), "max": text(values.max)}
        return {
            "choice": "random",
            "random": {**limits, "seed": values.seed, "count": values.count},
        }
    if isinstance(values, Listed):
        if len(set(values.values)) > 1:
            return {"choice": "values", "values": [text(each) for each in values.values]}
        return {"choice": "value", "value": text(values.values[0])}
    if values.count == 1 or values.step == 0:
        return {"choice": "value", "value": text(values.start)}
    way = "increment" if values.step > 0 else "decrement"
    counter = {
        "start": text(values.start), "step": text(abs(values.step)), "count": values.count,
    }  # fmt: skip
    return {"choice": way, way: counter}


def _number(value: int) -> int:
    return value


def _mac(value: int) -> str:
    return value.to_bytes(6, "big").hex(":")


def _ipv4(value: int) -> str:
    return str(ipaddress.IPv4Address(value))


def _ipv6(value: int) -> str:
    return str(ipaddress.IPv6Address(value))


_TEXT: dict[Format, Callable[[int], int | str]] = {
    "number": _number,
    "mac": _mac,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
}
