# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `l3fwd` on a simulated machine: trials, statements, records, and its page."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from chart_specs import valid_charts
from conftest import simulated_trial
from pages import said
from simulated import (
    Simulation,
    assert_nothing_wraps,
    install,
    killed_at,
    printed,
    quiet,
)
from typer.testing import CliRunner

from linerate.cli.commands import app
from linerate.experiments.l3fwd import table
from linerate.experiments.l3fwd.design import arms_of, cells
from linerate.experiments.l3fwd.options import DEFAULT_FORWARDERS, PRESETS, Options
from linerate.experiments.l3fwd.runs import Found
from linerate.experiments.l3fwd.table import headline
from linerate.host.errors import LabError, UsageError
from linerate.links import link
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial
from linerate.runs import session
from linerate.runs.compare import compare
from linerate.runs.kept.rebuild import merge, report
from linerate.runs.kept.stored import stored
from linerate.trial.trial import Plan
from linerate_bench import l3fwd_goals as goals

FEW: dict[str, Any] = {
    "links": ["nearfree1-ip", "memif"], "routes": [10, 1000], "rules": [100], "sizes": [64, 512],
    "blocks": 8, "probe": False,
}  # fmt: skip
ROUTES, RULES = "nearfree1-ip:10-routes", "nearfree1-ip:1000-routes:100-rules"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    return install(monkeypatch)


def options(**values: Any) -> Options:
    return Options(preset=PRESETS["quick"], **{**FEW, **values})


def start(out: Path, **values: Any) -> Found:
    found = session.start("l3fwd", asdict(options(**values)), out, quiet(), "linerate run l3fwd")
    assert isinstance(found, Found)
    return found


# -- what is measured ----------------------------------------------------------------------------


def test_tables_are_varied_where_frames_are_made_for_them_and_sizes_elsewhere() -> None:
    assert [(cell.link, cell.size) for cell in cells(options())] == [
        (ROUTES, 64), ("nearfree1-ip:1000-routes", 64), (RULES, 64), ("memif", 64), ("memif", 512),
    ]  # fmt: skip
    assert [
        cell.link for cell in cells(options(routes=[1], rules=[0], links=["nearfree1-ip"]))
    ] == ["nearfree1-ip:1-routes"]


def test_in_each_cell_are_those_that_know_its_tables() -> None:
    def of(on: str) -> list[str]:
        return [arm.label for arm in arms_of(DEFAULT_FORWARDERS, on)]

    ours = ["rust-l3fwd-graph", "rust-l3fwd-graph-fused"]
    routed = ["c-l3fwd-graph", "c-l3fwd-graph" + AA_SUFFIX, "c-l3fwd-lpm", *ours]
    assert of(ROUTES) == of("memif") == routed
    filtered = ["c-l3fwd-graph-acl", "c-l3fwd-graph-acl" + AA_SUFFIX, "c-l3fwd-acl", *ours]
    assert of(RULES) == filtered
    assert of("nearfree2-ip:100-routes") == routed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"routes": [0]}, "--routes 0"),
        ({"routes": [100_001]}, "--routes 100001"),
        ({"rules": [100_001]}, "--rules 100001"),
        ({"links": ["nearfree2-ip"], "routes": [1]}, "--routes 1: at least one for each of 2"),
        ({"links": ["nearfree2-ip"], "rules": [1]}, "--rules 1: at least one for each of 2"),
        ({"links": ["null"]}, "--link null: its frames have no addresses"),
        ({"links": ["nearfree2"]}, "--link nearfree2: its frames have no addresses"),
        ({"links": [ROUTES]}, f"--link {ROUTES}: name the link alone"),
        ({"links": ["memif:10-routes"]}, "memif has no frames for tables"),
        ({"sizes": [63]}, "--sizes 63"),
        ({"blocks": 0}, "--blocks 0"),
        ({"forwarders": ["c-l2fwd"]}, "--forwarders c-l2fwd: it does not route by networks"),
        ({"forwarders": ["c-l3fwd-em"]}, "--forwarders c-l3fwd-em"),
        (
            {"forwarders": ["c-l3fwd-acl"], "rules": [], "links": ["nearfree1-ip"]},
            "none of these routes by the tables of nearfree1-ip:10-routes",
        ),
        ({"forwarders": ["c-l3fwd-lpm", "c-l3fwd-lpm"]}, "appears twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cells(options(**given))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_something_that_can_be_run(name: str) -> None:
    found = cells(Options(preset=PRESETS[name]))
    assert {cell.link.partition(":")[0] for cell in found} == {"nearfree1-ip", "memif"}
    for cell in found:
        assert link(cell.link).name == cell.link
        assert len(arms_of(DEFAULT_FORWARDERS, cell.link)) >= 4


def test_another_forwarder_does_not_run_by_tables_that_it_lacks() -> None:
    """When tables are named for another experiment."""
    result = CliRunner().invoke(
        app, ["run", "overload", "--link", RULES, "--forwarders", "c-l3fwd-lpm,rust-l3fwd-graph"]
    )
    assert result.exit_code
    assert "c-l3fwd-lpm" in str(result.exception or result.output)


# -- statements ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Path]:
    with pytest.MonkeyPatch.context() as patch:
        simulation = install(patch)
        simulation.slower = {"c-l3fwd-lpm": 0.7, "rust-l3fwd-graph": 1.2}
        out = tmp_path_factory.mktemp("l3fwd") / "run"
        return start(out), out


def test_every_cell_has_its_own_baseline(ran: tuple[Found, Path]) -> None:
    summary = ran[0].summary
    assert {(c.link, c.baseline) for c in summary.comparisons} == {
        (ROUTES, "c-l3fwd-graph"), ("nearfree1-ip:1000-routes", "c-l3fwd-graph"),
        (RULES, "c-l3fwd-graph-acl"), ("memif", "c-l3fwd-graph"),
    }  # fmt: skip
    assert {(c.link, c.routes, c.rules) for c in summary.cells} == {
        (ROUTES, 10, 0), ("nearfree1-ip:1000-routes", 1000, 0), (RULES, 1000, 100),
        ("memif", None, None),
    }  # fmt: skip
    slower = [c for c in summary.comparisons if c.link == RULES and c.arm == "rust-l3fwd-graph"]
    assert [c.verdict for c in slower] == ["slower"]
    # Each cell has its control.
    assert {(each.link, each.size) for each in summary.aa} >= {
        (cell.link, cell.size) for cell in summary.cells
    }


def test_holm_corrects_over_the_tables_of_a_link(ran: tuple[Found, Path]) -> None:
    found = {
        c.link: c
        for c in ran[0].summary.comparisons
        if c.arm == "rust-l3fwd-graph" and c.link.startswith("nearfree1-ip")
    }
    assert len(found) == 3
    for each in found.values():
        assert each.p is not None
        assert each.p_holm is not None
        assert each.p_holm > each.p


def test_the_console_has_levels_side_by_side(ran: tuple[Found, Path]) -> None:
    console = quiet()
    ran[0].show(console)
    told = printed(console)
    by_routes = told.partition("By routes, on nearfree1-ip")[2].partition("By rules")[0]
    assert by_routes.count("c-l3fwd-lpm") == 2
    assert "c-l3fwd-acl" not in by_routes
    assert "1,000" in by_routes
    by_rules = told.partition("By rules, and 1,000 routes")[2].partition("memif")[0]
    assert by_rules.count("c-l3fwd-acl") == 1
    in_c = by_rules.replace("rust-l3fwd-graph", "")
    # The graph without rules, and with rules.
    assert (in_c.count("c-l3fwd-graph"), in_c.count("c-l3fwd-graph-acl")) == (2, 1)
    assert by_rules.index("c-l3fwd-graph") < by_rules.index("c-l3fwd-acl")
    for comparison in ran[0].summary.comparisons:
        assert (comparison.sentence in told) is comparison.primary


def test_the_answer_comes_first_in_one_sentence(ran: tuple[Found, Path]) -> None:
    told = headline(ran[0].summary)
    assert told
    assert told.startswith("Cycles to route a packet: with 1,000 routes ")
    assert "; with 1,000 routes and 100 rules " in told
    assert " in c-l3fwd-graph-acl, " in told
    assert " in rust-l3fwd-graph (slower)" in told
    text = (ran[1] / "report.html").read_text()
    # The sentence, the chart, then the result of each comparison: there are many.
    assert text.index(told) < text.index("The differences") < text.index('class="answers"')
    console = quiet()
    ran[0].show(console)
    assert " ".join(printed(console).split()).startswith(told)


def test_no_row_wraps_in_a_pipe(ran: tuple[Found, Path]) -> None:
    assert_nothing_wraps(ran[0].show)


def test_the_page_has_every_level_and_sentence(ran: tuple[Found, Path]) -> None:
    text = (ran[1] / "report.html").read_text().replace("&#39;", "'")
    for comparison in ran[0].summary.comparisons:
        assert said(comparison) in text
    assert "By routes, on nearfree1-ip" in text
    assert "By rules, and 1,000 routes, on nearfree1-ip" in text
    assert "Cycles per packet by the number of routes on nearfree1-ip" in text
    assert "a more complex application is needed" in text
    assert ">net_nearfree</text>" in text
    assert "Cycles per packet by the number of rules on nearfree1-ip" in text


def test_every_chart_of_the_page_is_valid(ran: tuple[Found, Path]) -> None:
    # Charts: ratios; by routes, by rules; of two sizes every trial, and the lower loads.
    assert valid_charts((ran[1] / "report.html").read_text()) == 1 + 2 + 2 * 2


def test_routes_alone_are_the_level_without_rules(ran: tuple[Found, Path]) -> None:
    summary = ran[0].summary

    def levels(of: str) -> list[tuple[str, int]]:
        return [
            (cell.link, table.level(of, cell))
            for _, cells in table.by_link(summary, of)
            for cell in cells
        ]

    base = "nearfree1-ip:1000-routes"
    assert levels("routes") == [(ROUTES, 10), (base, 1000)]
    assert levels("rules") == [(base, 0), (RULES, 100)]


def test_where_no_rules_are_asked_for_there_is_no_table_of_them(
    tmp_path: Path, machine: Simulation
) -> None:
    found = start(tmp_path / "run", links=["nearfree1-ip"], rules=[0])
    console = quiet()
    found.show(console)
    assert "By rules" not in printed(console)
    # With one level there is no curve, with several there is.
    text = (tmp_path / "run" / "report.html").read_text()
    assert "by the number of rules" not in text
    assert "by the number of routes" in text


# -- records and resuming ------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was_killed(tmp_path: Path, machine: Simulation) -> None:
    whole = start(tmp_path / "whole")
    machine.ran.clear()
    with killed_at(machine, 40):
        start(tmp_path / "run")
    found = session.resume("l3fwd", tmp_path / "run", {}, quiet(), "linerate --resume")
    assert isinstance(found, Found)
    assert [each.model_dump(exclude={"identity": {"session", "run"}}) for each in found.trials] == [
        each.model_dump(exclude={"identity": {"session", "run"}}) for each in whole.trials
    ]
    with pytest.raises(UsageError, match=r"--routes 7: the run in .* has --routes 10,1000"):
        session.resume("l3fwd", tmp_path / "run", {"--routes": [7]}, quiet(), "")


def test_a_run_that_ends_in_its_first_cell_has_a_report(
    tmp_path: Path, machine: Simulation
) -> None:
    """No arm has started in the cells after it."""

    def fail(_: Plan) -> None:
        if len(machine.ran) > 20:
            raise LabError("no memory")

    machine.before = fail
    with pytest.raises(LabError, match="no memory"):
        start(tmp_path / "run")
    found = report([tmp_path / "run"], None, quiet())
    assert isinstance(found, Found)
    assert [cell.link for cell in found.summary.cells] == [ROUTES]


def test_runs_are_told_again_merged_and_compared(tmp_path: Path, machine: Simulation) -> None:
    first = start(tmp_path / "one")
    machine.noise = "2"
    machine.slower = {"rust-l3fwd-graph": 1.1}
    start(tmp_path / "two", seed=2)
    told = report([tmp_path / "one"], None, quiet())
    assert told.files()["summary.json"] == first.files()["summary.json"]
    parts = [stored(tmp_path / name) for name in ("one", "two")]
    both = merge(parts, tmp_path / "both", quiet())
    assert isinstance(both, Found)
    assert {cell.blocks for cell in both.summary.cells} == {16}
    changes = compare(parts[0], parts[1], 0.05).changes
    slower = {(c.link, c.arm) for c in changes if c.verdict == "slower"}
    assert (RULES, "rust-l3fwd-graph") in slower
    assert (ROUTES, "rust-l3fwd-graph") in slower
    assert not [each for each in slower if each[1] == "c-l3fwd-lpm"]


# -- goals ---------------------------------------------------------------------------------------


def trials_of(ratio: float, blocks: int = 40, on: str = "nearfree2-ip") -> list[Trial]:
    """Trials of C builds, the last one the fastest, and of Rust at `ratio` of that one."""
    found: list[Trial] = []
    arms = {
        "c-l3fwd-graph": 1.0, "c-l3fwd-graph-again": 1.0, "c-l3fwd-graph-native": 1.05,
        "c-l3fwd-graph-clang": 0.9, "c-l3fwd-graph-clang-native": 1.1,
        "rust-l3fwd-graph": 1.1 * ratio, "rust-l3fwd-graph-fused": 1.1 * ratio,
    }  # fmt: skip
    (cell,) = cells(options(routes=[1000], rules=[], links=[on], sizes=[64]))
    for block in range(blocks):
        for arm, factor in arms.items():
            source = random.Random(f"{block}:{arm}")
            trial = simulated_trial(
                source, arm.removesuffix("-again"), arm, cell, block=block, position=len(found)
            )
            trial.frames.forwarder_rx = trial.frames.forwarder_tx = round(
                (trial.frames.forwarder_rx or 0) * factor
            )
            found.append(trial)
    return found


@pytest.mark.parametrize(
    ("ratio", "states"),
    [(1.3, ["reached", "reached"]), (1.05, ["reached", "not reached"]),
     (1.0, ["not shown", "not reached"]), (0.9, ["not reached", "not reached"])],
)  # fmt: skip
def test_ours_is_held_against_the_best_c_build(ratio: float, states: list[str]) -> None:
    rows, reasons = goals.table(trials_of(ratio))
    assert not reasons
    assert [row.baseline for row in rows] == ["c-l3fwd-graph", *["c-l3fwd-graph-clang-native"] * 2]
    assert [row.state for row in rows[1:]] == states
    assert rows[1].found.n == 20


def test_a_link_with_a_generator_is_not_held_against_goals() -> None:
    """There the generator may be the limit."""
    there = trials_of(1.3, on="memif")
    assert goals.table(there) == ([], [])
    rows, _ = goals.table(there + trials_of(1.3))
    assert {row.cell for row in rows} == {"nearfree2-ip:1000-routes"}
