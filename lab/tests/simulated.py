# SPDX-License-Identifier: BSD-3-Clause
"""Runs of experiments in blocks on a simulated machine: all of the lab, but no processes.

The trials of `conftest.simulated_trial` replace real ones; order, journal, records, run.json, lock,
summary and report are the lab's own.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import probed, simulated_trial
from rich.console import Console

from linerate.cli.console import WIDE
from linerate.experiments.overload.options import PRESETS, Options
from linerate.host import machine
from linerate.host.cores.cpus import Cores
from linerate.host.errors import DisturbedError
from linerate.host.machine import Machine
from linerate.links.eal import Memory
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Method, Role, Test, Trial
from linerate.runs import provenance, session
from linerate.runs.engine import engine, started
from linerate.runs.engine.engine import Engine
from linerate.runs.experiment import Findings
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Outcome
from linerate.trial.search.setup_device import Terms, outcome_of
from linerate.trial.trial import Bench, Plan

MACHINE = Machine(
    cpu_model="simulated",
    cpu_count=2,
    cpus_allowed=[0, 1],
    cpu_flags_tsc=[],
    numa_nodes=1,
    kernel="6.0",
    hugepages=[],
    dpdk_version="22.11",
    python="3.11",
)


class KilledError(Exception):
    """The simulated lab dies: like SIGKILL, nothing after it is written."""


class Simulation:
    """The properties of the simulated machine, and the trials that it was asked for.

    `slower`: factor on the rate of an arm. `before`: called before each trial.
    """

    def __init__(self) -> None:
        self.ran: list[Trial] = []
        self.slower: dict[str, float] = {}
        self.machine = MACHINE
        self.digests = {"c-l2fwd": "a", "rust-l2fwd": "b"}
        self.noise = "1"
        self.before: Callable[[Plan], None] = lambda plan: None

    def trial(self, bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
        self.before(plan)
        cell = Cell(setup.link.name, setup.context.size, 1)
        source = random.Random(
            f"{self.noise}:{cell}:{plan.arm}:{plan.block}:{plan.role}:{plan.load_share}"
        )
        found = simulated_trial(
            source, plan.arm.forwarder, plan.arm.label, cell,
            block=plan.block, position=plan.position,
        )  # fmt: skip
        found.identity.seed, found.identity.session, found.identity.role = (
            bench.seed,
            bench.session,
            plan.role,
        )
        found.identity.experiment = bench.experiment
        factor = self.slower.get(plan.arm.label, 1.0)
        for name in ("forwarder_rx", "forwarder_tx", "accepted", "received"):
            if (count := getattr(found.frames, name)) is not None:
                setattr(found.frames, name, round(count / factor))
        if found.frames.attempted and found.frames.accepted is not None:
            found.frames.refused = found.frames.attempted - found.frames.accepted
        if plan.role in ("probed", "lower-load"):
            probed(found)
            for entry in found.frames.polling or ():
                entry.busy_tsc = round(entry.busy_tsc * factor * source.gauss(1.0, 0.005))
        if plan.load_share is not None and plan.pps is not None:
            found.request.load, found.request.load_share, found.frames.refused = (
                "paced",
                plan.load_share,
                None,
            )
            found.frames.attempted = found.frames.accepted = found.frames.received = round(
                plan.pps * 0.3
            )
            found.frames.forwarder_rx = found.frames.forwarder_tx = found.frames.received
        self.ran.append(found)
        return found


class Windows:
    """Replaces the lower loads' `SetupDevice`: each window is a trial of the machine."""

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
        self.test: Test = "core-use"
        self.void = 0
        self.max_pps = max_pps
        self._windows = terms.windows
        self._record = record

        def window(pps: float) -> Trial:
            share = round(pps / max_pps, 9)
            return simulation.trial(
                bench, Plan(arm, "paced", block, 0, role, share, pps, probe), setup
            )

        self._window = window

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        void, self.void = self.void, 0
        for attempt in range(void + 1, self._windows + 1):
            trial = self._window(pps)
            trial.request.test, trial.request.attempt = self.test, attempt
            trial.request.pps, trial.request.seconds = pps, seconds
            trial.request.maximum_pps = self.max_pps
            self._record(trial)
            if trial.valid:
                return outcome_of(trial)
        raise DisturbedError("all windows were disturbed")

    def __enter__(self) -> Windows:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def install(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Put a simulated machine where the lab starts processes and reads the real one."""
    found = Simulation()

    def run_trial(bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
        return found.trial(bench, plan, setup)  # which a test may replace

    install_machine(monkeypatch, run_trial, partial(Windows, found))
    monkeypatch.setattr(Engine, "programs", lambda self: dict(found.digests))
    monkeypatch.setattr(machine, "facts", lambda: found.machine)
    return found


def install_machine(
    patch: pytest.MonkeyPatch,
    run_trial: Callable[[Bench, Plan, LinkSetup], Trial],
    device: Callable[..., object],
) -> None:
    """Replace the only places where sessions use a machine: trials and devices are those given."""
    patch.setattr(engine, "run_trial", run_trial)
    patch.setattr(started, "SetupDevice", device)
    patch.setattr(Engine, "prepare", lambda self: None)
    patch.setattr(Engine, "programs", lambda self: {})
    patch.setattr(Cores, "choose", lambda: Cores(0, 0, False))
    patch.setattr(Memory, "choose", lambda wanted="auto": Memory(wanted == "yes"))
    patch.setattr(machine, "facts", lambda: MACHINE)
    patch.setattr(provenance, "versions", lambda: {"linerate": "0"})
    patch.setattr(session, "versions", lambda: {"linerate": "0"})
    # A run has hundreds of records, and the disk is not what is tested.
    patch.setattr("os.fsync", lambda _: None)


def options(**values: Any) -> dict[str, Any]:
    """Return two arms on null with six blocks, unless told otherwise."""
    asked: dict[str, Any] = {
        "links": ["null"], "forwarders": ["c-l2fwd", "rust-l2fwd"], "blocks": 6,
    }  # fmt: skip
    return asdict(Options(preset=PRESETS["quick"], **(asked | values)))


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


def assert_nothing_wraps(show: Callable[[Console], None]) -> None:
    """Check that the output is the same however wide a pipe is."""
    piped, endless = (Console(file=io.StringIO(), width=width) for width in (WIDE, 10 * WIDE))
    show(piped)
    show(endless)
    assert printed(piped) == printed(endless)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def start(out: Path, **values: Any) -> Findings:
    return session.start("overload", options(**values), out, quiet(), "linerate run overload")


def resume(out: Path, console: Console | None = None, **given: object) -> Findings:
    return session.resume("overload", out, given, console or quiet(), "linerate --resume")


@contextmanager
def killed_at(simulation: Any, trials: int) -> Iterator[None]:
    """Kill the lab in this block once the simulated machine ran so many trials; then restore it."""

    def before(_: object) -> None:
        if len(simulation.ran) >= trials:
            raise KilledError

    simulation.before = before
    with pytest.raises(KilledError):
        yield
    simulation.before = lambda _: None


def killed(out: Path, simulation: Simulation, after: int, **values: Any) -> None:
    """Return a run that was killed after so many trials: what SIGKILL leaves, without the
    process.
    """
    with killed_at(simulation, len(simulation.ran) + after):
        start(out, **values)
