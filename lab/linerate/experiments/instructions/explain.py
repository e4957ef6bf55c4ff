# SPDX-License-Identifier: BSD-3-Clause
"""Count one program, or compare two: A, B, A again, and both without simulated caches.

A run without these takes less time per packet. If a function's number of instructions per packet
then changes, it follows the clock: for instance, it drains every so many microseconds.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from linerate.experiments.instructions.callgrind import (
    SIMD,
    Counted,
    Counting,
    UncountableError,
    require_plain,
)
from linerate.experiments.instructions.functions import Key, Names, is_address, named
from linerate.experiments.instructions.record import (
    ClockFunction,
    Explanation,
    Function,
    Letter,
)
from linerate.forwarders import Forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.errors import TrialError, UsageError
from linerate.host.machine import text_of
from linerate.host.process import RunDirectory
from linerate.links import LINKS, Link, LinkContext
from linerate.trial.starts.faults import FaultError, refuse

PACKETS = 500_000
# Functions that are listed.
_MOST = 10
# Instructions per packet that are no change, whatever the tolerance.
_NOTHING = 0.05
# A change must be so many times the difference between the runs of A; the second is for functions
# that follow the clock.
_CLEAR, _CLEAR_BY_CLOCK = 3.0, 5.0
# Functions that follow the clock, of one program, that are named.
_MOST_CLOCK = 4
# Packets by which a program's counters may be behind its work: a burst at each end.
_APART = 64
_LETTERS: tuple[Letter, ...] = ("A", "B")


@dataclass(frozen=True)
class Contestant:
    """A prepared program, and its name in messages."""

    program: Forwarder
    name: str


@dataclass(frozen=True)
class Runs:
    """The runs. `slow`: of A, or of A and B, with simulated caches and branches. `again`: A again
    in the same way. `quick`: of both, without them.
    """

    slow: Sequence[Counted]
    again: Counted
    quick: Sequence[Counted]


def check_link(link: Link) -> None:
    """Raise `UsageError` for a link on which instructions per packet depend on the sender."""
    if link.has_generator:
        raise UsageError(
            f"--link {link.name}: instructions are counted only where the driver always delivers; "
            "here a program also polls for packets that the generator has not sent yet",
            f"choose from: {', '.join(name for name, each in LINKS.items() if each.driver)}",
        )


def check_program(contestant: Contestant) -> None:
    """Raise `LabError` for a program that cannot be counted, as far as it is known before."""
    if not contestant.program.has_telemetry:
        raise UsageError(f"{contestant.name}: it serves no telemetry, which counts its packets")
    require_plain(contestant.program.program(), contestant.name)


def explain(
    run: RunDirectory,
    cores: Cores,
    link: Link,
    contestants: Sequence[Contestant],
    *,
    size: int,
    packets: int = PACKETS,
    seen: Callable[[str], None] = lambda text: None,
) -> Explanation:
    """Count one or two programs, which must be prepared, as the link. `seen`: called with the next
    step.

    Raises `UncountableError` for a program that cannot be counted.
    """
    slow = Counting(run, cores, packets)
    quick = replace(slow, simulated=False)

    def count(by: Counting, arm: int, what: str) -> Counted:
        each = contestants[arm]
        seen(f"counting {each.name}{what}")
        try:
            with link.open(LinkContext(run.path, size, cores=cores)) as wire:
                return by.count(each.program, arm, wire)
        except UncountableError as error:
            raise UncountableError(f"{each.name}: {error.message}", error.hint) from error
        except TrialError as error:
            raise UncountableError(f"{each.name} under callgrind: {error.message}") from error

    arms = range(len(contestants))
    by_arm = [count(slow, arm, "") for arm in arms]
    again = count(slow, 0, " again")
    by_clock = [count(quick, arm, ", caches not simulated") for arm in arms]
    try:
        refuse([counted.window for counted in by_arm])
    except FaultError as fault:
        name = contestants[fault.arm].name
        raise UncountableError(f"{name} under callgrind: {fault.message}") from fault
    found = explanation(link.driver, contestants, Runs(by_arm, again, by_clock))
    found.notes.extend(_on_machine())
    return found


def explanation(driver: str, contestants: Sequence[Contestant], runs: Runs) -> Explanation:
    """Return the explanation of the runs. `driver`: the link's, such as `net_null`."""
    by_arm, again, by_clock = runs.slow, runs.again, runs.quick
    names = Names(driver, [*by_arm, again, *by_clock])
    slow = [names.instructions(each) for each in by_arm]
    second = names.instructions(again)
    noise = {
        function: abs(slow[0].get(function, 0.0) - second.get(function, 0.0))
        for function in slow[0].keys() | second.keys()
    }
    a, b = by_arm[0].total(), by_arm[1].total() if len(by_arm) > 1 else None
    packets = min(each.packets for each in (*by_arm, again, *by_clock))
    tolerance = max(abs(again.total() - a) / a, _APART / packets)
    clock = [
        found
        for letter, before, after in zip(_LETTERS, by_clock, slow, strict=False)
        for found in _following_clock(
            letter,
            names,
            names.instructions(before),
            after,
            # The runs of A give no noise for functions that only B has.
            {key: max(noise.get(key, 0.0), tolerance * n) for key, n in after.items()},
        )
    ]
    functions, left_out, share = _listed(names, slow, noise)
    return Explanation(
        packets=packets,
        a=names.figures(by_arm[0]),
        a_again=names.figures(again),
        b=names.figures(by_arm[1]) if b is not None else None,
        tolerance=tolerance,
        ratio=b / a if b is not None else None,
        functions=functions,
        left_out=left_out,
        left_out_share=share,
        clock=clock,
        notes=[
            *_on_clocks(contestants, by_arm, by_clock, clock),
            *_on_programs(names, contestants, slow),
        ],
    )


def _listed(
    names: Names, slow: Sequence[dict[Key, float]], noise: dict[Key, float]
) -> tuple[list[Function], int, float]:
    """Return the functions that changed most, or have most; the number of the others, and their
    share.
    """
    a, b = slow[0], slow[-1]
    size = {}
    for function in a.keys() | b.keys():
        if len(slow) == 1:
            found, least = a[function], _NOTHING
        else:
            found = abs(b.get(function, 0.0) - a.get(function, 0.0))
            least = max(_NOTHING, _CLEAR * noise.get(function, 0.0))
        if found > least:
            size[function] = found
    order = sorted(size, key=lambda function: (-size[function], function))
    listed = [
        Function(
            object=names.file(function),
            name=function.name,
            a=a.get(function),
            b=b.get(function) if len(slow) > 1 else None,
        )
        for function in order[:_MOST]
    ]
    everything = sum(size.values())
    rest = order[_MOST:]
    share = sum(size[function] for function in rest) / everything if everything else 0.0
    return listed, len(rest), share


def _following_clock(
    letter: Letter,
    names: Names,
    quick: dict[Key, float],
    slow: dict[Key, float],
    noise: dict[Key, float],
) -> list[ClockFunction]:
    """Return functions whose number per packet depends on the time per packet, the strongest first.

    `noise`: the permitted difference of two runs.
    """
    found = []
    for function in quick.keys() | slow.keys():
        before, after = quick.get(function, 0.0), slow.get(function, 0.0)
        least = max(_NOTHING, _CLEAR_BY_CLOCK * noise.get(function, 0.0))
        if abs(after - before) > least:
            found.append((abs(after - before), function, before, after))
    return [
        ClockFunction(
            program=letter,
            object=names.file(function),
            name=function.name,
            quick=before,
            slow=after,
        )
        for _, function, before, after in sorted(found, key=lambda each: (-each[0], each[1]))
    ]


def _on_clocks(
    contestants: Sequence[Contestant],
    by_arm: Sequence[Counted],
    by_clock: Sequence[Counted],
    clock: Sequence[ClockFunction],
) -> list[str]:
    told = []
    for letter, each, slow, quick in zip(_LETTERS, contestants, by_arm, by_clock, strict=False):
        mine = [function for function in clock if function.program == letter]
        if not mine:
            continue
        words = ", ".join(
            f"{named(function.name, function.object)} {function.quick:.2f} and {function.slow:.2f}"
            for function in mine[:_MOST_CLOCK]
        )
        more = f", and {len(mine) - _MOST_CLOCK} more" if len(mine) > _MOST_CLOCK else ""
        told.append(
            f"{each.name} follows the clock: its instructions per packet depend on how long a "
            f"packet takes, here {quick.ns:.0f} and {slow.ns:.0f} ns: {words}{more}"
        )
    return told


def _on_programs(
    names: Names, contestants: Sequence[Contestant], slow: Sequence[dict[Key, float]]
) -> list[str]:
    told = []
    for each, functions in zip(contestants, slow, strict=True):
        mine = {name: n for name, n in functions.items() if n > _NOTHING}
        if not any(name.owner == "driver" for name in mine):
            told.append(
                f"{each.name} has DPDK linked into it: instructions of the driver and of DPDK "
                "count as its own"
            )
        own = sum(n for name, n in mine.items() if name.owner == "program")
        if unnamed := sum(
            n for name, n in mine.items() if name.owner == "program" and is_address(name.name)
        ):
            told.append(
                f"{each.name} has no symbols for {unnamed / own * 100:.0f} % of what it executes "
                "itself: these functions are named by their address (unstripped it shows names)"
            )
        if each.program.definition.cpus > 1:
            told.append(
                f"{each.name} has {each.program.definition.cpus} lcores, and valgrind runs only "
                "one at a time: if they wait for each other, it counts more than they execute "
                "natively"
            )
    return told


def _on_machine() -> list[str]:
    bits = SIMD.get(platform.machine())
    if not bits or "avx512f" not in (text_of("/proc/cpuinfo") or ""):
        return []
    return [f"EAL was held to {bits}-bit SIMD, because valgrind does not know AVX-512"]
