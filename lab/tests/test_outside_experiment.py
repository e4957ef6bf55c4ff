# SPDX-License-Identifier: BSD-3-Clause
"""An experiment of another package is run, resumed, reported and compared like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Linerate
from simulated import Simulation

from linerate.runs.registry import EXPERIMENTS, experiments

OUTSIDE = Path(__file__).with_name("outside")
RUN = ("run", "floods", "--blocks", "20")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the package look installed: its metadata are on the path."""
    monkeypatch.syspath_prepend(str(OUTSIDE))


def test_it_is_named_with_the_others(linerate: Linerate) -> None:
    assert experiments().keys() == EXPERIMENTS.keys() | {"floods"}
    assert "floods" in linerate("run", "--help").stdout
    told = linerate("run", "floods", "--help")
    assert "Flood forwarders with frames of several sizes" in told.stdout
    assert "quick (8 blocks)" in told.stdout


def test_it_is_run_reported_and_compared(
    tmp_path: Path, simulation: Simulation, linerate: Linerate
) -> None:
    done = linerate(*RUN, "--out", "before")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "before" / "summary.json").read_text())
    assert (summary["experiment"], summary["trials"]) == ("floods", 3 * 20)
    assert "which forwarder carries more?" in (tmp_path / "before" / "report.html").read_text()
    simulation.noise, simulation.slower = "2", {"rust-l2fwd": 1.1}
    slower = linerate(*RUN, "--out", "after", "--seed", "2", "--fail-if", "slower")
    assert slower.returncode == 1, slower.stderr
    assert linerate("compare", "before", "after").returncode == 1
    assert linerate("compare", "after", "before").returncode == 0
    assert linerate("report", "before").returncode == 0


def test_it_is_resumed_with_its_options(simulation: Simulation, linerate: Linerate) -> None:
    assert linerate(*RUN, "--out", "run").returncode == 0
    again = linerate("run", "floods", "--resume", "run")
    assert again.returncode == 0, again.stderr
    assert "all 60 trials are done" in again.stdout
    refused = linerate("run", "floods", "--resume", "run", "--sizes", "128")
    assert refused.returncode == 2
    assert "--sizes 128: the run in run has --sizes 64" in refused.stderr


def test_the_lab_keeps_its_own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bold-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: bold\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[linerate.experiments]\noverload = bold:Runs\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert experiments()["overload"] == EXPERIMENTS["overload"]
