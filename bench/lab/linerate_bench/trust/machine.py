# SPDX-License-Identifier: BSD-3-Clause
"""A simulated shared machine: trials with rates that jump, differ by restart, and sometimes fail.

It imitates what was seen on shared virtual machines: a program runs at one of two speeds, a third
apart, for seconds at a time; each restart differs by several per cent, now and then by far more;
some trials are invalid. The logarithm of a trial's rate is

    log(speed) + log(mean level of the window) + scale * noise + log(1 - slow_down)

with noise from Student's distribution with few degrees of freedom. The level follows a two-state
Markov chain in time with exponential sojourns, so that it may change between the arms of one block,
and inside a window. Other profiles have a constant level and wide noise, each of another shape:
they show what a ratio of 1.7 looks like if ratios spread by a fifth. Everything comes from one
seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linerate.links import link
from linerate.records.cells import Arm, Cell, LinkCell
from linerate.records.outcome import Frames
from linerate.records.trial import Identity, ProgramRun, Request, Trial
from linerate.runs.plans.blocks import order
from linerate_bench.trust.comparison import SIZE, TESTED, Extent, arms

PROGRAM = "c-l2fwd"
_NARROW = 0.05
STARTED = "2026-01-01T00:00:00+00:00"
TSC_HZ = 2_450_000_000


# The noise of a restart, on the log scale: Student's t, normal, log-normal about its median, or one
# of two values.
Noise = Literal["t", "normal", "skewed", "two-state"]


@dataclass(frozen=True)
class Profile:
    """A link of the simulated machine. `scale`: that of a restart's noise, on the log scale."""

    link: str
    speed_pps: float
    trial_s: float
    scale: float
    freedom: float = 4.0
    slow_level: float = 0.75
    sojourn_s: float = 15.0
    invalid_share: float = 0.02
    noise: Noise = "t"

    @property
    def wide(self) -> bool:
        """Return True if its noise hides differences that the others show."""
        return self.scale > _NARROW

    @property
    def name(self) -> str:
        return f"{self.link}, {self.noise} noise of {self.scale:.0%}" if self.wide else self.link

    def cell(self, extent: Extent) -> Cell:
        return Cell(self.link, SIZE, extent.blocks(self.trial_s))


# Seconds of a trial and noise as in `docs/benchmarks.md`, "a first look"; there the ratios of a
# program to itself spread (robustly) by 3 % on null, and by 2 % to 5 % on memif.
PROFILES = (
    Profile("null", 50e6, trial_s=0.52, scale=0.02),
    Profile("memif", 14e6, trial_s=0.70, scale=0.02),
)
# With this noise the ratio of two trials spreads by 20 to 30 %.
_WIDE: tuple[tuple[Noise, float], ...] = (
    ("normal", 0.15),
    ("t", 0.12),
    ("skewed", 0.15),
    ("two-state", 0.15),
)
WIDE_PROFILES = tuple(
    Profile("null", 50e6, trial_s=0.52, scale=scale, freedom=3.0, slow_level=1.0, noise=noise)
    for noise, scale in _WIDE
)


class Machine:
    """The machine. Time goes on from trial to trial; the level jumps when its sojourn is over."""

    def __init__(self, profile: Profile, window_s: float, source: np.random.Generator) -> None:
        self.profile = profile
        self.window_s = window_s
        self._source = source
        self._fast = bool(source.random() < 0.5)
        self._rest_s = source.exponential(profile.sojourn_s)

    def _mean_level(self, seconds: float) -> float:
        """Return the mean level over the next `seconds`."""
        left, total = seconds, 0.0
        while left > 0:
            step = min(left, self._rest_s)
            total += step * (1.0 if self._fast else self.profile.slow_level)
            left -= step
            self._rest_s -= step
            if self._rest_s <= 0:
                self._fast = not self._fast
                self._rest_s = self._source.exponential(self.profile.sojourn_s)
        return total / seconds

    def _noise(self) -> float:
        match self.profile.noise:
            case "t":
                return float(self._source.standard_t(self.profile.freedom))
            case "normal":
                return float(self._source.standard_normal())
            case "skewed":
                return math.exp(self._source.standard_normal()) - 1
            case "two-state":
                return float(self._source.choice((-1.0, 1.0)))

    def rate(self, slow_down: float) -> float | None:
        """Return the packets per second of one trial of a program slowed by this share; None:
        invalid.
        """
        self._mean_level(self.profile.trial_s - self.window_s)
        level = self._mean_level(self.window_s)
        restart = math.exp(self.profile.scale * self._noise())
        failed = self._source.random() < self.profile.invalid_share
        return None if failed else self.profile.speed_pps * level * restart * (1 - slow_down)

    def trial(self, arm: Arm, block: int, position: int, slow_down: float) -> Trial:
        rate = self.rate(slow_down)
        carried = link(self.profile.link).has_generator
        trial = Trial(
            identity=Identity(
                experiment="trust",
                seed=0,
                block=block,
                position=position,
                role="measure",
                arm=arm.label,
            ),
            cell=LinkCell(link=self.profile.link, size=SIZE),
            program=ProgramRun(forwarder=arm.forwarder, tsc_hz=TSC_HZ),
            request=Request(load="flood" if carried else "self-driven"),
            started_at=STARTED,
        )
        if rate is None:
            trial.reject("starved", "simulated: others had the forwarder's CPU")
            return trial
        packets = round(rate * self.window_s)
        frames = Frames(duration_s=self.window_s, forwarder_rx=packets, forwarder_tx=packets)
        trial.outcome = frames
        if carried:
            frames.attempted = 2 * packets
            frames.refused = frames.accepted = frames.received = packets
            frames.lost_at_ingress = frames.forwarder_drops = frames.unattributed = 0
        return trial


def simulate(
    profile: Profile, extent: Extent, slow_down: float, seed: int, *, held_back: float = 0.0
) -> list[Trial]:
    """Return all trials of one comparison, in the lab's own order.

    `slow_down` is that of the arm under test. `held_back` is that of the baseline's first label: no
    program causes it, it is a fault of the measurement.
    """
    both, cell = arms(PROGRAM, PROGRAM), profile.cell(extent)
    shares = {TESTED: slow_down, PROGRAM: held_back}
    source = np.random.default_rng([seed, round(slow_down * 1e4), cell.blocks])
    machine = Machine(profile, extent.preset.window_s, source)
    trials: list[Trial] = []
    for block, shuffled in enumerate(order(both, cell, seed)):
        for arm in shuffled:
            slowed = shares.get(arm.label, 0.0)
            trials.append(machine.trial(arm, block, len(trials), slowed))
    return trials
