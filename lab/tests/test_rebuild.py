# SPDX-License-Identifier: BSD-3-Clause
"""`linerate report`: the report of a stored run is the same again; merged runs claim no more than
they may.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import by_schema
import pytest
from simulated import Simulation, killed, printed, quiet, resume, start

from linerate.host.errors import RunError, UsageError
from linerate.records import run_file
from linerate.records import trial as records
from linerate.records.output import FILES
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS
from linerate.runs.kept.rebuild import report


def summary(directory: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((directory / "summary.json").read_text())
    return found


def test_a_run_told_again_says_the_same(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    start(run, links=["null", "memif"])
    before = {name: (run / name).read_bytes() for name in FILES}
    for name in ("summary.json", "report.html"):
        (run / name).unlink()
    simulation.machine = simulation.machine.model_copy(update={"kernel": "another machine's"})
    report([run], None, quiet())
    assert {name: (run / name).read_bytes() for name in FILES} == before


def test_a_killed_run_is_told_without_touching_its_records(
    tmp_path: Path, simulation: Simulation
) -> None:
    run = tmp_path / "run"
    killed(run, simulation, 9)
    with (run / RECORDS).open("a") as file:
        file.write('{"schema":"lin')
    before = (run / RECORDS).read_bytes()
    console = quiet()
    report([run], None, console)
    assert "cut off in the middle (14 bytes)" in printed(console)
    assert (run / RECORDS).read_bytes() == before
    assert summary(run)["interrupted"] is True
    assert summary(run)["trials"] == 9
    resume(run)
    assert summary(run)["interrupted"] is False


def test_merged_runs_have_the_blocks_of_all(tmp_path: Path, simulation: Simulation) -> None:
    for seed in (1, 2, 3):
        simulation.noise = str(seed)
        start(tmp_path / str(seed), seed=seed, links=["null", "memif"])
    parts = [tmp_path / str(seed) for seed in (1, 2, 3)]
    out = tmp_path / "all"
    report(parts, out, quiet())
    assert {path.name for path in out.iterdir()} == set(FILES)
    by_schema.check(json.loads((out / RUN).read_text()), "run-1.json")
    by_schema.check(summary(out), "summary-1.json")
    found = records.read(out / RECORDS)
    single = records.read(parts[0] / RECORDS)
    assert len(found) == 3 * len(single)
    assert [t.position for t in found] == list(range(len(found)))
    # No block of one run is paired with one of another, so there are no pairs.
    seeds: dict[int, set[int]] = {}
    for trial in found:
        seeds.setdefault(trial.block, set()).add(trial.seed)
    assert all(len(each) == 1 for each in seeds.values())
    comparisons = json.loads((out / "summary.json").read_text())["comparisons"]
    assert {c["n"] for c in comparisons} == {18}
    assert [cell["blocks"] for cell in json.loads((out / "summary.json").read_text())["cells"]] == [
        18,
        18,
    ]
    assert "merged runs have seeds 1, 2, 3" in str(summary(out)["warnings"])
    assert summary(out)["interrupted"] is False


def test_merged_runs_are_told_again_and_merged_again(
    tmp_path: Path, simulation: Simulation
) -> None:
    for seed in (1, 2, 3):
        start(tmp_path / str(seed), seed=seed)
    report([tmp_path / "1", tmp_path / "2"], tmp_path / "two", quiet())
    before = (tmp_path / "two" / "summary.json").read_bytes()
    report([tmp_path / "two"], None, quiet())
    assert (tmp_path / "two" / "summary.json").read_bytes() == before
    report([tmp_path / "two", tmp_path / "3"], tmp_path / "three", quiet())
    run = run_file.load(tmp_path / "three")
    assert [part.seed for part in run.parts] == [1, 2, 3]
    assert [part.sessions for part in run.parts] == [[1], [2], [3]]
    with pytest.raises(RunError, match="hold the same run"):
        report([tmp_path / "three", tmp_path / "2"], tmp_path / "four", quiet())
    assert not (tmp_path / "four").exists()
    with pytest.raises(RunError, match="is a merged run"):
        resume(tmp_path / "three")


def test_a_part_that_ended_early_is_told(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "1")
    killed(tmp_path / "2", simulation, 10, seed=2)
    report([tmp_path / "1", tmp_path / "2"], tmp_path / "both", quiet())
    assert summary(tmp_path / "both")["interrupted"] is True


def test_the_same_seed_is_told(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "1")
    start(tmp_path / "2")
    report([tmp_path / "1", tmp_path / "2"], tmp_path / "both", quiet())
    assert "the arms in the same order" in str(summary(tmp_path / "both")["warnings"])


def test_other_kernels_are_told(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "1")
    simulation.machine = simulation.machine.model_copy(update={"kernel": "6.1"})
    start(tmp_path / "2", seed=2)
    report([tmp_path / "1", tmp_path / "2"], tmp_path / "both", quiet())
    assert "kernel: 6.0 and 6.1" in str(summary(tmp_path / "both")["warnings"])


def other_build(simulation: Simulation) -> None:
    simulation.digests = {**simulation.digests, "rust-l2fwd": "other"}


def other_cpu(simulation: Simulation) -> None:
    simulation.machine = simulation.machine.model_copy(update={"cpu_model": "other"})


def other_dpdk(simulation: Simulation) -> None:
    simulation.machine = simulation.machine.model_copy(update={"dpdk_version": "24.11"})


@pytest.mark.parametrize(
    ("change", "values", "message"),
    [
        (other_build, {}, "different builds of rust-l2fwd"),
        (other_cpu, {}, "different machines: cpu model: simulated and other"),
        (other_dpdk, {}, "one machine that was set up in two ways: dpdk version: 22.11 and 24.11"),
        (None, {"hugepages": "yes"}, "set up in two ways: memory: small pages and huge pages"),
        (None, {"links": ["null2"]}, "cells null 64 B and null2 64 B"),
        (None, {"forwarders": ["rust-l2fwd", "c-l2fwd"]}, "forwarders .* and .*rust-l2fwd-again"),
        (None, {"line_rate": 1e6}, "--line-rate none and 1000000.0"),
        (None, {"probe": False}, "--probe True and False"),
    ],
)
def test_what_would_lie_is_refused(
    tmp_path: Path,
    simulation: Simulation,
    change: Callable[[Simulation], None] | None,
    values: dict[str, object],
    message: str,
) -> None:
    start(tmp_path / "1")
    if change:
        change(simulation)
    start(tmp_path / "2", **{"seed": 2, **values})
    with pytest.raises(RunError, match=message):
        report([tmp_path / "1", tmp_path / "2"], tmp_path / "both", quiet())
    assert not (tmp_path / "both").exists()


def test_a_run_does_not_count_twice(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 8)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    resume(tmp_path / "run")
    with pytest.raises(RunError, match="would count twice"):
        report([tmp_path / "run", tmp_path / "copy"], tmp_path / "both", quiet())


def test_wrong_directories_are_named(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "1")
    start(tmp_path / "2", seed=2)
    both = [tmp_path / "1", tmp_path / "2"]
    with pytest.raises(UsageError, match="none is named"):
        report(both, None, quiet())
    with pytest.raises(UsageError, match="only to merge"):
        report(both[:1], tmp_path / "3", quiet())
    with pytest.raises(UsageError, match="already has a run"):
        report(both, tmp_path / "1", quiet())
    with pytest.raises(RunError, match="no such directory"):
        report([tmp_path / "absent"], None, quiet())
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="holds no run"):
        report([tmp_path / "empty"], None, quiet())
    records_of_2 = (tmp_path / "2" / RECORDS).read_text()
    (tmp_path / "2" / RECORDS).write_text("")
    with pytest.raises(RunError, match="has no trial"):
        report([tmp_path / "2"], None, quiet())
    (tmp_path / "2" / RECORDS).write_text(records_of_2.replace('"session":1', '"session":2'))
    with pytest.raises(RunError, match=r"line 1: .* session 2, which is not in run\.json"):
        report([tmp_path / "2"], None, quiet())
    (tmp_path / "2" / RECORDS).write_text(records_of_2 + "{}\n")
    lines = records_of_2.count("\n") + 1
    with pytest.raises(RunError, match=f"line {lines}: no record of a trial"):
        report([tmp_path / "2"], None, quiet())
    (tmp_path / "2" / RECORDS).unlink()
    with pytest.raises(RunError, match="no trial was finished"):
        report([tmp_path / "2"], None, quiet())


def test_devices_that_are_gone_are_still_told(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "1")
    run = run_file.load(tmp_path / "1")
    run.design["cells"][0]["link"] = "ports"
    run.design["generator_ports"] = ["pci:0000:01:00.0"]
    run.design["forwarder_ports"] = ["pci:0000:02:00.0"]
    (tmp_path / "1" / RUN).write_text(run_file.dump(run))
    content = (tmp_path / "1" / RECORDS).read_text()
    (tmp_path / "1" / RECORDS).write_text(content.replace('"link":"null"', '"link":"ports"'))
    report([tmp_path / "1"], None, quiet())
    assert "pci:0000:02:00.0" in (tmp_path / "1" / "report.html").read_text()
