# SPDX-License-Identifier: BSD-3-Clause
"""The rate that a framework carries alone, searched over sessions: no record of a search is
lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from simulated import install_machine
from trials import made_trial

from linerate.experiments.cloud.session import own_rate
from linerate.host.process import RunDirectory
from linerate.records.cells import Cell
from linerate.records.journal import Journal
from linerate.records.trial import RECORDS, RecordWriter, Trial, read
from linerate.runs.engine.engine import Engine
from linerate.runs.options import Options, Preset
from linerate.runs.plans.steps import Failures, Needs, SessionPlan, Steps
from linerate.trial.search.device import Outcome
from linerate.trial.search.setup_device import Asked, outcome_of
from linerate.trial.trial import Bench

CARRIES, FLOODED = 700_000.0, 1_000_000.0


def window(role: str, pps: float, seconds: float) -> Trial:
    intended = round(pps * seconds)
    received = min(intended, round(CARRIES * seconds))
    return made_trial(
        experiment="cloud", role=role, arm="xdp-tx", link="veth", load="paced",
        intended=intended, received=received, duration_s=seconds,
    )  # fmt: skip


class Device:
    """Replaces `SetupDevice`."""

    def __init__(self, bench: Bench, *_: object, max_pps: float, record: Any, **__: object) -> None:
        self.max_pps = max_pps
        self._session = bench.session
        self.test, self.void = "throughput", 0
        self._record = record

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        trial = window("search", pps, seconds)
        trial.request.test, trial.request.attempt, trial.request.maximum_pps = (
            "throughput",
            1,
            self.max_pps,
        )
        trial.identity.session = self._session
        Asked(pps, seconds, latency=latency).enter(trial)
        self._record(trial)
        return outcome_of(trial)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None: ...


class Search(SessionPlan):
    """A session that searches for one framework's rate, and nothing else."""

    name, window_s, total, failures = "cloud", 1.0, 1, Failures(1, "")
    needs = Needs(clock=False)
    found: float | None = None

    def steps(self) -> Steps[None]:
        self.found = yield from own_rate.search_rate("xdp-tx", Cell("veth", 64, 1))


def searched(path: Path, session: int) -> tuple[float | None, Journal]:
    earlier = read(path / RECORDS) if session > 1 else []
    writer = RecordWriter(path / RECORDS)
    journal, plan = (
        Journal(writer, earlier, session),
        Search(Options(preset=Preset("quick", 1, 1.0, 0, 0, ""), hugepages="no")),
    )
    try:
        with RunDirectory(path) as run:
            Engine(plan, run, journal, Console(quiet=True)).measure()
        return plan.found, journal
    finally:
        writer.close()


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(bench: Bench, *_: object) -> Trial:
        trial = window("self-test", FLOODED, 0.3)
        trial.request.load, trial.identity.session = "flood", bench.session
        trial.frames.received = round(FLOODED * 0.3)
        return trial

    install_machine(monkeypatch, flood, Device)


@pytest.mark.usefixtures("simulated")
def test_a_search_that_had_no_more_time_is_passed_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records end where those of the next load begin, for the same forwarder."""
    monkeypatch.setattr(own_rate, "LIMIT_S", 1e-9)
    none, first = searched(tmp_path, 1)
    assert none is None
    tops = {trial.request.maximum_pps for trial in first.trials if trial.role == "search"}
    assert tops == {share * FLOODED for share in own_rate.TOPS}
    monkeypatch.setattr(own_rate, "LIMIT_S", 60.0)
    _, again = searched(tmp_path, 2)
    assert [each.session for each in again.trials[: len(first.trials)]] == [1] * len(first.trials)


@pytest.mark.usefixtures("simulated")
def test_a_search_is_the_same_wherever_it_was_interrupted(tmp_path: Path) -> None:
    whole, made = searched(tmp_path, 1)
    assert whole is not None
    assert whole == pytest.approx(CARRIES, rel=0.03)
    lines = (tmp_path / RECORDS).read_text().splitlines(keepends=True)
    for kept in range(1, len(lines) + 1):
        (tmp_path / RECORDS).write_text("".join(lines[:kept]))
        found, again = searched(tmp_path, 2)
        assert found == whole
        assert len(again.trials) == len(made.trials)
