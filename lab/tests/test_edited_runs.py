# SPDX-License-Identifier: BSD-3-Clause
"""Edited files of a run: an error names file and field, or the directory."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import simulated
import simulated_lab
from simulated import Simulation
from simulated_lab import SimulatedLab
from trials import part_of

from linerate.host.errors import RunError
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS
from linerate.report.page import commands
from linerate.runs import compare as regression
from linerate.runs import session
from linerate.runs.kept import rebuild
from linerate.runs.kept.stored import stored

LATENCY = {"count": 1, "minimum_ns": 1.0, "mean_ns": 1.0, "maximum_ns": 1.0}


def report(directory: Path) -> None:
    rebuild.report([directory], None, simulated.quiet())


def edit_record(directory: Path, line: int, **fields: Any) -> None:
    path = directory / RECORDS
    lines = path.read_text().splitlines()
    data = json.loads(lines[line - 1])
    for name, value in fields.items():
        data[part_of(name)][name] = value
    lines[line - 1] = json.dumps(data)
    path.write_text("".join(f"{each}\n" for each in lines))


def edit_run(directory: Path, where: str, value: Any) -> None:
    """Edit run.json. `where`: names and indexes, with points between them."""
    path = directory / RUN
    data = found = json.loads(path.read_text())
    *way, last = (int(step) if step.isdigit() else step for step in where.split("."))
    for step in way:
        found = found[step]
    found[last] = value
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("name", [RUN, RECORDS])
@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_what_is_no_file_is_refused(
    tmp_path: Path, simulation: Simulation, name: str, kind: str
) -> None:
    """The lab would wait for a pipe, and read /dev/zero without an end."""
    simulated.start(tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(RunError, match=re.escape(str(path))):
        report(tmp_path / "run")


@pytest.mark.parametrize("name", [RUN, RECORDS])
def test_lists_in_lists_without_end_are_refused(
    tmp_path: Path, simulation: Simulation, name: str
) -> None:
    simulated.start(tmp_path / "run")
    (tmp_path / "run" / name).write_text("[" * 100_000 + "\n")
    with pytest.raises(RunError, match=f"{tmp_path / 'run' / name}.*(nested|recursion)"):
        report(tmp_path / "run")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"duration_s": math.nan}, "duration_s: Input should be a finite number"),
        ({"duration_s": math.inf}, "duration_s: Input should be a finite number"),
        ({"duration_s": -0.3}, "duration_s: Input should be greater than or equal to 0"),
        ({"forwarder_rx": -1}, "forwarder_rx: Input should be greater than or equal to 0"),
        ({"forwarder_rx": 10**400}, f"forwarder_rx: Input should be less than {2**63}"),
        ({"processes": [{"role": "forwarder", "argv": [], "cpus": []}]}, "processes.0.cpus: List"),
        ({"latency": LATENCY | {"quantiles_ns": {"median": 1.0}}}, "latency.quantiles_ns.median"),
        ({"latency": LATENCY | {"mean_ns": math.nan}}, "latency.mean_ns: Input should be a finite"),
    ],
)
def test_a_record_is_named_by_its_line(
    tmp_path: Path, simulation: Simulation, fields: dict[str, Any], message: str
) -> None:
    run = tmp_path / "run"
    simulated.start(run)
    edit_record(run, 3, **fields)
    for tell in (report, simulated.resume, stored):
        with pytest.raises(RunError, match=rf"records.jsonl, line 3: .*{re.escape(message)}"):
            tell(run)


def test_a_build_that_is_half_told_is_not_shown(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    simulated.start(run)
    for line in range(1, len((run / RECORDS).read_text().splitlines()) + 1):
        edit_record(run, line, build={"compiler": "cc"})
    report(run)
    assert not any(each.build for each in commands(stored(run).trials))


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("cells", [], "design.cells: List should have at least 1 item"),
        ("cells.0.blocks", 0, "design.cells.0.blocks: Input should be greater than or equal to 1"),
        ("cells.0.blocks", 10**9, "design.cells.0.blocks: Input should be less than or equal to"),
        ("arms", [], "design.arms: List should have at least 1 item"),
        ("window_s", math.nan, "design.window_s: Input should be a finite number"),
        ("line_rate", math.inf, "design.line_rate: Input should be a finite number"),
        ("line_rate", 0, "design.line_rate: Input should be greater than 0"),
        ("cells.0.link", "ports", "design: 0 generator_ports and 0 forwarder_ports"),
        ("generator_ports", ["ring:a"], "design: 1 generator_ports and 0 forwarder_ports"),
    ],
)
def test_a_design_is_named_by_its_field(
    tmp_path: Path, simulation: Simulation, where: str, value: object, message: str
) -> None:
    run = tmp_path / "run"
    simulated.start(run)
    edit_run(run, f"design.{where}", value)
    with pytest.raises(RunError, match=re.escape(f"run.json: {message}")):
        report(run)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("searched") / "run"
    simulated_lab.start(SimulatedLab(), directory, tests=("throughput",), blocks=1)
    return directory


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("shared_by", 0, "design.shared_by: Input should be greater than or equal to 1"),
        ("search.goals", [], "design.search.goals: Tuple should have at least 1 item"),
        ("search.latency_loads", [], "design.search.latency_loads: Tuple should have at least 1"),
        ("search.core_use_loads", [], "design.search.core_use_loads: Tuple should have at least 1"),
        ("search.limit_s", math.inf, "design.search.limit_s: Input should be a finite number"),
        ("search.goals.0.width", math.nan, "design.search.goals.0.width: Input should be a finite"),
    ],
)
def test_a_design_of_searches_is_named_by_its_field(
    tmp_path: Path, searched: Path, where: str, value: object, message: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(searched, run)
    edit_run(run, f"design.{where}", value)
    with pytest.raises(RunError, match=re.escape(f"run.json: {message}")):
        report(run)


@pytest.mark.parametrize("where", ["line_rate", "preset.limit_s", "preset.goals.0.final_s"])
def test_options_are_named_by_their_field(tmp_path: Path, searched: Path, where: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(searched, run)
    edit_run(run, f"options.{where}", math.nan)
    message = rf"run.json: options\.{where}: Input should be a finite number"
    with pytest.raises(RunError, match=message):
        session.resume("rfc2544", run, {}, simulated.quiet(), "")


def test_what_no_check_finds_is_an_error_that_names_the_directory(
    tmp_path: Path, simulation: Simulation
) -> None:
    """Frames over so short a time are a rate that no number can express."""
    for name in ("one", "two"):
        simulated.start(tmp_path / name, seed=len(name))
    one, two = tmp_path / "one", tmp_path / "two"
    for line in range(1, len((one / RECORDS).read_text().splitlines()) + 1):
        edit_record(one, line, duration_s=5e-324)
    message = f"{one}: nothing can be made of run.json and records.jsonl: "
    for tell in (report, simulated.resume):
        with pytest.raises(RunError, match=re.escape(message)):
            tell(one)
    with pytest.raises(RunError, match=re.escape(message)):
        regression.compare(stored(one), stored(two), margin=0.02)
    both = re.escape(f"{one} and {two}: nothing can be made of")
    with pytest.raises(RunError, match=both):
        rebuild.report([one, two], tmp_path / "both", simulated.quiet())
    assert not (tmp_path / "both").exists()


def test_a_session_of_no_version_is_told(tmp_path: Path, simulation: Simulation) -> None:
    """The page names it; a session without a version was a traceback."""
    simulated.start(tmp_path)
    edit_run(tmp_path, "sessions.0.versions", {"dpdk": "22.11"})
    report(tmp_path)
    assert "(version unknown)" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("blocks", ["eight", 0, None, {}])
def test_blocks_that_were_added_to_a_run_are_read_as_its_own(
    tmp_path: Path, simulation: Simulation, blocks: object
) -> None:
    simulated.start(tmp_path, probe=False)
    more: dict[str, Any] = {"--blocks": 8}
    simulated.resume(tmp_path, **more)
    edit_run(tmp_path / "more-1", "design.cells.0.blocks", blocks)
    named = f"{re.escape(str(tmp_path / 'more-1' / RUN))}: design.cells.0.blocks"
    for again in (lambda: report(tmp_path), lambda: simulated.resume(tmp_path, **more)):
        with pytest.raises(RunError, match=named):
            again()


def test_the_run_of_several_whose_design_is_none_is_named(
    tmp_path: Path, simulation: Simulation
) -> None:
    for name in ("a", "b"):
        simulated.start(tmp_path / name)
    edit_run(tmp_path / "b", "design.arms", "x")
    with pytest.raises(RunError, match=f"^{re.escape(str(tmp_path / 'b' / RUN))}: design.arms"):
        rebuild.report([tmp_path / "a", tmp_path / "b"], tmp_path / "both", simulated.quiet())
