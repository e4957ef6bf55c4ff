# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the experiment `latency` on a simulated machine: all of the lab, but no processes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from simulated import install_machine, quiet
from trials import made_trial

from linerate.experiments.latency import loads
from linerate.experiments.latency.design import NAME
from linerate.experiments.latency.loads import Step
from linerate.experiments.latency.options import Options
from linerate.experiments.latency.packet_sender import PacketSender
from linerate.experiments.latency.runs import Found
from linerate.forwarders import FORWARDERS
from linerate.host.errors import DisturbedError, TrialError
from linerate.records.cells import Arm
from linerate.records.outcome import Clock, LatencyFigures, Span
from linerate.records.trial import Method, Process, Protocol, Role, Test, Trial
from linerate.runs import session
from linerate.runs.engine.engine import Engine
from linerate.trial.clock_check import ClockCheck
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Outcome
from linerate.trial.search.setup_device import Terms, outcome_of
from linerate.trial.trial import Bench, Plan

HZ, CHECKED_HZ, COST = 2_600_000_000, 2_596_000_000.0, 26
# By forwarder: what returns of a flood, the median round trip at idle, and cycles inside.
CAPACITY = {"reflect": 4e6, "c-l2fwd": 4e6, "testpmd-io": 4e6}
ROUND_TRIP_NS = {"reflect": 1000.0, "c-l2fwd": 51_000.0, "testpmd-io": 1000.0}
INSIDE = {"reflect": 226.0, "c-l2fwd": 130_026.0, "testpmd-io": 226.0}
QUIET = 0.002


class Simulation:
    """`before`: called before each trial; `late_above`: the sender is late above so many pps."""

    def __init__(self) -> None:
        self.ran: list[Trial] = []
        self.before: Callable[[Trial], None] = lambda trial: None
        self.late_above = float("inf")
        # Factors on the round trip of forwarders, and a seed for the noise of each run.
        self.slower: dict[str, float] = {}
        self.noise = "1"
        self.pings = Pings(self)
        self.clock = ClockCheck(HZ, COST, CHECKED_HZ, 100.0)

    def blank(self, bench: Bench, setup: LinkSetup, arm: Arm, block: int, role: Role) -> Trial:
        return made_trial(
            experiment=NAME, seed=bench.seed, session=bench.session, block=block, position=0,
            role=role, arm=arm.label, forwarder=arm.forwarder,
            described=FORWARDERS[arm.forwarder].described(), link=setup.link.name,
            size=setup.context.size, load="paced", started_at="2026-01-01T00:00:00+00:00",
            tsc_hz=HZ, processes=[Process(role="forwarder", argv=["prog"], cpus=[1])],
        )  # fmt: skip

    def finish(self, trial: Trial) -> None:
        self.before(trial)
        self.ran.append(trial)

    def flood(self, bench: Bench, asked: Plan, setup: LinkSetup) -> Trial:
        trial = self.blank(bench, setup, asked.arm, asked.block, asked.role)
        trial.request.load, trial.identity.position = "flood", asked.position
        enter(trial, round(CAPACITY[asked.arm.forwarder] * 0.3), 0.3)
        self.finish(trial)
        return trial


def enter(trial: Trial, frames: int, seconds: float) -> None:
    trial.frames.duration_s = seconds
    trial.frames.intended = trial.frames.attempted = trial.frames.accepted = (
        trial.frames.received
    ) = frames
    trial.frames.forwarder_rx = trial.frames.forwarder_tx = frames
    trial.frames.forwarder_drops = trial.frames.lost_at_ingress = trial.frames.unattributed = (
        trial.frames.late
    ) = 0


class Windows:
    """Replaces `SetupDevice`."""

    def __init__(
        self,
        simulation: Simulation,
        bench: Bench,
        setup: LinkSetup,
        arm: Arm,
        *,
        block: int,
        max_pps: float,
        terms: Terms,
        record: Callable[[Trial], None],
        role: Role,
        probe: bool,
        spans: int,
        method: Method = "fresh",
    ) -> None:
        self.test: Test = "throughput"
        self.protocol: Protocol | None = None
        self.void = 0
        self.max_pps, self.arm, self.block = max_pps, arm, block
        self._simulation, self._record = simulation, record
        self._windows, self._spans = terms.windows, spans
        self._blank = partial(simulation.blank, bench, setup, arm, block, role)

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        void, self.void = self.void, 0
        for attempt in range(void + 1, self._windows + 1):
            trial = self._blank()
            trial.request.test, trial.request.attempt, trial.request.protocol = (
                self.test,
                attempt,
                self.protocol,
            )
            trial.request.pps, trial.request.seconds, trial.request.maximum_pps = (
                pps,
                seconds,
                self.max_pps,
            )
            source = random.Random(
                f"{self._simulation.noise}:{trial.arm}:{trial.block}:{trial.request.test}:"
                f"{trial.request.protocol}:{pps}"
            )
            enter(trial, max(round(pps * seconds), 1), seconds)
            noise = source.gauss(1.0, QUIET)
            if latency:
                trial.frames.latency = self._latency(trial, noise)
            if self._spans:
                trial.frames.spans = [self._span(trial, noise)]
            if latency or self._spans:
                trial.frames.clock = Clock(tsc_hz=HZ, cost_cycles=COST)
            if pps > self._simulation.late_above:
                trial.reject("late", "50% of the frames were sent late")
            self._simulation.finish(trial)
            self._record(trial)
            if trial.valid:
                return outcome_of(trial)
            if trial.invalid_code != "late":
                raise TrialError(trial.invalid_why or "")
        raise DisturbedError("all windows were disturbed")

    def _latency(self, trial: Trial, noise: float) -> LatencyFigures:
        middle = ROUND_TRIP_NS[trial.forwarder] * noise
        middle *= self._simulation.slower.get(trial.arm, 1.0)
        quantiles = {"0.5": middle, "0.9": middle * 2, "0.99": middle * 3, "0.999": middle * 4}
        return LatencyFigures(
            count=trial.frames.received or 0, net=True, minimum_ns=middle / 2, mean_ns=middle,
            maximum_ns=middle * 9, quantiles_ns=quantiles,
        )  # fmt: skip

    def _span(self, trial: Trial, noise: float) -> Span:
        middle = INSIDE[trial.forwarder] * noise
        count = trial.frames.received or 0
        return Span(
            span="rx-return_tx-call", port=0, queue=0, one_in=self._spans, sampled=count,
            count=count, mean_cycles=middle,
            quantiles_cycles={"0.5": middle, "0.9": middle, "0.99": middle, "0.999": middle},
        )  # fmt: skip

    def __enter__(self) -> Windows:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Pings:
    """Replaces one window of `PacketSender`, whose own code still decides."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        # The first windows of each trial are disturbed, this many.
        self.void = 0

    def window(self, sender: PacketSender, step: Step, seconds: float, attempt: int) -> Trial:
        simulation = self._simulation
        trial = simulation.blank(sender.bench, sender.setup, sender.arm, sender.block, "search")
        trial.request.test, trial.request.attempt, trial.request.protocol = (
            "ping",
            attempt,
            step.protocol,
        )
        trial.request.pps = trial.request.maximum_pps = loads.IDLE_PPS
        trial.request.seconds = seconds
        enter(trial, round(loads.IDLE_PPS * seconds), seconds)
        middle = 10 * ROUND_TRIP_NS[trial.forwarder]
        trial.frames.latency = LatencyFigures(
            count=trial.frames.received or 0, net=True, minimum_ns=middle, mean_ns=middle,
            maximum_ns=middle, quantiles_ns={"0.5": middle},
        )  # fmt: skip
        trial.frames.clock = Clock(tsc_hz=HZ, cost_cycles=COST)
        if attempt <= self.void:
            trial.reject("starved", "others had the forwarder's CPU")
        simulation.finish(trial)
        return trial


def install(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Put a simulated machine where the lab starts processes and reads the real one."""
    found = Simulation()

    def prepare(self: Engine) -> None:
        self.ledger.clock = found.clock

    def ping(self: PacketSender, step: Step, seconds: float, attempt: int) -> Trial:
        return found.pings.window(self, step, seconds, attempt)

    install_machine(monkeypatch, found.flood, partial(Windows, found))
    monkeypatch.setattr(PacketSender, "_window", ping)
    monkeypatch.setattr(Engine, "prepare", prepare)
    return found


def options(**values: Any) -> dict[str, Any]:
    """Return three programs on memif, unless told otherwise."""
    asked: dict[str, Any] = {
        "links": ["memif"], "forwarders": ["reflect", "c-l2fwd", "testpmd-io"],
    }  # fmt: skip
    return asdict(Options(preset=loads.PRESETS["quick"], **(asked | values)))


def start(out: Path, console: Console | None = None, /, **values: Any) -> Found:
    found = session.start(NAME, options(**values), out, console or quiet(), "linerate run latency")
    assert isinstance(found, Found)
    return found


def resume(out: Path, console: Console | None = None, /, **given: object) -> Found:
    found = session.resume(NAME, out, given, console or quiet(), "linerate --resume")
    assert isinstance(found, Found)
    return found
