# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `graph` with a program that draws its figures: runs, choices, statements, records."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated import printed, quiet
from simulated_graph import Fake, options, start
from trials import made_trial
from typer.testing import CliRunner

from linerate.cli.commands import app
from linerate.experiments.graph.cells import BASE, chosen, groups, parse
from linerate.experiments.graph.choice import judged
from linerate.experiments.graph.design import check
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.plan import MOST
from linerate.experiments.graph.presets import PRESETS
from linerate.experiments.graph.running.conversation import Slice
from linerate.experiments.graph.running.slices import too_disturbed, window_of_slices
from linerate.experiments.graph.runs import Found
from linerate.experiments.graph.window import GraphWindow
from linerate.host.errors import RunError, UsageError
from linerate.records.trial import RECORDS, Trial, read
from linerate.runs.compare import compare
from linerate.runs.kept.rebuild import merge
from linerate.runs.kept.stored import stored
from linerate.runs.session import resume
from linerate_bench import graph_goals as goals

FEW = ["chain4/swap/hash5/*/256", "chain4/copy8/hash5/*", "chain4/assign1/hash5/*"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    return Fake(monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Found]:
    """A run that its tests only read, and its directory."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        Fake(patch, folder)
        return folder / "run", start(folder / "run", cells=[*FEW, "chain1/*", "split*"])


def window(arm: str, block: int, objects: int) -> Trial:
    """A window with this many objects in a second."""
    return made_trial(
        experiment="graph", seed=1, arm=arm, forwarder=arm, link=BASE, size=256, block=block,
        position=block, role="measure", load="self-driven", started_at="",
        outcome=GraphWindow(
            walks=1, objects=objects, sunk=objects, tsc_cycles=10**9, tsc_hz=10**9, work="0"
        ),
    )  # fmt: skip


# -- names ---------------------------------------------------------------------------------------


def test_a_cell_is_named_whole_or_by_a_pattern() -> None:
    there = [BASE, "chain4/copy8/hash5/nostats/256", "tree/assign1/none/stats/256"]
    assert chosen(["tree/*", BASE], there) == [BASE, there[2]]
    with pytest.raises(UsageError, match="no such cell") as error:
        chosen(["chain4/swop/hash5/nostats/256"], there)
    assert BASE in (error.value.hint or "")
    with pytest.raises(UsageError) as error:
        chosen(["zzz"], there)
    assert "chain4, tree" in (error.value.hint or "")


@pytest.mark.parametrize("name", ["", "chain4", "a/b/c/d/x", "a/b/c//256", "a/b/c/d/256/7"])
def test_what_is_no_cells_name_is_refused(name: str) -> None:
    with pytest.raises(RunError, match="is not a cell"):
        parse(name)


def test_each_question_has_its_cells() -> None:
    assert groups(parse(BASE)) == ["passing", "shapes", "batch"]
    assert groups(parse("split4/assign1/none/stats/256")) == ["splitting"]
    assert groups(parse("chain4/swap/hash5/nostats/8")) == ["batch"]
    assert groups(parse("chain4/swap/hash5/nostats/1")) == ["shapes"]
    assert groups(parse("tree/assign1/hash5/nostats/8")) == []


# -- builds --------------------------------------------------------------------------------------


def test_the_best_build_is_chosen_in_other_blocks_than_it_is_judged_in() -> None:
    trials = [window("c-graph/gcc", block, (9, 1)[block % 2]) for block in range(8)]
    trials += [window("c-graph/clang", block, (1, 9)[block % 2]) for block in range(8)]
    found = judged(trials)
    assert found.builds == {(BASE, "c-graph"): "c-graph/gcc"}
    assert [(t.arm, t.block) for t in found.trials] == [("c-graph", b) for b in (1, 3, 5, 7)]


def test_where_there_is_no_choice_all_blocks_judge() -> None:
    assert len(judged([window("rust-graph", block, 5) for block in range(8)]).trials) == 8


# -- runs ----------------------------------------------------------------------------------------


def test_a_run_compares_the_arms_by_their_names(whole: tuple[Path, Found]) -> None:
    _, found = whole
    compared = {(c.link, c.arm): c for c in found.summary.comparisons}
    assert {c.baseline for c in compared.values()} == {"c-graph"}
    assert {arm for _, arm in compared} == {"rust-graph", "fused", "one-loop"}
    fused = compared[BASE, "fused"]
    assert (fused.verdict, fused.primary, fused.n) == ("faster", True, 7)
    # What has no meaning is absent.
    copy = next(c for c in found.summary.cells if "copy8" in c.link)
    assert [arm.arm for arm in copy.arms] == [
        "c-graph", "c-graph-again", "rust-graph", "one-loop",
    ]  # fmt: skip
    assert (copy.link, "fused") not in compared
    base = next(c for c in found.summary.cells if c.link == BASE)
    assert base.arms[0].graph is not None
    assert base.arms[0].graph.path_nodes == 4
    assert base.arms[2].graph is not None
    assert base.arms[2].graph.build == "rust-graph/native"
    assert len(found.summary.aa) == len(found.summary.cells)
    assert "c-graph/clang is left out: there is no clang here" in found.summary.warnings


def test_the_published_ordering_is_looked_for_in_each_arm(whole: tuple[Path, Found]) -> None:
    found = whole[1].summary.graph
    assert found is not None
    told = {each.arm: each for each in found.orderings if each.stats == "nostats"}
    assert [told[arm].holds for arm in ("c-graph", "rust-graph", "one-loop")] == ["yes"] * 3
    assert told["fused"].holds == "untold"
    assert "no copy8" in told["fused"].reason
    split = {each.arm: each for each in found.splitting}
    assert [len(each.doublings) for each in split.values()] == [3] * 4
    assert split["c-graph"].alike == "no"
    assert (split["c-graph"].doublings[0].ratio or 1) < 1


def test_other_work_is_invalid_by_name(fake: Fake, tmp_path: Path) -> None:
    fake.lie(other_work="fused")
    found = start(tmp_path / "run", cells=[BASE], blocks=2)
    bad = [trial for trial in found.trials if trial.invalid]
    assert {trial.arm for trial in bad} == {"fused"}
    assert {trial.invalid_code for trial in bad} == {"work"}
    assert "fused did other work than c-graph/gcc" in (bad[0].invalid_why or "")


def test_lost_objects_and_refusals_are_invalid(fake: Fake, tmp_path: Path) -> None:
    fake.lie(losing="fused", refusing="one-loop")
    found = start(tmp_path / "run", cells=[BASE], blocks=2)
    codes = {trial.arm: trial.invalid_code for trial in found.trials if trial.invalid}
    assert codes == {"fused": "books", "one-loop": "error"}


def test_a_program_that_ends_is_started_anew(fake: Fake, tmp_path: Path) -> None:
    fake.lie(dying="fused")
    found = start(tmp_path / "run", cells=[BASE], blocks=2)
    codes = {trial.arm: trial.invalid_code for trial in found.trials if trial.invalid}
    assert codes == {"fused": "ended"}
    assert all(t.valid for t in found.trials if t.arm != "fused")
    assert any("cannot go on" in (t.invalid_why or "") for t in found.trials)


def test_without_a_valid_window_a_sentence_says_so(fake: Fake, tmp_path: Path) -> None:
    fake.lie(dying="every")
    found = start(tmp_path / "run", cells=FEW[1:2], blocks=2, keep_going=True)
    assert not any(trial.valid for trial in found.trials)
    console = quiet()
    found.show(console)
    told = printed(console)
    assert "No cell has any figures: there is nothing to compare." in told
    assert "Every cell" not in told
    cell = "chain4/copy8/hash5/nostats/256"
    assert f"note: {cell} has no figures: no window of it is valid, the last because: " in told


def test_a_single_block_has_no_figures_where_builds_are_chosen(fake: Fake, tmp_path: Path) -> None:
    found = start(tmp_path / "run", cells=[BASE], blocks=1)
    assert all(trial.valid for trial in found.trials)
    console = quiet()
    found.show(console)
    assert f"{BASE} has no figures: builds are chosen in one half of the blocks" in printed(console)


def test_a_window_is_void_and_repeated_where_others_had_the_cpu_in_most_slices(
    fake: Fake, tmp_path: Path
) -> None:
    rounds = 40
    fake.lie(starved={"fused": rounds + rounds // 2 + 1})
    found = start(tmp_path / "run", cells=[BASE], blocks=1)
    void = [trial for trial in found.trials if trial.invalid_code == "starved"]
    assert [(trial.arm, trial.request.attempt) for trial in void] == [("fused", 1), ("fused", 2)]
    assert (void[0].invalid_why, void[1].invalid_why) == (
        "others had the CPU in 40 of 40 slices", "others had the CPU in 21 of 40 slices"
    )  # fmt: skip
    last = found.trials[found.trials.index(void[-1]) + 1]
    assert (last.request.attempt, last.valid, last.arm) == (3, True, void[0].arm)


def test_disturbed_slices_are_left_out_and_counted(fake: Fake, tmp_path: Path) -> None:
    fake.lie(starved={"fused": 15})
    found = start(tmp_path / "run", cells=[BASE], blocks=1)
    assert all(trial.valid for trial in found.trials)
    counted = {
        trial.arm: trial.outcome.disturbed_slices
        for trial in found.trials
        if trial.role == "measure" and isinstance(trial.outcome, GraphWindow)
    }
    assert counted.pop("fused") == 15
    assert set(counted.values()) == {0}


def slices(cycles: list[int], waited: list[int | None]) -> list[Slice]:
    return [
        Slice(cell=BASE, arm="x", walks=1, objects=256, sunk=256, tsc_cycles=each, tsc_hz=10**9,
              waited_ns=ns, work="a")
        for each, ns in zip(cycles, waited, strict=True)
    ]  # fmt: skip


def test_the_faster_half_of_the_slices_that_others_left_alone_counts() -> None:
    # A slice that began while another arm had warmed the caches must not gain by a disturbance.
    ran = window_of_slices(slices([100, 5, 110, 300, 104, 900], [0, 7, 0, 0, 0, 0]), 4)
    assert (ran.slice_count, ran.disturbed_slices, ran.elapsed_cycles) == (6, 1, 1519)
    assert ran.tsc_cycles == round(6 * (100 + 104 + 110) / 3)
    assert (ran.walks, ran.objects, ran.sunk, ran.work) == (6, 6 * 256, 6 * 256, "a")
    assert not too_disturbed(ran)
    assert too_disturbed(window_of_slices(slices([100] * 4, [0, 1, 1, 1]), 4))
    # If the kernel does not report disturbances, none is known.
    assert window_of_slices(slices([100, 200], [None, None]), 4).disturbed_slices == 0


def test_slices_of_which_one_did_other_work_are_no_window_of_the_first_arms() -> None:
    mixed = slices([100, 100], [0, 0])
    mixed[1].work = "b"
    assert window_of_slices(mixed, 4).work == "a b"


def test_a_cell_whose_first_slice_was_always_starved_is_measured(
    fake: Fake, tmp_path: Path
) -> None:
    fake.lie(starved={"run": MOST.windows})
    found = start(tmp_path / "run", cells=[BASE], blocks=2)
    first = found.trials[: MOST.windows]
    assert {(trial.role, trial.invalid_code) for trial in first} == {("self-test", "starved")}
    assert all(trial.valid for trial in found.trials[MOST.windows :])


def test_a_run_goes_on_where_it_stopped(fake: Fake, tmp_path: Path) -> None:
    out = tmp_path / "run"
    whole = start(out, cells=FEW[:1], blocks=4)
    lines = (out / RECORDS).read_text().splitlines(keepends=True)
    (out / RECORDS).write_text("".join(lines[:17]))
    found = resume("graph", out, {"--cells": FEW[:1]}, quiet(), "linerate --resume")
    again = found.trials  # type: ignore[attr-defined]
    assert len(again) == len(whole.trials)
    assert [t.model_dump() for t in again[:17]] == [t.model_dump() for t in whole.trials[:17]]
    places = [(t.cell.name, t.arm, t.block, t.role) for t in again]
    assert places == [(t.cell.name, t.arm, t.block, t.role) for t in whole.trials]
    with pytest.raises(UsageError, match="--cells"):
        resume("graph", out, {"--cells": ["tree/*"]}, quiet(), "linerate --resume")


def test_runs_are_merged_and_compared(fake: Fake, tmp_path: Path) -> None:
    for seed in (1, 2):
        start(tmp_path / str(seed), cells=[BASE], seed=seed, blocks=6)
    parts = [stored(tmp_path / str(seed)) for seed in (1, 2)]
    found = merge(parts, tmp_path / "both", quiet())
    # In each run half of the blocks choose, the others judge.
    assert {c.n for c in found.summary.comparisons} == {6}
    told = compare(parts[0], parts[1], 0.05)
    assert {change.arm for change in told.changes} == {"rust-graph", "fused", "one-loop"}


def test_unknown_arms_and_no_cells_are_refused(fake: Fake) -> None:
    with pytest.raises(UsageError, match="--arms rust: no such arm"):
        check(Options(preset=PRESETS["quick"], arms=["rust"]))
    with pytest.raises(UsageError, match="no such cell"):
        options(cells=["nothing/at/all/is/1"])


def test_the_command_line_runs_and_goes_on(fake: Fake, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    asked = ["run", "graph", "--cells", "chain4/swap/hash5/nostats/*", "--blocks", "2"]
    done = CliRunner().invoke(app, [*asked, "--out", out])
    assert done.exit_code == 0, done.output
    assert "3 cells, 63 windows of 20 ms in 2 blocks: about" in done.output
    done = CliRunner().invoke(app, ["run", "graph", "--resume", out, "--blocks", "2"])
    assert "all 63 trials are done" in done.output
    done = CliRunner().invoke(app, [*asked[:2], "--arms", "rust", "--out", str(tmp_path / "no")])
    assert done.exit_code != 0
    assert not (tmp_path / "no").exists()


def test_without_c_the_next_arm_is_the_baseline(fake: Fake, tmp_path: Path) -> None:
    found = start(tmp_path / "run", cells=[BASE], arms=["fused", "rust-graph"])
    assert [(c.arm, c.baseline) for c in found.summary.comparisons] == [("fused", "rust-graph")]


def test_the_goals_are_held_against_the_lower_bounds(whole: tuple[Path, Found]) -> None:
    directory, _ = whole
    rows, reasons = goals.table(read(directory / RECORDS))
    told = {(row.cell, row.arm): row.state for row in rows}
    assert reasons == []
    assert told[BASE, "rust-graph"] == "reached"
    assert told[BASE, "fused"] == "reached"
    assert told[BASE, "one-loop"] == told[BASE, "c-graph-again"] == ""
    assert told["chain4/copy8/hash5/nostats/256", "rust-graph"] == "not reached"


@pytest.mark.parametrize(
    ("passing", "goal"),
    [("swap", 0.97), ("assign1", 0.97), ("assign2", 1.15), ("assign4", 1.15), ("copy1", 1.15),
     ("copy32", 1.15), ("copy256", 1.15), ("speculate", 0.97)],
)  # fmt: skip
def test_nodes_that_enqueue_in_bulk_are_to_be_faster(passing: str, goal: float) -> None:
    assert goals.goal("rust-graph", parse(f"chain4/{passing}/hash5/nostats/256")) == goal
