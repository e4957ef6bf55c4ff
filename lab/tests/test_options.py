# SPDX-License-Identifier: BSD-3-Clause
"""Every option of every experiment does what it declares: it is stored, and refused where runs must
agree in it.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.testing import CliRunner

from linerate.cli import run_command
from linerate.cli.commands import app
from linerate.cli.run_command import command
from linerate.experiments.graph.design import planned
from linerate.experiments.graph.running.conversation import CellOffer
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, MachineError, RunError, UsageError
from linerate.links import link
from linerate.links.veth import Veth
from linerate.runs import session
from linerate.runs.agreement import as_stored
from linerate.runs.options import (
    FOUND_AT_START,
    Composite,
    Option,
    Options,
    Parameter,
    parameters,
    parse,
)
from linerate.runs.plans.blocks import takes
from linerate.runs.registry import EXPERIMENTS, find, options_of
from linerate.runs.session import refuse_contradictions
from linerate.traffic import other_generator

# Stored in sessions, and compared by `linerate.runs.provenance`.
IN_SESSIONS = ("--hugepages",)

# A run of each experiment, by option, and another value for every option.
PORTS = {
    "--link": ["ports"],
    "--generator-port": ["ring:a", "ring:b"],
    "--forwarder-port": ["veth0", "veth1"],
}
OTHER_PORTS: dict[str, Any] = {
    "--link": ["memif"],
    "--generator-port": ["ring:c", "ring:d"],
    "--forwarder-port": ["veth2", "veth3"],
}
OTHER: dict[str, Any] = {
    "--sizes": ["128"],
    "--blocks": 19,
    "--seed": 7,
    "--line-rate": 2e6,
    "--hugepages": "no",
    "--cpu-weight": 2,
    "--keep-going": True,
}
# Its own weight is there so that neighbours can be measured beside it.
OTHER_OF_CLOUD = {option: value for option, value in OTHER.items() if option != "--cpu-weight"}
GRAPH_CELLS = ("chain4/assign1/hash5/nostats/256", "chain8/assign1/hash5/nostats/256")
BASE: dict[str, dict[str, Any]] = {
    "overload": PORTS,
    "paths": {"--link": ["veth"], "--forwarders": ["c-l2fwd,xdp-tx"]},
    "rfc2544": {**PORTS, "--generator": "https://a@b", "--line-rate": 1e6},
    "latency": PORTS,
    "graph": {},
    "l3fwd": {"--link": ["nearfree1-ip,memif"], "--routes": ["10"], "--rules": ["10"],
              "--sizes": ["64"]},
    "cloud": {"--design": "one.toml", "--link": ["veth"]},
}  # fmt: skip
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "overload": OTHER | OTHER_PORTS | {
        "--preset": "screen", "--forwarders": ["c-l2fwd"], "--probe": False, "--method": "fresh",
    },
    "paths": OTHER | {
        "--preset": "full", "--link": ["veth-af-xdp"], "--forwarders": ["c-l2fwd"],
        "--probe": False, "--method": "fresh",
    },
    "rfc2544": OTHER | OTHER_PORTS | {
        "--preset": "csit", "--forwarders": ["c-l2fwd"], "--tests": ["loss"], "--ip": 6,
        "--directions": "one", "--generator": "https://a@c", "--generator-ca": "a.pem",
        "--generator-insecure": True, "--generator-password-file": "password", "--minutes": 9.0,
    },
    "latency": OTHER | OTHER_PORTS | {
        "--preset": "full", "--forwarders": ["reflect"], "--frames": ["arp"], "--packets": 999,
        "--inside": False, "--method": "fresh",
    },
    "graph": {
        "--preset": "full", "--cells": [GRAPH_CELLS[0]], "--arms": ["fused,rust-graph"],
        "--blocks": 19, "--seed": 7, "--hugepages": "no", "--cpu-weight": 2, "--keep-going": True,
    },
    "l3fwd": OTHER | {
        "--preset": "full", "--link": ["memif"], "--routes": ["1000"], "--rules": ["100"],
        "--forwarders": ["c-l3fwd-lpm,c-l3fwd-graph"], "--probe": False, "--method": "fresh",
    },
    "cloud": OTHER_OF_CLOUD | {
        "--design": "other.toml", "--link": ["memif"], "--forwarders": ["c-l2fwd"],
        "--minutes": 9.0,
    },
}  # fmt: skip

DESIGN = """
frameworks = ["c-l2fwd", "rust-l2fwd"]
loads = ["idle"]
tenants = [{tenants}]
sizes = [64]
blocks = 6
"""

EVERY = [
    pytest.param(name, each, id=f"{name} {each.option.name}")
    for name in EXPERIMENTS
    for each in parameters(options_of(name))
]


@pytest.fixture(autouse=True)
def nothing_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text(DESIGN.format(tenants=0))
    Path("other.toml").write_text(DESIGN.format(tenants=1))
    monkeypatch.setattr(other_generator, "OtherGenerator", lambda given: given)
    monkeypatch.setattr(Cores, "choose", lambda: Cores(0, 1, True))


def asked(name: str, given: dict[str, Any]) -> Options:
    """Parse a command line with these; return its options by name."""
    kind = options_of(name)
    names = {each.option.name for each in parameters(kind)}
    assert set(given) <= names
    values = parse(
        kind,
        {each.key: given.get(each.option.name, each.initial) for each in parameters(kind)},
    )
    found: Options = find(name).make_options(values, resuming=True)
    if name == "graph":
        offers = [CellOffer(cell=cell, arms=["c-graph", "rust-graph"]) for cell in GRAPH_CELLS]
        found.plan = planned(found, offers)  # type: ignore[attr-defined,arg-type]
    return found


def both(name: str, each: Parameter) -> tuple[Options, Options]:
    """A run's options, and the same with one changed."""
    other = {each.option.name: ALTERNATIVES[name][each.option.name]}
    return asked(name, BASE[name]), asked(name, BASE[name] | other)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_field_is_an_option_or_says_why_not(name: str) -> None:
    kind = options_of(name)
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        said = [
            said
            for said in getattr(hints[field.name], "__metadata__", ())
            if isinstance(said, Option | Composite) or said == FOUND_AT_START
        ]
        assert len(said) == 1, field.name
    for each in parameters(kind):
        assert each.option.name.startswith("--")
        assert each.option.help.endswith(".")
    names = [each.option.name for each in parameters(kind)]
    assert len(names) == len(set(names))
    assert set(names) == set(ALTERNATIVES[name])


@pytest.mark.parametrize(("name", "each"), EVERY)
def test_it_is_stored(name: str, each: Parameter) -> None:
    experiment = find(name)
    run, other = both(name, each)
    assert each.value_in(run) != each.value_in(other)
    for options in (run, other):
        stored = json.loads(json.dumps(as_stored(options)))
        assert experiment.read_options(stored) == options
    assert experiment.effective_values(as_stored(other))[each.option.name] == each.value_in(other)


@pytest.mark.parametrize(("name", "each"), EVERY)
def test_a_run_that_is_resumed_keeps_it(name: str, each: Parameter) -> None:
    """Even if it was left out when the run began, and is given now."""
    run, other = both(name, each)
    kept = find(name).effective_values(as_stored(run))
    option = each.option.name
    assert each.option.resume == "same"
    refuse_contradictions(Path("run"), {option: kept[option]}, kept)
    with pytest.raises(UsageError, match=f"^--.*{option.removeprefix('--')}"):
        refuse_contradictions(Path("run"), {option: each.value_in(other)}, kept)


@pytest.mark.parametrize(("name", "each"), EVERY)
def test_runs_that_differ_in_it_are_merged_or_not(name: str, each: Parameter) -> None:
    experiment = find(name)
    run, other = (experiment.design(as_stored(options)) for options in both(name, each))
    experiment.merged([run, run])
    if each.option.name in IN_SESSIONS or each.option.merge == "may differ":
        assert experiment.merged([run, other])["preset"] == "merged"
        return
    with pytest.raises(RunError, match="the runs have different options: ") as refused:
        experiment.merged([run, other])
    free = str(refused.value.hint).removesuffix(" may differ").split(" only ")[1].split(", ")
    assert each.option.name not in free


@pytest.mark.parametrize(("name", "each"), EVERY)
def test_runs_that_differ_in_it_are_compared_or_not(name: str, each: Parameter) -> None:
    experiment = find(name)
    run, other = (experiment.design(as_stored(options)) for options in both(name, each))
    alike = experiment.decisive(run) == experiment.decisive(other)
    assert alike == (each.option.name in IN_SESSIONS or each.option.compare == "may differ")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_command_has_it_with_its_help(name: str) -> None:
    there = {option for each in command(name).params for option in each.opts}
    told = " ".join(CliRunner().invoke(app, ["run", name, "--help"]).output.split())
    for each in parameters(options_of(name)):
        assert each.option.name in there
        assert each.option.help.split()[0] in told
    assert {"--out", "--resume"} <= there
    assert ("--fail-if" in there) == (name != "cloud")


@pytest.mark.parametrize(
    ("rule", "held"),
    [("same", {"--seed": 7, "--blocks": 9}), ("may differ", {"--blocks": 9})],
)
def test_a_command_that_resumes_a_run_tells_what_must_be_the_same(
    rule: str, held: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only options of this command line, and only those in which it must agree with the run."""
    seen: list[object] = []

    def stop(name: str, directory: Path, given: dict[str, object], *_: object) -> None:
        seen.append((name, directory, given))
        raise LabError("enough")

    def changed(kind: type[Options]) -> list[Parameter]:
        return [
            replace(each, option=each.option.but(resume=rule)) if each.field == "seed" else each
            for each in parameters(kind)
        ]

    monkeypatch.setattr(session, "resume", stop)
    monkeypatch.setattr(run_command, "parameters", changed)
    line = ["run", "overload", "--resume", "old", "--seed", "7", "--blocks", "9"]
    assert isinstance(CliRunner().invoke(app, line).exception, LabError)
    assert seen == [("overload", Path("old"), held)]


def test_a_link_of_cloud_is_one() -> None:
    with pytest.raises(UsageError, match="--link veth,memif: a run has one link"):
        asked("cloud", {"--link": ["veth,memif"]})


@pytest.mark.parametrize(
    ("given", "possible", "links"),
    [
        ({}, True, ["null", "memif", "veth"]),
        ({}, False, ["null", "memif"]),
        ({"preset": "floods"}, True, ["veth"]),
        ({"preset": "floods"}, False, ["memif"]),
        ({"links": ["null"]}, True, ["null"]),
        # It has its own cells.
        ({"preset": "demo"}, True, []),
    ],
)
def test_overload_looks_for_a_link_that_drops(
    given: dict[str, Any], possible: bool, links: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(_: Veth) -> None:
        if not possible:
            raise MachineError("no namespaces")

    monkeypatch.setattr(Veth, "prepare", prepare)
    kind = options_of("overload")
    first = {each.key: each.initial for each in parameters(kind)} | {"preset": "quick"}
    every = first | given
    found = find("overload").make_options(parse(kind, every), resuming=False)
    assert found.links == links
    # Its result is stored, and another machine may continue with it.
    assert find("overload").make_options(parse(kind, every | {"links": links}), resuming=True) == (
        found
    )


def test_a_forwarder_that_does_not_fit_keeps_the_link_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Veth, "prepare", lambda _: None)
    kind = options_of("overload")
    given = {"preset": "quick", "links": None, "forwarders": ["c-l3fwd-lpm"]}
    every = {each.key: each.initial for each in parameters(kind)} | given
    found = find("overload").make_options(parse(kind, every), resuming=False)
    assert ("veth" in found.links) == takes("c-l3fwd-lpm", link("veth"))
