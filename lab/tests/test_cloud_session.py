# SPDX-License-Identifier: BSD-3-Clause
"""A session of experiment cloud before its first block: its budget, and what it goes on with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cloud_data import PART, design
from rich.console import Console

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session import experiment
from linerate.experiments.cloud.session.experiment import Cloud
from linerate.host.errors import LabError
from linerate.host.process import RunDirectory
from linerate.records.journal import Journal
from linerate.records.trial import RecordWriter
from linerate.runs.options import Preset

NOTHING: Any = None


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Cloud]:
    """Two frameworks and two sizes; a search is a minute of a clock that nothing else moves."""
    asked = Options(preset=Preset("quick", 1, 1.0, 0, 0, ""), links=["veth"], hugepages="off")
    with RunDirectory(tmp_path) as run:
        writer = RecordWriter(tmp_path / "records.jsonl")
        yield Cloud(asked, design(), run, Journal(writer, [], 1), Console(quiet=True))
        writer.close()


def searches(session: Cloud, monkeypatch: pytest.MonkeyPatch, minutes: float) -> tuple[int, int]:
    """How many own rates are looked for within a budget, and of how many it is asked what is kept;
    both take a minute.
    """
    now, counts = [0.0], {"found": 0, "kept": 0}

    def step(what: str) -> float:
        counts[what] += 1
        now[0] += 60.0
        return 1000.0

    monkeypatch.setattr(experiment, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(experiment, "search_rate", lambda *_, **__: step("found"))
    monkeypatch.setattr(experiment, "kept", lambda *_: step("kept"))
    session._deadline = minutes * 60
    session._own_rates(NOTHING, NOTHING)
    return counts["found"], counts["kept"]


@pytest.mark.parametrize(
    ("minutes", "found", "kept"),
    [(0.5, 1, 0), (3, 3, 0), (3.5, 4, 0), (6, 4, 2), (7.5, 4, 4), (8.5, 4, 4)],
)
def test_searches_are_within_the_budget(
    session: Cloud, monkeypatch: pytest.MonkeyPatch, minutes: float, found: int, kept: int
) -> None:
    assert searches(session, monkeypatch, minutes) == (found, kept)
    assert session.unfinished == (found + kept < 8)


def test_what_is_on_record_is_passed_without_a_budget(
    session: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.journal, "peek", object)
    assert searches(session, monkeypatch, 0.5) == (4, 4)
    assert not session.unfinished


def own_core() -> CloudDesign:
    return design(replace(PART, cpus=("shared", "own")))


def test_a_session_without_the_tenants_core_is_refused(session: Cloud) -> None:
    """They would be on the forwarder's, in cells that say otherwise."""
    session.design = own_core()
    session.room = Room(forwarder=1, spare=None)
    with pytest.raises(LabError, match=r"18 cells of this run .* no other core") as raised:
        session.prepare()
    assert "when the run began" in str(raised.value)
