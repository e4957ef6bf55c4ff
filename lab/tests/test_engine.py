# SPDX-License-Identifier: BSD-3-Clause
"""The engine with plans of a few steps: what ends a session, and what is left then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from simulated import Simulation, printed, quiet
from trials import made_trial

from linerate.forwarders import FORWARDERS, Forwarder
from linerate.forwarders.definition import Definition
from linerate.host.errors import HopelessError, UsageError
from linerate.host.exit_status import ExitStatus
from linerate.host.process import RunDirectory
from linerate.links.nearfree import NearFree
from linerate.records.cells import Arm, Cell
from linerate.records.journal import Journal
from linerate.records.trial import RECORDS, RecordWriter, Trial, read
from linerate.runs.engine.engine import Engine
from linerate.runs.options import Options, Preset
from linerate.runs.plans.steps import (
    Attempts,
    Failures,
    GiveUp,
    More,
    Most,
    Needs,
    Once,
    OnSetup,
    Record,
    Say,
    SessionPlan,
    Step,
    Steps,
)
from linerate.trial.link_setup import LinkSetup

OPTIONS = Options(preset=Preset("quick", 1, 0.1, 0, 0, ""), hugepages="no")
CELL, ARM = Cell("null", 64, 1), Arm("c-l2fwd", "c-l2fwd")


class Written(SessionPlan):
    """A plan whose steps come from a function."""

    name, window_s, total = "written", 0.1, 4
    needs = Needs()
    failures = Failures(2, "trials in a row were invalid")

    def __init__(self, steps: Callable[[Written], Steps[None]]) -> None:
        super().__init__(OPTIONS)
        self._steps = steps
        self.holds = 0

    def steps(self) -> Steps[None]:
        return self._steps(self)

    @contextmanager
    def _held(self) -> Iterator[None]:
        self.holds += 1
        yield
        self.holds -= 1

    def held(self) -> AbstractContextManager[object]:
        return self._held()


Go = Callable[..., Engine]


@pytest.fixture
def go(tmp_path: Path, simulation: Simulation) -> Iterator[Go]:
    """Run a session of these steps, and return its engine. `earlier`: continue with these
    records.
    """
    writers = []

    def run(
        steps: Callable[[Written], Steps[None]], *, earlier: bool = False, **values: Any
    ) -> Engine:
        passed = read(tmp_path / RECORDS) if earlier else []
        writer = RecordWriter(tmp_path / RECORDS)
        writers.append(writer)
        plan = Written(steps)
        for name, value in values.items():
            setattr(plan, name, value)
        journal = Journal(writer, passed, 2 if earlier else 1)
        with RunDirectory(tmp_path) as directory:
            engine = Engine(plan, directory, journal, Console(quiet=True))
            engine.measure()
        return engine

    yield run
    for writer in writers:
        writer.close()


def once(setup: LinkSetup, block: int, **values: Any) -> Once:
    return Once(setup=setup, arm=ARM, block=block, role="measure", load="self-driven", **values)


def blocks(count: int) -> Callable[[Written], Steps[None]]:
    def steps(plan: Written) -> Steps[None]:
        def of(setup: LinkSetup) -> Steps[None]:
            for block in range(count):
                yield once(setup, block)

        yield OnSetup(CELL, of)

    return steps


def test_a_step_comes_to_what_the_plan_goes_on_with(go: Go) -> None:
    found: list[object] = []

    def steps(plan: Written) -> Steps[None]:
        def of(setup: LinkSetup) -> Steps[str]:
            trial: Trial = yield once(setup, 0)
            found.append((trial.cell.name, trial.position, len(plan.trials)))
            return "over"

        found.append((yield OnSetup(CELL, of)))
        found.append((yield Say("a line")))

    go(steps)
    assert found == [("null", 0, 1), "over", None]


def test_what_is_on_record_is_passed(go: Go, simulation: Simulation) -> None:
    go(blocks(3))
    assert len(simulation.ran) == 3
    engine = go(blocks(4), earlier=True)
    assert len(simulation.ran) == 4
    assert [trial.session for trial in engine.trials] == [1, 1, 1, 2]


def spoil(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    real = simulation.trial

    def spoilt(*arguments: Any) -> Trial:
        found = real(*arguments)
        found.reject("ended", "it crashed")
        return found

    monkeypatch.setattr(simulation, "trial", spoilt)


def test_too_many_failures_in_a_row_end_the_session(
    go: Go, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(simulation, monkeypatch)
    with pytest.raises(HopelessError, match=r"2 trials in a row .* it crashed"):
        go(blocks(4))
    assert len(simulation.ran) == 2
    # A run that ended like this is resumed to try again.
    with pytest.raises(HopelessError):
        go(blocks(4), earlier=True)
    assert len(simulation.ran) == 4


def test_a_machine_that_is_too_busy_has_a_status_of_its_own(
    go: Go, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = simulation.trial

    def disturbed(*arguments: Any) -> Trial:
        found = real(*arguments)
        found.reject("late", "most of it was late")
        found.others = {"0": {"cc1": 0.47, "as": 0.004}, "1": {}}
        return found

    monkeypatch.setattr(simulation, "trial", disturbed)
    with pytest.raises(HopelessError, match=r"was late; CPU 0: cc1 47%\n") as raised:
        go(blocks(4))
    assert raised.value.exit_code is ExitStatus.BUSY
    # The cause is known: doctor need not look for it.
    assert (raised.value.hint or "").startswith("wait until the machine is quieter; ")


def test_a_run_that_is_to_keep_going_does(
    go: Go, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(simulation, monkeypatch)
    go(blocks(4), keep_going=True)
    assert len(simulation.ran) == 4


def test_steps_are_given_up_and_the_run_goes_on(
    go: Go, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(simulation, monkeypatch)
    after: list[int] = []

    def steps(plan: Written) -> Steps[None]:
        yield GiveUp("these were given up", 4, lambda: blocks(4)(plan))
        after.append(len(plan.trials))

    engine = go(steps)
    assert after == [2]
    assert engine.monitor.total == 2
    assert engine.warnings == [
        "these were given up after 2 failures in a row; the last one: it crashed"
    ]


def test_a_budget_ends_before_what_is_not_on_record(go: Go, simulation: Simulation) -> None:
    engine = go(blocks(2), minutes=0.0)
    assert engine.unfinished
    assert not simulation.ran
    go(blocks(2))
    assert not go(blocks(2), earlier=True, minutes=0.0).unfinished


def attempts(outcomes: list[str | None], most: Most) -> Callable[[Written], Steps[None]]:
    def steps(plan: Written) -> Steps[None]:
        def of(setup: LinkSetup) -> Steps[None]:
            def run(attempt: int, record: Record) -> Trial:
                trial = made_trial(
                    experiment="written", session=plan.bench.session, arm="x", link="null",
                    load="paced", attempt=attempt,
                )  # fmt: skip
                if why := outcomes[attempt - 1]:
                    trial.reject(why, why)  # type: ignore[arg-type]
                record(trial)
                return trial

            yield Attempts(due=lambda attempt: {"attempt": attempt}, run=run, most=most)

        yield OnSetup(CELL, of)

    return steps


@pytest.mark.parametrize(
    ("outcomes", "tried"),
    [
        ([None], 1),
        (["late", None], 2),
        (["late", "late", "late", None], 3),
        # Other failures are retried up to the maximum number of starts.
        (["ended", "late", "ended", None], 3),
        (["ended", "ended", None], 2),
    ],
)
def test_a_trial_is_tried_as_often_as_it_may(
    go: Go, tmp_path: Path, outcomes: list[str | None], tried: int
) -> None:
    steps = attempts(outcomes, Most(windows=3, starts=2))
    engine = go(steps, keep_going=True)
    assert [trial.request.attempt for trial in engine.trials] == list(range(1, tried + 1))
    # The next session continues from wherever it was interrupted.
    lines = (tmp_path / RECORDS).read_text().splitlines(keepends=True)
    for kept in range(tried):
        (tmp_path / RECORDS).write_text("".join(lines[:kept]))
        again = go(steps, earlier=True, keep_going=True)
        assert [trial.request.attempt for trial in again.trials] == list(range(1, tried + 1))
        assert [trial.session for trial in again.trials] == [1] * kept + [2] * (tried - kept)


def test_what_a_plan_holds_is_let_go_also_when_a_step_fails(go: Go) -> None:
    left: list[str] = []

    def steps(plan: Written) -> Steps[None]:
        with plan.held():
            try:
                yield Step()
            finally:
                left.append("closed")

    with pytest.raises(TypeError, match="is no step"):
        go(steps)
    assert left == ["closed"]


def test_what_the_session_holds_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if something is missing, so that it never begins."""
    plan = Written(blocks(1))
    monkeypatch.setattr(plan, "prepare", lambda: (_ for _ in ()).throw(OSError("missing")))
    writer = RecordWriter(tmp_path / RECORDS)
    with (
        RunDirectory(tmp_path) as directory,
        pytest.raises(OSError, match="missing"),
        Engine(plan, directory, Journal(writer, [], 1), quiet()) as engine,
    ):
        engine.prepare()
    writer.close()
    assert plan.holds == 0


def test_a_forwarder_that_cannot_load_a_link_s_driver_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Forwarder, "prepare", lambda _: None)
    monkeypatch.setattr(NearFree, "prepare", lambda _: None)
    found = {"nearfree2": ("DPDK is linked into it statically", "--link null2")}
    monkeypatch.setattr(Forwarder, "plugin_misfit", lambda _, on: found.get(on.name))
    plan = Written(blocks(1))
    plan.needs = Needs(forwarders=("c-l2fwd",), links=("null2", "nearfree2"), clock=False)
    writer = RecordWriter(tmp_path / RECORDS)
    with (
        RunDirectory(tmp_path) as directory,
        Engine(plan, directory, Journal(writer, [], 1), quiet()) as engine,
        pytest.raises(UsageError, match="--forwarders c-l2fwd: DPDK is linked") as raised,
    ):
        engine.prepare()
    writer.close()
    assert raised.value.hint == "--link null2"


def test_a_container_without_the_telemetry_directory_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is started: its start would wait for a socket that nobody makes."""
    contained = Definition(name="contained", kind="dpdk", command="podman run --rm fw {eal}")
    monkeypatch.setitem(FORWARDERS, "contained", Forwarder(contained))
    monkeypatch.setattr(Forwarder, "prepare", lambda _: None)
    plan = Written(blocks(1))
    plan.needs = Needs(forwarders=("contained",), clock=False)
    writer = RecordWriter(tmp_path / RECORDS)
    with (
        RunDirectory(tmp_path) as directory,
        Engine(plan, directory, Journal(writer, [], 1), quiet()) as engine,
        pytest.raises(UsageError, match=r"^--forwarders contained: ") as raised,
    ):
        engine.prepare()
    writer.close()
    assert "podman run --rm -v " in str(raised.value.hint)


def test_more_and_fewer_trials_are_counted(go: Go) -> None:
    def steps(plan: Written) -> Steps[None]:
        yield More(3)
        yield More(-1)

    assert go(steps).monitor.total == 6


def test_progress_names_the_unit(tmp_path: Path, simulation: Simulation) -> None:
    console, plan = quiet(), Written(blocks(1))
    plan.total, plan.unit = 1, "window"
    writer = RecordWriter(tmp_path / RECORDS)
    with RunDirectory(tmp_path) as directory:
        Engine(plan, directory, Journal(writer, [], 1), console).measure()
    writer.close()
    assert "1/1 windows, null 64 B c-l2fwd" in printed(console)
