# SPDX-License-Identifier: BSD-3-Clause
"""Test beds with simulated forwarders, for whole runs of experiment rfc2544."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console
from simulated import install_machine
from trials import made_trial

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.options import Options
from linerate.experiments.rfc2544.plan import NAME
from linerate.experiments.rfc2544.runs import Found
from linerate.forwarders import FORWARDERS
from linerate.host.cores.cpus import Cores
from linerate.host.errors import DisturbedError, TrialError
from linerate.host.process import RunDirectory
from linerate.links.eal import Memory
from linerate.records.cells import Arm, Cell
from linerate.records.outcome import ChangeFigures, LatencyFigures, Polling
from linerate.records.trial import DISTURBED, Load, Process, Role, Test, Trial
from linerate.runs import session
from linerate.runs.engine import engine
from linerate.runs.experiment import Findings
from linerate.runs.plans.steps import Record
from linerate.traffic.books import LATE_LIMIT
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Changed, Outcome
from linerate.trial.search.setup_device import changed_of, error_of, outcome_of
from linerate.trial.search.simulated import Model, SimulatedForwarder
from linerate.trial.trial import Bench, Plan

CEILING_PPS = 10e6
# By forwarder: what it can carry, in frames per second.
# Busy cycles per packet; 400 for forwarders that are not named.
CYCLES = {"c-l2fwd": 200.0, "rust-l2fwd": 160.0}
HZ = 2_450_000_000
CAPACITY = {"c-l2fwd": 4e6, "rust-l2fwd": 4.4e6, "reflect": 9e6, "testpmd-io": 8e6}


class SimulatedDevice:
    """Writes the records of a real device, including void windows."""

    def __init__(
        self,
        lab: SimulatedLab,
        cell: Cell,
        arm: Arm,
        *,
        block: int,
        max_pps: float,
        role: Role,
        record: Record,
    ) -> None:
        self.test: Test = "throughput"
        self.void = 0
        self._lab = lab
        self._max_pps = max_pps
        self._record = record
        self._source = random.Random(f"{lab.seed}:{cell}:{arm}:{block}:{role}")
        model = replace(
            lab.model,
            capacity_pps=lab.capacity.get(arm.forwarder, 5e6) * self._source.gauss(1.0, lab.noise),
            max_pps=max_pps,
            latency_s=lab.model.latency_s * lab.latency.get(arm.forwarder, 1.0),
            jitter_s=lab.model.jitter_s * lab.latency.get(arm.forwarder, 1.0),
        )
        self._forwarder = SimulatedForwarder(model, seed=self._source.getrandbits(32))
        session = lab.bench.session

        def fresh(load: Load) -> Trial:
            return blank(cell, arm, block, role, load, session)

        self._blank = fresh

    @property
    def max_pps(self) -> float:
        return self._max_pps

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        def window(trial: Trial) -> None:
            known = latency and not self._lab.timeless
            enter(trial, self._forwarder.send(pps, seconds, latency=known))
            if self.test == "core-use" and self._lab.probing:
                self._poll(trial)

        return outcome_of(self._trial(window, pps, seconds))

    def burst(self, frames: int) -> Outcome:
        def window(trial: Trial) -> None:
            trial.request.frames = frames
            enter(trial, self._forwarder.burst(frames))

        return outcome_of(self._trial(window, self.max_pps, frames / self.max_pps, "burst"))

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        def window(trial: Trial) -> None:
            trial.request.then_pps, trial.request.then_s = then_pps, then_seconds
            enter_change(trial, self._forwarder.change(pps, seconds, then_pps, then_seconds))

        return changed_of(self._trial(window, pps, seconds))

    def _poll(self, trial: Trial) -> None:
        """Of eight polls six are empty, one returns 8 packets and one returns all that it asks for,
        24.
        """
        packets = trial.frames.forwarder_rx or 0
        cycles = self._lab.cycles.get(trial.forwarder, 400.0)
        bursts = packets // 32
        histogram = [6 * bursts, *[0] * 7, bursts, *[0] * 15, bursts]
        trial.program.probe = True
        trial.frames.polling = [
            Polling(
                lcore=1, port=0, queue=0, polls=8 * bursts, empty_polls=6 * bursts,
                packets=32 * bursts, burst_limit=24, burst_histogram=histogram,
                busy_tsc=round(32 * bursts * cycles * self._source.gauss(1.0, self._lab.noise)),
                total_tsc=round((trial.frames.duration_s or 0.0) * HZ),
            )
        ]  # fmt: skip

    def _trial(
        self, window: Callable[[Trial], None], pps: float, seconds: float, load: Load = "paced"
    ) -> Trial:
        void, self.void = self.void, 0
        for attempt in range(void + 1, self._lab.windows + 1):
            trial = self._blank(load)
            trial.request.test, trial.request.attempt, trial.request.maximum_pps = (
                self.test,
                attempt,
                self.max_pps,
            )
            trial.request.pps, trial.request.seconds = pps, seconds
            trial.request.load_share = round(pps / self.max_pps, 9)
            self._lab.before_window(trial)
            try:
                window(trial)
            except TrialError as error:
                trial.reject("ended", error.message)
            if self._source.random() < self._lab.late(pps):
                trial.frames.late = round(self._lab.late_share * (trial.frames.attempted or 0))
                trial.reject("late", f"more than {LATE_LIMIT:.1%} of the frames were sent late")
            self._record(trial)
            if trial.valid:
                return trial
            if trial.invalid_code not in DISTURBED:
                raise error_of(trial)
        raise DisturbedError("all windows were disturbed")


def enter(trial: Trial, found: Outcome) -> None:
    """Fill the books: frames lost in the simulated forwarder count as dropped by it."""
    trial.frames.duration_s = found.seconds
    trial.frames.intended = trial.frames.attempted = trial.frames.accepted = found.intended
    trial.frames.forwarder_rx = found.intended
    trial.frames.received = trial.frames.forwarder_tx = found.received
    trial.frames.forwarder_drops = found.lost
    trial.frames.lost_at_ingress = trial.frames.unattributed = trial.frames.late = 0
    if found.latency:
        trial.frames.latency = LatencyFigures(
            count=found.latency.count,
            minimum_ns=found.latency.minimum * 1e9,
            mean_ns=found.latency.mean * 1e9,
            maximum_ns=found.latency.maximum * 1e9,
            quantiles_ns={f"{q:g}": v * 1e9 for q, v in found.latency.quantiles.items()},
            jitter_rfc3550_ns=None if found.latency.jitter is None else found.latency.jitter * 1e9,
            ipdv_quantiles_ns={f"{q:g}": v * 1e9 for q, v in found.latency.ipdv.items()},
        )


def enter_change(trial: Trial, found: Changed) -> None:
    before, after = found.before, found.after
    both = Outcome(
        before.intended + after.intended,
        before.received + after.received,
        before.seconds + after.seconds,
    )
    enter(trial, both)
    trial.frames.change = ChangeFigures(
        before_intended=before.intended,
        before_received=before.received,
        after_intended=after.intended,
        after_received=after.received,
        last_lost_s=found.last_lost,
    )


def blank(  # noqa: PLR0917 - as a record has them
    cell: Cell, arm: Arm, block: int, role: Role, load: Load, session: int
) -> Trial:
    return made_trial(
        experiment="rfc2544", seed=1, session=session, block=block, position=0, role=role,
        arm=arm.label, forwarder=arm.forwarder,
        described=FORWARDERS[arm.forwarder].described(), link=cell.link, size=cell.size, load=load,
        started_at="2026-01-01T00:00:00+00:00", tsc_hz=HZ,
        processes=[Process(role="forwarder", argv=["prog"], cpus=[1])],
    )  # fmt: skip


class SimulatedLab:
    """`late`: the share of windows that are void, by the rate; `noise`: that of capacities and
    cycles.

    `probe`: forwarders take it.
    """

    def __init__(
        self,
        *,
        capacity: dict[str, float] | None = None,
        model: Model | None = None,
        late: Callable[[float], float] = lambda _: 0.0,
        noise: float = 0.005,
        windows: int = 12,
        seed: int = 1,
        cycles: dict[str, float] | None = None,
        probe: bool = True,
    ) -> None:
        self.capacity = {**CAPACITY, **(capacity or {})}
        self.cycles = {**CYCLES, **(cycles or {})}
        self.probe = probe
        self.model = model or Model(capacity_pps=1.0, max_pps=1.0, queue=512)
        self.late = late
        # The disturbed share of the frames of such a window.
        self.late_share = 0.01
        self.noise = noise
        self.windows = windows
        self.seed = seed
        self.before_window: Callable[[Trial], None] = lambda _: None
        self.peers_starve = False
        # How long self-tests waited for a quieter machine, and the effect of that.
        self.rests: list[float] = []
        self.after_rest: Callable[[SimulatedLab], None] = lambda _: None
        # No frame comes back with its latency.
        self.timeless = False
        # The run's own, once there is one.
        none = cast(RunDirectory, None)
        self.bench = Bench(none, Cores(0, 0, False), Memory(False), NAME, seed=1, window_s=0.3)
        # Factors on the latency of forwarders.
        self.latency: dict[str, float] = {}
        # For the running device: it has the probe.
        self.probing = False
        # Devices that were not closed.
        self.running = 0

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.after_rest(self)

    def flood(self, bench: Bench, asked: Plan, setup: LinkSetup) -> Trial:
        self.bench = bench
        cell = Cell(setup.link.name, setup.context.size, 1)
        trial = blank(cell, asked.arm, asked.block, asked.role, "flood", bench.session)
        share = self.capacity[asked.arm.forwarder] / self.capacity["reflect"]
        frames = round(CEILING_PPS * 0.3 * share)
        enter(trial, Outcome(frames, frames, 0.3))
        trial.frames.refused, trial.frames.attempted = frames, 2 * frames
        if self.peers_starve:
            trial.reject("starved", "others had the forwarder's CPU")
        return trial

    @contextmanager
    def device(
        self,
        bench: Bench,
        setup: LinkSetup,
        arm: Arm,
        *,
        block: int,
        max_pps: float,
        role: Role,
        record: Record,
        probe: bool,
        **_: object,
    ) -> Iterator[SimulatedDevice]:
        self.bench, self.probing = bench, self.probe and probe
        cell = Cell(setup.link.name, setup.context.size, 1)
        self.running += 1
        try:
            yield SimulatedDevice(
                self, cell, arm, block=block, max_pps=max_pps, role=role, record=record
            )
        finally:
            self.running -= 1


QUICK = presets.preset("quick")


def options(**given: object) -> Options:
    """Return all tests of preset quick, unless told otherwise."""
    asked = Options(preset=QUICK, tests=presets.TESTS)
    for name, value in given.items():
        assert hasattr(asked, name)
        setattr(asked, name, value)
    return asked


@contextmanager
def installed(lab: SimulatedLab) -> Iterator[None]:
    """Put this laboratory in the place of the real one."""

    with pytest.MonkeyPatch.context() as patch:
        install_machine(patch, lab.flood, lab.device)
        patch.setattr(engine, "pause", lab.rest)
        yield


def start(
    lab: SimulatedLab, out: Path, console: Console | None = None, /, **given: object
) -> Found:
    with installed(lab):
        found = session.start(
            NAME, asdict(options(**given)), out, console or quiet(), "linerate run rfc2544"
        )
    assert lab.running == 0
    return _rfc2544(found)


def resume(lab: SimulatedLab, out: Path, console: Console | None = None, **given: object) -> Found:
    with installed(lab):
        found = session.resume(NAME, out, given, console or quiet(), "linerate --resume")
    assert lab.running == 0
    return _rfc2544(found)


def _rfc2544(found: Findings) -> Found:
    assert isinstance(found, Found)
    return found


def quiet() -> Console:
    return Console(file=StringIO(), width=130)
