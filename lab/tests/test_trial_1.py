# SPDX-License-Identifier: BSD-3-Clause
"""Lines of trial-1: nothing of them is lost, and they may be in one file with trial-2."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_schema
import pytest
from pydantic import ValidationError
from test_old_runs import NAMES, OLD

import linerate.experiments.cloud.runs
import linerate.experiments.graph.runs  # noqa: F401
from linerate.experiments.cloud.window import CloudTrialCell, CloudWindow, TenantsAlone
from linerate.experiments.graph.window import GraphTrialCell, GraphWindow
from linerate.links import link
from linerate.records.cells import LinkCell, TableCell
from linerate.records.trial import Trial, dump, parse, read

# By trial-1's name, where trial-2 has another name for the same value.
RENAMED = {
    "described": "program", "pps": "asked_pps", "seconds": "asked_s", "frames": "asked_frames",
}  # fmt: skip
CLOUD = {
    "tenants", "core", "bridge_bytes", "accelerator", "tenant_packages", "forwarder_cpu_s",
    "forwarder_throttled_s",
}  # fmt: skip
GRAPH = {"walks", "objects", "sunk", "tsc_cycles", "work", "path_nodes"}
LEVELS = {"kind": "container", "load": "cpu", "tenants": 2, "cpu": "shared", "rate": 0.9}
LINE: dict[str, Any] = {
    "schema": "linerate/trial-1", "experiment": "overload", "seed": 7, "session": 2, "block": 3,
    "position": 40, "role": "measure", "arm": "a", "forwarder": "b", "link": "memif", "size": 64,
    "load": "paced", "probe": False, "started_at": "2026-01-01T00:00:00+00:00", "duration_s": 0.5,
    "received": 99, "link_drops": {"here": 1}, "steal_ticks": {"1": 2}, "processes": [],
    "build": {"compiler": "cc"}, "memory": "no-huge",
}  # fmt: skip


def as_trial_1(trial: Trial) -> dict[str, Any]:
    """The line in the form of trial-1, made from that of trial-2."""
    data = json.loads(dump(trial))
    old: dict[str, Any] = {"schema": "linerate/trial-1", "started_at": data["started_at"]}
    old["steal_ticks"] = data["steal_ticks"]
    assert data["method"] == "fresh"
    assert data["identity"].pop("bed") == "local"
    parts = [data["identity"], data["program"], data["request"]]
    old |= {RENAMED.get(name, name): value for part in parts for name, value in part.items()}
    if "invalid" in data:
        old["invalid"], old["invalid_code"] = data["invalid"]["why"], data["invalid"]["code"]
    old["link"], old["size"] = trial.cell.key
    outcome: dict[str, Any] = data.get("outcome", {})
    outcome.pop("kind", None)
    old["link_drops"] = outcome.pop("link_drops", {})
    if isinstance(trial.cell, CloudTrialCell):
        old["cloud"] = {"cell": data["cell"]["levels"]}
        old["cloud"] |= {name: outcome.pop(name) for name in CLOUD if name in outcome}
        for rate, name in (("full_pps", "maximum_pps"), ("ndr_pps", "alone_pps")):
            if name in data["request"]:
                old["cloud"][rate] = data["request"][name]
        old.pop("alone_pps", None)
    if isinstance(trial.outcome, GraphWindow):
        old["duration_s"] = trial.outcome.duration_s
        old["graph"] = {name: outcome.pop(name) for name in GRAPH if name in outcome}
        old["graph"]["tsc_hz"] = outcome.pop("tsc_hz")
    return old | outcome


def lines() -> Iterator[tuple[str, dict[str, Any]]]:
    """All lines of the old runs, with the run's name."""
    for name in NAMES:
        with tarfile.open(OLD / f"{name}.tar.xz") as archive:
            for member in archive.getmembers():
                if member.name.endswith("records.jsonl"):
                    file = archive.extractfile(member)
                    assert file
                    for line in file.read().splitlines():
                        yield name, json.loads(line)


def test_nothing_of_old_runs_is_lost() -> None:
    schemas = set()
    for number, (name, line) in enumerate(lines()):
        trial = parse(json.dumps(line))
        assert as_trial_1(trial) == line, f"{name}, line {number}"
        told = dump(trial)
        assert parse(told) == trial
        if number % 50 == 0:
            by_schema.check(json.loads(told), "trial-2.json")
        schemas.add(line["schema"])
    assert schemas == {"linerate/trial-1"}


def converted(**fields: Any) -> Trial:
    """A line of trial-1 with these fields; those that are None are absent."""
    line = {name: value for name, value in (LINE | fields).items() if value is not None}
    by_schema.check(line, "trial-1.json")
    trial = parse(json.dumps(line))
    by_schema.check(json.loads(dump(trial)), "trial-2.json")
    assert as_trial_1(trial) == line
    return trial


def test_a_cell_is_a_link_with_a_size() -> None:
    assert converted().cell == LinkCell(link="memif", size=64)


@pytest.mark.parametrize(
    ("name", "rules"), [("nearfree1-ip:10-routes", 0), ("nearfree1-ip:10-routes:20-rules", 20)]
)
def test_tables_are_no_part_of_a_links_name(name: str, rules: int) -> None:
    cell = converted(experiment="l3fwd", link=name).cell
    assert cell == TableCell(link="nearfree1-ip", size=64, routes=10, rules=rules)
    assert cell.name == link(name).name


def test_a_graph_is_no_link() -> None:
    name = "chain4/swap/hash5/nostats/256"
    window = {
        "walks": 2, "objects": 512, "sunk": 512, "tsc_cycles": 1000, "tsc_hz": 2000, "work": "0",
    }  # fmt: skip
    told: dict[str, Any] = {"received": None, "link_drops": {}, "tsc_hz": 2000}
    trial = converted(experiment="graph", link=name, size=256, graph=window, **told)
    assert trial.cell == GraphTrialCell(graph=name, batch=256)
    assert trial.cell.words == name
    assert isinstance(trial.outcome, GraphWindow)
    failed = converted(
        experiment="graph", link=name, size=256, invalid="it ended", invalid_code="ended",
        duration_s=None, **told,
    )  # fmt: skip
    assert failed.outcome is None


def test_tenants_are_beside_a_forwarder_or_alone() -> None:
    tenants = [{"name": "t0", "seconds": 1.0, "bogo_ops": 7}]
    cloud = {"cell": LEVELS, "tenants": tenants, "tenant_packages": {"qemu": "7.2"}}
    rates = {"full_pps": 1000.0, "ndr_pps": 2000.0}
    trial = converted(experiment="cloud", cloud=cloud | rates, maximum_pps=1000.0)
    assert isinstance(trial.cell, CloudTrialCell)
    assert trial.cell.levels.load == "cpu"
    assert isinstance(trial.outcome, CloudWindow)
    assert (trial.outcome.tenants[0].bogo_ops, trial.frames.received) == (7, 99)
    assert (trial.request.maximum_pps, trial.request.alone_pps) == (1000.0, 2000.0)
    told: dict[str, Any] = {"received": None, "link_drops": {}}
    alone = converted(experiment="cloud", role="alone", load="self-driven", cloud=cloud, **told)
    assert isinstance(alone.outcome, TenantsAlone)
    assert alone.outcome.duration_s == 0.5


def test_a_trial_that_failed_at_once_has_no_outcome() -> None:
    told: dict[str, Any] = {"duration_s": None, "received": None, "link_drops": {}}
    failed = converted(invalid="it ended", invalid_code="ended", **told)
    assert failed.outcome is None
    assert (failed.invalid_code, failed.invalid_why) == ("ended", "it ended")
    # It had counts, but does not count.
    assert converted(invalid="late", invalid_code="late").frames.received == 99


def test_a_reason_without_a_code_is_an_error() -> None:
    found = parse(json.dumps(LINE | {"invalid": "it ended"}))
    assert (found.valid, found.invalid_code) == (False, "error")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"recieved": 3}, "recieved"),
        ({"block": -1}, "identity.block"),
        ({"duration_s": "long"}, "outcome.duration_s"),
        ({"link": 7}, "cell.link"),
        ({"graph": 7}, "graph"),
        ({"cloud": {"cell": {}}}, "cell.levels.kind"),
    ],
)
def test_what_trial_1_did_not_have_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        parse(json.dumps(LINE | fields))
    where = {".".join(map(str, each["loc"])) for each in error.value.errors()}
    assert message in where


def test_both_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    new = dump(parse(json.dumps(LINE | {"position": 41})))
    path.write_text(f"{json.dumps(LINE)}\n{new}\n{json.dumps(LINE | {'position': 42})}\n")
    assert [trial.position for trial in read(path)] == [40, 41, 42]
