# SPDX-License-Identifier: BSD-3-Clause
"""What a VM's writes make of the fields of a packet's headers.

A write replaces bits of the packet by those of a variable. For each field that it touches, the
values of successive packets are found: a counter stays one where its bits stay together, and
everything else becomes a list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence as Items
from dataclasses import dataclass

from linerate.traffic.trex import described
from linerate.traffic.trex.packet.headers import KINDS, Field, Header
from linerate.traffic.trex.packet.variables import (
    MOST_LISTED,
    Counter,
    Known,
    Listed,
    Random,
    Sequence,
)
from linerate.traffic.trex.refusal import RefusalError

_LAYER = re.compile(r"([A-Za-z0-9_]+)(?::(\d+))?(?:\.([A-Za-z0-9_]+))?")


def offset_of(given: int | str, headers: Items[Header], line: int | None) -> int:
    """A byte's offset in the packet: a number, or `LAYER.FIELD`, `LAYER:N.FIELD` or `LAYER`."""
    if isinstance(given, int):
        return given
    found = _LAYER.fullmatch(given)
    if found is None:
        raise RefusalError(f"offset {given!r} is neither a number nor LAYER.FIELD", line)
    layer, number, name = found[1], int(found[2] or 0), found[3]
    kinds = [each for each in KINDS if layer in each.layers]
    if not kinds:
        raise RefusalError(f"offset {given!r}: give bytes of this layer by their number", line)
    there = [each for each in headers if each.kind in kinds]
    if number >= len(there):
        raise RefusalError(f"offset {given!r}: the packet has no such layer", line)
    header = there[number]
    if name is None:
        return header.at
    if name not in header.kind.names:
        known = ", ".join(header.kind.names)
        raise RefusalError(f"offset {given!r}: {layer} has no field {name}; it has {known}", line)
    return header.at + header.kind.names[name]


@dataclass(frozen=True)
class Placed:
    """A write in its place: `size` bytes from `at` on, of which it changes the bits of `mask`.

    The value is the variable's plus `add`, shifted left by `shift`.
    """

    name: str
    at: int
    size: int
    mask: int
    add: int
    shift: int
    big: bool
    line: int | None

    def value(self, variable: int) -> int:
        whole = (1 << 8 * self.size) - 1
        # As TRex does it: cut to the write's size, and then in 32 bits, or 64.
        found = ((variable & whole) + self.add) & (whole | 0xFFFFFFFF)
        found = found << self.shift if self.shift >= 0 else found >> -self.shift
        found &= whole
        if not self.big:
            found = int.from_bytes(found.to_bytes(self.size, "big"), "little")
        return found & self.mask


def placed(
    vm: Items[described.Instruction], known: dict[str, Known], headers: Items[Header], length: int
) -> list[Placed]:
    """All writes of a VM, for a packet of so many bytes; raises `RefusalError`."""
    found = []
    for each in vm:
        if not isinstance(each, (described.Write, described.MaskedWrite)):
            continue
        variable = known.get(each.name)
        if variable is None:
            names = ", ".join(known) or "none"
            raise RefusalError(f"writes {each.name!r}, which is no variable ({names})", each.line)
        at = offset_of(each.offset, headers, each.line) + each.fixup
        masked = isinstance(each, described.MaskedWrite)
        size = each.size if isinstance(each, described.MaskedWrite) else variable.size
        whole = (1 << 8 * size) - 1
        mask = each.mask & whole if isinstance(each, described.MaskedWrite) else whole
        if not each.big and masked and size > 1:
            mask = int.from_bytes(mask.to_bytes(size, "big"), "little")
        if not 0 <= at <= length - size:
            raise RefusalError(
                f"writes {each.name!r} to bytes {at} to {at + size - 1} of a packet of {length}",
                each.line,
            )
        shift = each.shift if isinstance(each, described.MaskedWrite) else 0
        found.append(Placed(each.name, at, size, mask, each.add, shift, each.big, each.line))
    return found


@dataclass(frozen=True)
class _Touch:
    """A write seen from a field: bits `mask` of the field are the write's, moved right by `cut`
    (left where that is below 0).
    """

    write: Placed
    mask: int
    cut: int

    def of(self, value: int) -> int:
        return (value >> self.cut if self.cut >= 0 else value << -self.cut) & self.mask


def _touches(writes: Items[Placed], first_bit: int, bits: int) -> list[_Touch]:
    found = []
    for write in writes:
        # How far the last bit of the write is behind the field's.
        cut = 8 * (write.at + write.size) - (first_bit + bits)
        mask = write.mask >> cut if cut >= 0 else write.mask << -cut
        mask &= (1 << bits) - 1
        if mask:
            found.append(_Touch(write, mask, cut))
    return found


@dataclass(frozen=True)
class Changed:
    """A field that changes. `drawn`: random values became a list."""

    values: Sequence
    writes: tuple[Placed, ...]
    drawn: bool


class Fields:
    """What becomes of a packet's fields."""

    def __init__(self, writes: Items[Placed], known: dict[str, Known], packet: bytes) -> None:
        self._writes = writes
        self._known = known
        self._packet = packet
        self._bits = int.from_bytes(packet, "big")

    def constant(self, header: Header, field: Field) -> int:
        """As the packet has it."""
        behind = 8 * len(self._packet) - (8 * header.at + field.offset + field.bits)
        return self._bits >> behind & (1 << field.bits) - 1

    def changed(self, header: Header, field: Field) -> Changed | None:
        """The field's values, if any write changes it; raises `RefusalError`."""
        touches = _touches(self._writes, 8 * header.at + field.offset, field.bits)
        if not touches:
            return None
        writes = tuple(each.write for each in touches)
        base = self.constant(header, field)
        # A later write of the same bits hides an earlier one.
        last = touches[-1]
        if len(touches) == 1 or not any(each.mask & ~last.mask for each in touches):
            simple = self._simple(last, base, field)
            if simple is not None:
                return Changed(simple, (last.write,), False)
        return self._listed(touches, base, field, writes)

    def _simple(self, touch: _Touch, base: int, field: Field) -> Sequence | None:
        """A counter or random numbers, where the bits stay as they are."""
        values = self._known[touch.write.name].values
        if isinstance(values, Listed) or not touch.write.big or touch.write.shift < 0:
            return None
        rest = base & ~touch.mask
        low, high = (each + touch.write.add << touch.write.shift for each in values.extremes)
        lowest = touch.mask & -touch.mask
        together = (touch.mask // lowest + 1) & (touch.mask // lowest) == 0
        fits = low >= 0 and high < 1 << 8 * touch.write.size
        if not together or not fits:
            return None
        moved_low, moved_high = touch.of(low), touch.of(high)
        unit = 1 << touch.cut if touch.cut >= 0 else 1
        if isinstance(values, Random):
            exact = touch.write.shift == 0 and lowest == 1 and touch.cut <= 0
            exact = exact and touch.cut == 0 and moved_low == low and moved_high == high
            if not exact or not field.random:
                return None
            return Random(rest | low, rest | high, values.seed, values.count)
        step = values.step << touch.write.shift
        back = moved_high << touch.cut if touch.cut >= 0 else moved_high >> -touch.cut
        if back != high or step % unit or low % unit:
            return None
        start = values.start + touch.write.add << touch.write.shift
        step = step // unit if touch.cut >= 0 else step << -touch.cut
        # Nothing is carried into bits that are not the write's.
        if touch.of(start) % lowest or step % lowest:
            return None
        return Counter(rest | touch.of(start), step, values.count)

    def _listed(
        self, touches: list[_Touch], base: int, field: Field, writes: tuple[Placed, ...]
    ) -> Changed:
        variables = [self._known[each.write.name].values for each in touches]
        drawn = any(isinstance(each, Random) for each in variables)
        lists: dict[str, list[int]] = {}
        period = 1
        for touch, values in zip(touches, variables, strict=True):
            name = touch.write.name
            if not isinstance(values, Random) and values.count > MOST_LISTED:
                raise RefusalError(
                    f"variable {name!r} has {values.count} values, and what it writes to "
                    f"{field.name} is no counter of that field: a list has at most {MOST_LISTED}",
                    touch.write.line,
                )
            lists[name] = lists.get(name) or values.listed()
            period = math.lcm(period, len(lists[name]))
        if period > MOST_LISTED:
            raise RefusalError(
                f"variables {' and '.join(lists)} write to {field.name}, and it takes {period} "
                f"packets until they meet again: a list has at most {MOST_LISTED}",
                touches[-1].write.line,
            )
        found = []
        for number in range(period):
            value = base
            for touch in touches:
                mine = lists[touch.write.name]
                written = touch.write.value(mine[number % len(mine)])
                value = value & ~touch.mask | touch.of(written)
            found.append(value)
        return Changed(Listed(tuple(found)), writes, drawn)

    def beside_headers(self, headers: Items[Header], end: int) -> Placed | None:
        """A write that changes bytes which are no field's, in packets of `end` bytes."""
        covered = 0
        for header in headers:
            for field in header.fields():
                behind = 8 * end - (8 * header.at + field.offset + field.bits)
                covered |= (1 << field.bits) - 1 << behind
        for write in self._writes:
            bits = write.mask << 8 * (end - write.at - write.size)
            if bits & ~covered:
                return write
        return None
