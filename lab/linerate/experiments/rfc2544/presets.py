# SPDX-License-Identifier: BSD-3-Clause
"""Presets: goals, durations and repetitions of every test."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Annotated, get_args

from pydantic import Field

from linerate.host.errors import UsageError, look_up
from linerate.records.trial import Test
from linerate.runs.options import MAX_SIZE
from linerate.traffic.otg import Ip
from linerate.trial.search import back_to_back, core_use, frame_loss, latency, recovery
from linerate.trial.search.goals import FINAL_S, Goal
from linerate.trial.search.setup_device import Terms

# RFC 2544, 9.1.
STANDARD_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
PUBLISHED = "codilime-rfc2544.csv"
# The tests; throughput is always measured, because the others need it.
THROUGHPUT: tuple[Test, ...] = ("throughput",)
TESTS: tuple[Test, ...] = (
    "throughput", "latency", "loss", "back-to-back", "recovery", "core-use",
)  # fmt: skip
# RFC 2544, 23: to wait for late frames, and before the next trial.
SETTLE_S, REST_S = 2.0, 5.0


def published_sizes() -> tuple[int, ...]:
    """Return the sizes of the published tables, which include the 4-byte FCS."""
    text = (
        resources.files("linerate.report").joinpath("data", PUBLISHED).read_text(encoding="utf-8")
    )
    sizes = {int(row["size_bytes"]) for row in csv.DictReader(text.splitlines())}
    return tuple(sorted(sizes))


# The names that --sizes accepts beside numbers.
NAMED_SIZES: dict[str, Callable[[], tuple[int, ...]]] = {
    "standard": lambda: STANDARD_SIZES,
    "published": published_sizes,
}


def named_sizes(name: str, ip: Ip) -> list[int] | None:
    """Return a well-known set; sizes without room for the headers become the least that has it."""
    if name not in NAMED_SIZES:
        return None
    return sorted({max(size, minimum_size(ip)) for size in NAMED_SIZES[name]()})


@dataclass(frozen=True)
class Preset:
    """Seconds, frames and counts; repetitions are those of a whole run, shared by its blocks."""

    name: str
    goals: Annotated[tuple[Goal, ...], Field(min_length=1)]
    # A search that takes longer has no result.
    limit_s: float
    blocks: int
    terms: Terms
    # The duration of each window of the self-test, and its number of blocks.
    flood_s: float
    self_test: int
    latency_s: float
    latency_repetitions: int
    latency_loads: Annotated[tuple[float, ...], Field(min_length=1)]
    loss_s: float
    loss_step: float
    burst_repetitions: int
    burst_longest_s: float
    burst_resolution: int
    recovery_overload_s: float
    recovery_watched_s: float
    recovery_repetitions: int
    core_use_s: float
    core_use_loads: Annotated[tuple[float, ...], Field(min_length=1)]
    note: str
    # With disturbed windows a test gives a lower bound, or its results so far; False in runs
    # recorded by earlier versions, whose tests end there without figures
    # (`linerate.trial.search.procedure`).
    bounds: bool = False
    # The sizes take turns, block by block, so that a run that ends early has results for all of
    # them.
    turns: bool = False
    # False: it gives tables and no verdicts, and runs even if its blocks are too few for one.
    verdicts: bool = True
    # Defaults of --sizes and --tests.
    sizes: str | None = None
    tests: tuple[Test, ...] = TESTS

    @property
    def low_load_s(self) -> float:
        return self.goals[0].final_s

    def latency_share(self, blocks: int) -> int:
        """Return the repetitions in each block."""
        return math.ceil(self.latency_repetitions / blocks)

    def burst_share(self, blocks: int) -> int:
        return math.ceil(self.burst_repetitions / blocks)

    def recovery_share(self, blocks: int) -> int:
        return math.ceil(self.recovery_repetitions / blocks)


def _pair(initial_s: float, final_s: float, sum_s: float, width: float) -> tuple[Goal, ...]:
    return tuple(
        Goal(name, loss, 0.5, width, initial_s, final_s, sum_s)
        for name, loss in (("NDR", 0.0), ("PDR", 0.005))
    )


_QUICK = Preset(
    name="quick",
    # Short, for a shared machine is quiet for a part of a second at a time.
    goals=_pair(0.1, 0.1, 0.5, 0.01),
    limit_s=30.0,
    # Beside a compiler three searches of eight had only a lower bound, and a test needs six pairs.
    blocks=10,
    terms=Terms(windows=8, burst_windows=6),
    flood_s=0.3,
    self_test=3,
    latency_s=0.1,
    latency_repetitions=6,
    latency_loads=latency.LOADS,
    loss_s=0.1,
    loss_step=frame_loss.GREATEST_STEP,
    burst_repetitions=6,
    burst_longest_s=0.05,
    burst_resolution=64,
    recovery_overload_s=0.05,
    recovery_watched_s=0.05,
    recovery_repetitions=6,
    core_use_s=0.1,
    core_use_loads=core_use.LOADS,
    note="a look, NOT conforming to RFC 2544",
    bounds=True,
)

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="conforming",
            goals=(Goal("throughput", 0, 0, 0.005, 1, FINAL_S, FINAL_S),),
            limit_s=7200.0,
            blocks=6,
            terms=Terms(windows=3, settle_s=SETTLE_S, rest_s=REST_S),
            flood_s=1.0,
            self_test=5,
            latency_s=latency.SECONDS,
            latency_repetitions=latency.REPETITIONS,
            latency_loads=latency.LOADS,
            loss_s=FINAL_S,
            loss_step=frame_loss.GREATEST_STEP,
            burst_repetitions=back_to_back.REPETITIONS,
            burst_longest_s=back_to_back.LONGEST_S,
            burst_resolution=1,
            recovery_overload_s=recovery.OVERLOAD_S,
            recovery_watched_s=recovery.WATCHED_S,
            recovery_repetitions=recovery.REPETITIONS,
            core_use_s=10.0,
            core_use_loads=core_use.LOADS,
            note="RFC 2544's durations and repetitions",
            bounds=True,
        ),
        Preset(
            name="csit",
            goals=_pair(1, 1, 21, 0.005),
            limit_s=3600.0,
            blocks=6,
            terms=Terms(windows=10, burst_windows=6),
            flood_s=0.3,
            self_test=5,
            latency_s=1.0,
            latency_repetitions=6,
            latency_loads=latency.LOADS,
            loss_s=1.0,
            loss_step=frame_loss.GREATEST_STEP,
            burst_repetitions=12,
            burst_longest_s=0.1,
            burst_resolution=32,
            recovery_overload_s=1.0,
            recovery_watched_s=1.0,
            recovery_repetitions=6,
            core_use_s=1.0,
            core_use_loads=core_use.LOADS,
            note="NDR and PDR as FD.io CSIT searches for them; not RFC 2544's durations",
            bounds=True,
        ),
        _QUICK,
        replace(
            _QUICK,
            name="published",
            blocks=6,
            # One goal, like the published tables.
            goals=(Goal("NDR", 0.0, 0.5, 0.01, 0.1, 0.1, 0.5),),
            terms=Terms(windows=6),
            self_test=1,
            # The load of the published tables: the throughput.
            latency_loads=(1.0,),
            note="the published tables and charts, NOT conforming to RFC 2544; no verdicts",
            turns=True,
            verdicts=False,
            sizes="published",
            tests=("throughput", "latency"),
        ),
    )
}


def preset(name: str) -> Preset:
    return look_up(PRESETS, name, "--preset", "preset")


def tests_of(names: list[str]) -> tuple[Test, ...]:
    """Return the requested tests, all if none, in this order; throughput is always first."""
    known = {name: name for name in get_args(Test) if name in TESTS}
    for name in names:
        look_up(known, name, "--tests", "test")
    return tuple(test for test in TESTS if test == "throughput" or not names or test in names)


def minimum_size(ip: Ip) -> int:
    """Return the least frame, FCS included, with room for Ethernet, IP, UDP and the sender's
    mark.
    """
    mark, fcs = 18, 4
    return max(64, 14 + {4: 20, 6: 40}[ip] + 8 + mark + fcs)


def check_sizes(sizes: list[int], ip: Ip) -> None:
    least = minimum_size(ip)
    for size in sizes:
        if not least <= size <= MAX_SIZE:
            raise UsageError(
                f"--sizes {size}: IPv{ip} frames of this experiment have {least} to {MAX_SIZE} "
                "bytes with FCS"
            )
