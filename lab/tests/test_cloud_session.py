# SPDX-License-Identifier: BSD-3-Clause
"""A session of experiment cloud before its first block: its budget, and what it goes on with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cloud_data import PART, design
from rich.console import Console
from simulated import KilledError, install_machine
from trials import made_trial

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session import plan
from linerate.experiments.cloud.session.plan import Cloud
from linerate.host.errors import LabError
from linerate.host.process import RunDirectory
from linerate.records.journal import Journal
from linerate.records.trial import RecordWriter, Trial
from linerate.runs.engine import ledger
from linerate.runs.engine.engine import Engine
from linerate.runs.options import Preset
from linerate.runs.plans.steps import Announce, Attempts, Most, Record, Steps

NOTHING: Any = None
BLANK = {
    "experiment": "cloud", "seed": 1, "block": 0, "role": "self-test", "arm": "xdp-tx",
    "forwarder": "xdp-tx", "link": "veth", "size": 64, "load": "paced", "started_at": "",
}  # fmt: skip


class Session:
    """Two frameworks and two sizes; an attempt is a minute of a clock that nothing else moves."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self._monkeypatch = monkeypatch
        self.counts = {"found": 0, "kept": 0}
        install_machine(monkeypatch, NOTHING, NOTHING)
        monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: self.now))
        for name in ("Groups", "bridge"):
            monkeypatch.setattr(plan, name, nullcontext)
        monkeypatch.setattr(plan, "search_rate", lambda *_: self._step("found"))
        monkeypatch.setattr(plan, "kept", lambda *_: self._step("kept"))
        asked = Options(preset=Preset("quick", 1, 1.0, 0, 0, ""), links=["veth"], hugepages="off")
        self.plan = Cloud(asked, design())
        self.writer = RecordWriter(path / "records.jsonl")
        self.journal = Journal(self.writer, [], 1)

    def _step(self, what: str) -> Steps[float]:
        def run(attempt: int, record: Record) -> Trial:
            self.counts[what] += 1
            self.now += 60.0
            trial = made_trial(**BLANK, position=len(self.journal.trials))
            record(trial)
            return trial

        yield Attempts(due=lambda _: {}, run=run, most=Most(1), counts=False, fails=False)
        return 1000.0

    def searches(self, run: RunDirectory, minutes: float) -> tuple[tuple[int, int], bool]:
        """How many own rates are looked for within a budget, and of how many it is asked what is
        kept; and whether the session ended before its first block.
        """
        self.plan.minutes = minutes

        def blocks(*_: object) -> Steps[None]:
            raise KilledError
            yield Announce("")

        self._monkeypatch.setattr(self.plan, "_block", blocks)
        session = Engine(self.plan, run, self.journal, Console(quiet=True))
        with suppress(KilledError):
            session.measure()
        return (self.counts["found"], self.counts["kept"]), session.unfinished


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    found = Session(tmp_path, monkeypatch)
    yield found
    found.writer.close()


@pytest.mark.parametrize(
    ("minutes", "found", "kept"),
    [(0.5, 1, 0), (3, 3, 0), (3.5, 4, 0), (6, 4, 2), (7.5, 4, 4), (8.5, 4, 4)],
)
def test_searches_are_within_the_budget(
    tmp_path: Path, session: Session, minutes: float, found: int, kept: int
) -> None:
    with RunDirectory(tmp_path) as run:
        counts, unfinished = session.searches(run, minutes)
    assert counts == (found, kept)
    assert unfinished == (found + kept < 8)


def test_what_is_on_record_is_passed_without_a_budget(tmp_path: Path, session: Session) -> None:
    earlier = [made_trial(**BLANK, position=n) for n in range(8)]
    session.journal = Journal(session.writer, earlier, 2)
    with RunDirectory(tmp_path) as run:
        counts, unfinished = session.searches(run, 0.0)
    assert counts == (0, 0)
    assert len(session.journal.trials) == 8
    assert not unfinished


def own_core() -> CloudDesign:
    return design(replace(PART, cpus=("shared", "own")))


def test_a_session_without_the_tenants_core_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be on the forwarder's, in cells that say otherwise."""
    session.plan.design = own_core()
    monkeypatch.setattr(Cloud, "room", Room(forwarder=1, spare=None))
    with pytest.raises(LabError, match=r"18 cells of this run .* no other core") as raised:
        session.plan.prepare()
    assert "when the run began" in str(raised.value)
