# SPDX-License-Identifier: BSD-3-Clause
"""Runs of earlier versions are read, reported, compared and resumed, with the same figures.

`old_runs` has some as they were written before records, engine and packages were made anew: runs of
real programs under their own names, and those of simulated machines under `simulated-NAME`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from simulated import Simulation, quiet, resume

from linerate.records.trial import RECORDS
from linerate.runs.compare import compare
from linerate.runs.kept.rebuild import merge, report
from linerate.runs.kept.stored import stored

OLD = Path(__file__).with_name("old_runs")
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in OLD.glob("*.tar.xz"))
WHOLE = [name for name in NAMES if not name.endswith("killed")]


@pytest.fixture
def old(tmp_path: Path) -> Any:
    def unpacked(name: str) -> Path:
        # Not by tarfile, because Debian 12's Python lacks its filters.
        shutil.unpack_archive(OLD / f"{name}.tar.xz", tmp_path)
        return tmp_path / name.removeprefix("simulated-")

    return unpacked


def test_they_are_here() -> None:
    assert len(NAMES) == 11


@pytest.mark.parametrize("name", WHOLE)
def test_the_report_says_the_same(name: str, old: Any) -> None:
    directory = old(name)
    before = json.loads((directory / "summary.json").read_text())
    report([directory], None, quiet())
    after = json.loads((directory / "summary.json").read_text())
    assert after == before
    assert "</html>" in (directory / "report.html").read_text()


def test_they_are_compared(old: Any) -> None:
    before, after = (stored(old(f"simulated-overload-{each}")) for each in ("before", "after"))
    found = {(c.link, c.load_share): c.verdict for c in compare(before, after, 0.02).changes}
    assert found[("null", None)] == "slower"
    assert {verdict for (link, load), verdict in found.items() if load} == {"slower"}


def test_they_are_merged(old: Any, tmp_path: Path) -> None:
    parts = [stored(old(f"simulated-overload-{each}")) for each in ("before", "after")]
    found = merge(parts, tmp_path / "both", quiet())
    rates = [c for c in found.summary.comparisons if c.link == "null"]
    assert {c.n for c in rates} == {24}


def test_one_that_was_killed_is_resumed(old: Any, simulation: Simulation) -> None:
    directory = old("simulated-overload-killed")
    earlier = [trial.model_dump() for trial in stored(directory).trials]
    simulation.noise = "3"
    resume(directory)
    after = stored(directory)
    assert [trial.model_dump() for trial in after.trials[: len(earlier)]] == earlier
    # Its lines are unchanged; new ones follow them and belong to the run.
    lines = [json.loads(line) for line in (directory / RECORDS).read_text().splitlines()]
    schemas = [line["schema"] for line in lines]
    new = len(lines) - len(earlier)
    assert schemas == ["linerate/trial-1"] * len(earlier) + ["linerate/trial-2"] * new
    assert {trial.identity.run for trial in after.trials} == {None, after.run.id}
    assert after.run.complete(len(after.trials))
    assert len(after.run.sessions) == 2
