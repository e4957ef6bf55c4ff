# SPDX-License-Identifier: BSD-3-Clause
"""Runs with a program that this version does not know are reported and compared as usual."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloud_data
import pytest
import simulated
import simulated_graph
import simulated_latency
import simulated_paths
import test_l3fwd as l3fwd
from simulated import Simulation, install, quiet
from simulated_lab import SimulatedLab
from simulated_lab import start as start_rfc2544

from linerate.experiments.cloud.analysis.summarise import summarise
from linerate.forwarders import FORWARDERS
from linerate.records.cells import AA_SUFFIX
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS
from linerate.runs.compare import compare
from linerate.runs.kept.rebuild import report
from linerate.runs.kept.stored import stored
from linerate.runs.registry import experiments
from linerate.verdict import programs as recorded_programs

THEIRS = "their-fwd"


def renamed(directory: Path, name: str) -> None:
    """As if another version, which knows one more program, had made the run."""
    for file in (directory / RECORDS, directory / RUN):
        text = file.read_text()
        for end in ("", AA_SUFFIX):
            text = text.replace(f'"{name}{end}"', f'"{THEIRS}{end}"')
        file.write_text(text)


def renamed_with_builds(directory: Path, name: str) -> None:
    """The same for a program of `graph`, whose name begins the names of builds: c-graph/gcc."""
    for file in (directory / RECORDS, directory / RUN):
        file.write_text(file.read_text().replace(name, THEIRS))


def told(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return found


def same_but_for_the_name(found: dict[str, Any], name: str) -> dict[str, Any]:
    """What both summaries must agree on: figures and verdicts."""
    keys = ("comparisons", "cells", "aa", "bands", "graph")
    text = json.dumps([found.get(key) for key in keys])
    again: dict[str, Any] = json.loads(text.replace(name, THEIRS))
    return again


def check(directory: Path, name: str, rename: Callable[[Path, str], None] = renamed) -> None:
    before = same_but_for_the_name(told(directory), name)
    rename(directory, name)
    report([directory], None, quiet())
    after = told(directory)
    assert same_but_for_the_name(after, name) == before
    assert THEIRS in (directory / "report.html").read_text()
    assert name not in json.dumps(after["cells"])


def test_overload(tmp_path: Path, simulation: Simulation) -> None:
    simulated.start(tmp_path / "run", links=["null", "memif"], blocks=8)
    check(tmp_path / "run", "rust-l2fwd")


def test_rfc2544(tmp_path: Path) -> None:
    start_rfc2544(SimulatedLab(), tmp_path / "run", tests=("throughput",), blocks=6)
    check(tmp_path / "run", "rust-l2fwd")


@pytest.mark.parametrize("name", ["af-packet-read-write", "c-l2fwd"])
def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    simulated_paths.Wire().install(install(monkeypatch))
    simulated_paths.start(tmp_path / "run", blocks=6)
    check(tmp_path / "run", name)


def test_latency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated_latency.install(monkeypatch)
    simulated_latency.start(tmp_path / "run", blocks=6)
    check(tmp_path / "run", "c-l2fwd")


def test_l3fwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    l3fwd.start(tmp_path / "run")
    check(tmp_path / "run", "rust-l3fwd-graph-fused")


@pytest.mark.parametrize(
    "name", ["rust-graph", pytest.param("c-graph", marks=pytest.mark.second_tier)]
)
def test_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    simulated_graph.Fake(monkeypatch, tmp_path)
    simulated_graph.start(tmp_path / "run", cells=["chain4/swap/hash5/*", "chain4/assign1/hash5/*"])
    check(tmp_path / "run", name, renamed_with_builds)


def test_every_experiment_has_a_test() -> None:
    assert [name for name in experiments() if f"test_{name}" not in globals()] == []


def test_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    design = cloud_data.design()
    trials = cloud_data.records(design)
    setup = cloud_data.setup(design)
    before = summarise(setup, design, trials, interrupted=False)
    monkeypatch.setattr(recorded_programs, "FORWARDERS", {})
    assert summarise(setup, design, trials, interrupted=False) == before


def test_runs_are_compared(tmp_path: Path, simulation: Simulation) -> None:
    directories = []
    for seed in (1, 2):
        simulation.noise = str(seed)
        directories.append(tmp_path / str(seed))
        simulated.start(directories[-1], blocks=20, seed=seed, forwarders=["c-l2fwd", "rust-l2fwd"])
        renamed(directories[-1], "rust-l2fwd")
    found = compare(stored(directories[0]), stored(directories[1]), 0.02)
    assert {(each.arm, each.verdict) for each in found.changes} == {(THEIRS, "not slower")}


def test_an_older_record_of_an_unknown_program_has_an_unknown_language(
    tmp_path: Path, simulation: Simulation
) -> None:
    simulated.start(tmp_path / "run", links=["null"], blocks=6)
    path = tmp_path / "run" / RECORDS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["program"]["described"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report([tmp_path / "run"], None, quiet())
    languages = {arm["arm"]: arm["language"] for arm in told(tmp_path / "run")["cells"][0]["arms"]}
    assert languages["rust-l2fwd"] == FORWARDERS["rust-l2fwd"].language
    renamed(tmp_path / "run", "rust-l2fwd")
    report([tmp_path / "run"], None, quiet())
    languages = {arm["arm"]: arm["language"] for arm in told(tmp_path / "run")["cells"][0]["arms"]}
    assert languages[THEIRS] == "unknown"
