# SPDX-License-Identifier: BSD-3-Clause
"""A VM's variables as sequences: what they hold in successive packets.

TRex's rules, by its manual: a variable begins with its first value, is written, and then steps; a
counter begins anew when the next step would leave its range. A tuple generator gives each packet
the next address, and after the last address the next port.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from linerate.traffic.trex import described
from linerate.traffic.trex.refusal import RefusalError

# Values of a list in a configuration, and what is drawn where only a list can hold random values.
MOST_LISTED = 65_536
DRAWN = 4096
# The longest round that the model has.
LONGEST_ROUND = (1 << 32) - 1


@dataclass(frozen=True)
class Counter:
    """`start`, `start + step`, ...: `count` values, then from the start again."""

    start: int
    step: int
    count: int

    @property
    def extremes(self) -> tuple[int, int]:
        last = self.start + self.step * (self.count - 1)
        return min(self.start, last), max(self.start, last)

    def listed(self) -> list[int]:
        return [self.start + self.step * each for each in range(self.count)]


@dataclass(frozen=True)
class Listed:
    """These in turn."""

    values: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    def listed(self) -> list[int]:
        return list(self.values)


@dataclass(frozen=True)
class Random:
    """Random numbers from `min` to `max`, the same again after `count`."""

    min: int
    max: int
    seed: int
    count: int

    @property
    def extremes(self) -> tuple[int, int]:
        return self.min, self.max

    def listed(self) -> list[int]:
        """As the generator draws them, where the configuration has a list instead."""
        return list(_split_mix(self.seed, self.min, self.max, min(self.count, DRAWN)))


Sequence = Counter | Listed | Random


@dataclass(frozen=True)
class Known:
    """A variable of a stream: how many bytes it has, and its values."""

    size: int
    values: Sequence
    line: int | None


def sequences(
    vm: Iterable[described.Instruction], seed: int | None
) -> tuple[dict[str, Known], list[str]]:
    """All variables by name, and notes about those that are not quite the same.

    `seed`: the stream's, for its random numbers. Raises `RefusalError`.
    """
    found: dict[str, Known] = {}
    notes: list[str] = []
    for each in vm:
        if isinstance(each, described.TupleGenerator):
            address, port, note = _tuple(each)
            found[f"{each.name}.ip"] = Known(4, address, each.line)
            found[f"{each.name}.port"] = Known(2, port, each.line)
            notes += [note] if note else []
        elif isinstance(each, described.RepeatableRandom):
            _check_range(each.name, each.size, each.min, each.max, each.line)
            if not each.limit:
                raise RefusalError(f"limit of variable {each.name!r} is 0", each.line)
            own = _seed(each.seed if each.seed is not None else seed, each.name)
            values = Random(each.min, each.max, own, each.limit)
            found[each.name] = Known(each.size, values, each.line)
        elif isinstance(each, described.Variable):
            if each.next is not None:
                raise RefusalError(
                    f"variable {each.name!r} steps only when {each.next!r} begins anew (next_var): "
                    "fields of OTG step with every packet",
                    each.line,
                )
            found[each.name] = Known(each.size, _variable(each, seed), each.line)
    return found, notes


def _check_range(name: str, size: int, least: int, most: int, line: int | None) -> None:
    if not 0 <= least <= most < 1 << 8 * size:
        raise RefusalError(
            f"variable {name!r} goes from {least} to {most}, which is no range of {size} bytes",
            line,
        )


def _seed(seed: int | None, name: str) -> int:
    """One for each variable: two with the same would hold the same."""
    return zlib.crc32(f"{seed or 0} {name}".encode())


def _variable(given: described.Variable, seed: int | None) -> Sequence:
    if given.values is not None:
        return _of_list(given, given.values, seed)
    _check_range(given.name, given.size, given.min, given.max, given.line)
    if given.op == "random":
        return Random(given.min, given.max, _seed(seed, given.name), LONGEST_ROUND)
    if given.step < 0:
        raise RefusalError(f"step {given.step} of variable {given.name!r}: below 0", given.line)
    up = given.op == "inc"
    first = given.init if given.init is not None else given.min if up else given.max
    if not given.min <= first <= given.max:
        raise RefusalError(
            f"init_value {first} of variable {given.name!r} is not in its range", given.line
        )
    if given.step == 0:
        return Counter(first, 0, 1)
    whole = (given.max - given.min) // given.step + 1
    start, step = (given.min, given.step) if up else (given.max, -given.step)
    if first == start:
        return Counter(start, step, min(whole, LONGEST_ROUND))
    # It begins in the middle: the round is one from there to the end and from the start to there.
    if (first - start) % given.step == 0 and whole <= MOST_LISTED:
        values = [start + step * at for at in range(whole)]
        at = (first - start) // step
        return Listed(tuple(values[at:] + values[:at]))
    raise RefusalError(
        f"init_value {first} of variable {given.name!r} is in the middle of a round of {whole} "
        f"values: OTG begins rounds at their start, and lists have at most {MOST_LISTED}",
        given.line,
    )


def _of_list(given: described.Variable, values: list[int], seed: int | None) -> Sequence:
    for each in values:
        _check_range(given.name, given.size, each, each, given.line)
    if given.init is not None and given.init != values[0 if given.op != "dec" else -1]:
        raise RefusalError(
            f"init_value of variable {given.name!r}: a list begins at its end", given.line
        )
    if given.op == "random":
        drawn = _split_mix(_seed(seed, given.name), 0, len(values) - 1, DRAWN)
        return Listed(tuple(values[each] for each in drawn))
    if given.step < 1 or (len(values) % given.step and given.step > 1):
        raise RefusalError(
            f"step {given.step} of variable {given.name!r} does not divide its list", given.line
        )
    ordered = values[::-1] if given.op == "dec" else values
    return Listed(tuple(ordered[:: given.step]))


def _tuple(given: described.TupleGenerator) -> tuple[Sequence, Sequence, str | None]:
    """Addresses, ports, and a note."""
    if given.ip_min > given.ip_max or given.port_min > given.port_max:
        raise RefusalError(f"tuple generator {given.name!r}: a range is empty", given.line)
    addresses = given.ip_max - given.ip_min + 1
    ports = given.port_max - given.port_min + 1
    flows = min(given.limit or addresses * ports, addresses * ports)
    if flows <= addresses:
        return (
            Counter(given.ip_min, 1, flows), Counter(given.port_min, 0, 1), None,
        )  # fmt: skip
    if addresses == 1:
        return Counter(given.ip_min, 0, 1), Counter(given.port_min, 1, flows), None
    if flows <= MOST_LISTED and (flows % addresses == 0 or flows <= DRAWN):
        counted = [each // addresses + given.port_min for each in range(flows)]
        address: Sequence = Counter(given.ip_min, 1, addresses)
        if flows % addresses:
            address = Listed(tuple(given.ip_min + each % addresses for each in range(flows)))
        return address, Listed(tuple(counted)), None
    # Counters that step together meet every pair once where their lengths have no common divisor.
    wanted = -(-flows // addresses)
    length = next(
        (each for each in range(wanted, ports + 1) if math.gcd(each, addresses) == 1), None
    )
    if length is None:
        raise RefusalError(
            f"tuple generator {given.name!r} has {flows} flows of {addresses} addresses and "
            f"{ports} ports: a list has at most {MOST_LISTED}, and counters that step together do "
            "not meet all pairs; one port or address less would do",
            given.line,
        )
    note = (
        f"tuple generator {given.name!r}: {addresses * length} flows instead of {flows}, each once "
        "in a round, in another order: address and port step together"
    )
    return Counter(given.ip_min, 1, addresses), Counter(given.port_min, 1, length), note


def _split_mix(seed: int, least: int, most: int, count: int) -> Iterable[int]:
    """Random numbers by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014,
    doi:10.1145/2660193.2660195)
    and Lemire's cut to a range (ACM TOMACS 29, 2019, doi:10.1145/3230636).

    The same as `crates/packet/src/random.rs`, so that a list has what a random field would have.
    """
    whole = (1 << 64) - 1
    span, state = most - least + 1, seed & whole
    for _ in range(count):
        while True:
            state = (state + 0x9E3779B97F4A7C15) & whole
            z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & whole
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & whole
            drawn = z ^ z >> 31
            if span > whole:
                yield least + drawn
                break
            product = drawn * span
            if product & whole >= (1 << 64) % span:
                yield least + (product >> 64)
                break
