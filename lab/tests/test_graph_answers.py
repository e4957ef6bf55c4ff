# SPDX-License-Identifier: BSD-3-Clause
"""The published orderings of experiment `graph` for drawn windows, and undecided ones."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from trials import made_trial

from linerate.experiments.graph.answers import published_words
from linerate.experiments.graph.design import NAME
from linerate.experiments.graph.page.table import ordering_line, splitting_line
from linerate.experiments.graph.summarise import summarise
from linerate.experiments.graph.window import GraphWindow
from linerate.records.cells import AA_SUFFIX, Arm, Cell
from linerate.records.summary_figures import GraphAnswers, Ordering, Splitting
from linerate.records.trial import Trial
from linerate.runs.run_summary import Setup

SWAP, COPY, ASSIGN = (f"chain4/{each}/hash5/nostats/256" for each in ("swap", "copy8", "assign1"))
WAYS = [f"{each}/assign1/hash5/nostats/256" for each in ("chain1", "split2", "split4", "split8")]
ARM, AGAIN = "c-graph", "c-graph" + AA_SUFFIX
Costs = Mapping[str, float | Mapping[str, float]]


def window(cell: str, arm: str, block: int, cycles: float) -> Trial:
    return made_trial(
        experiment=NAME, seed=1, arm=arm, forwarder=arm.removesuffix(AA_SUFFIX), link=cell,
        size=256, block=block, position=0, role="measure", load="self-driven", started_at="",
        outcome=GraphWindow(
            walks=1, objects=10**6, sunk=10**6, tsc_cycles=round(cycles * 10**6), tsc_hz=10**9,
            work="0",
        ),
    )  # fmt: skip


def told(costs: Costs, blocks: int = 20, noise: float = 0.003) -> GraphAnswers:
    """Make answers; `costs`: cycles per object by cell, or by cell and arm."""
    source = random.Random(7)
    trials = []
    for block in range(blocks):
        for cell, cost in costs.items():
            for arm in (ARM, AGAIN):
                mine = cost if isinstance(cost, float) else cost[arm]
                trials.append(window(cell, arm, block, mine * source.gauss(1, noise)))
    cells = [Cell(cell, 256, blocks) for cell in costs]
    setup = Setup(
        experiment=NAME, question="", preset="", preset_note="", command="", seed=1, window_s=0.02,
        started_at="", cells=cells, arms=[Arm(ARM, ARM), Arm(AGAIN, ARM)],
    )  # fmt: skip
    found = summarise(setup, trials, interrupted=False).graph
    assert found
    return found


def ordering(costs: Costs, blocks: int = 20, noise: float = 0.003) -> Ordering:
    (found,) = told(costs, blocks, noise).orderings
    return found


def splitting(costs: Costs) -> Splitting:
    (found,) = told(costs).splitting
    return found


def test_an_ordering_holds_when_each_is_faster_than_the_next() -> None:
    found = ordering({SWAP: 10.0, COPY: 12.0, ASSIGN: 15.0})
    assert (found.holds, found.reason) == ("yes", "")
    assert [step.verdict for step in found.steps] == ["faster", "faster"]


@pytest.mark.parametrize(("copy", "verdict"), [(10.0, "equal"), (9.0, "slower")])
def test_an_ordering_does_not_hold_where_two_are_alike_or_the_other_way(
    copy: float, verdict: str
) -> None:
    found = ordering({SWAP: 10.0, COPY: copy, ASSIGN: 15.0})
    assert (found.holds, found.steps[0].verdict) == ("no", verdict)
    assert found.reason.startswith("swap / copy8: the interval lies")
    assert f"does not hold here ({found.reason}): swap / copy8 " in ordering_line(found)


def test_a_cell_whose_control_differs_leaves_the_ordering_untold() -> None:
    found = ordering({SWAP: 10.0, COPY: {ARM: 12.0, AGAIN: 12.6}, ASSIGN: 15.0})
    assert (found.holds, found.steps[0].verdict) == ("untold", "invalid")
    assert "the A/A arm" in found.reason
    assert "cannot be told" in ordering_line(found)


def test_controls_that_differ_in_opposite_ways_leave_it_untold() -> None:
    """Neither cell contradicts itself; the ordering is about both."""
    found = ordering({SWAP: {ARM: 10.0, AGAIN: 10.15}, ASSIGN: {ARM: 15.0, AGAIN: 14.775}})
    assert found.steps[0].verdict == "invalid"
    assert found.reason.startswith("swap / assign1: the A/A arm")


def test_noise_leaves_an_ordering_that_the_data_show() -> None:
    found = ordering({SWAP: 10.0, COPY: 40.0, ASSIGN: 160.0}, noise=0.3)
    assert found.holds == "yes"


def test_too_few_blocks_leave_it_untold() -> None:
    found = ordering({SWAP: 10.0, COPY: 12.0, ASSIGN: 15.0}, blocks=5)
    assert (found.holds, found.steps[0].verdict) == ("untold", "undecided")


def test_holm_corrects_over_the_pairs_of_an_ordering() -> None:
    """The smallest p of six blocks is 0.031: enough for one pair, too little for two."""
    two = ordering({SWAP: 10.0, ASSIGN: 15.0}, blocks=6)
    assert [step.verdict for step in two.steps] == ["faster"]
    assert "there is no copy8 here" in two.reason
    three = ordering({SWAP: 10.0, COPY: 12.0, ASSIGN: 15.0}, blocks=6)
    assert [step.p for step in three.steps] == [two.steps[0].p] * 2
    assert [step.p_holm for step in three.steps] == [0.0625] * 2
    assert [step.verdict for step in three.steps] == ["undecided"] * 2
    assert three.holds == "untold"
    assert "Holm's p over the pairs of this question is 0.06" in three.reason


def test_each_count_of_copied_pointers_has_an_ordering_of_its_own() -> None:
    """If an arm has such copies; without any the first ordering compares the other two."""
    more = SWAP.replace("swap", "copy64")
    found = told({SWAP: 10.0, COPY: 12.0, more: 9.0, ASSIGN: 15.0})
    copies = [each.steps[0].second.split("/")[1] for each in found.orderings]
    assert copies == ["copy8", "copy64"]
    assert [each.holds for each in found.orderings] == ["yes", "no"]
    assert len(told({SWAP: 10.0, ASSIGN: 15.0}).orderings) == 1


def test_how_many_orderings_hold_is_said_in_a_sentence() -> None:
    costs = {SWAP: 10.0, COPY: 12.0, ASSIGN: 15.0}
    costs |= dict(zip(WAYS, (10.0, 11.0, 12.1, 15.0), strict=True))
    assert published_words(told(costs)) == (
        "published orderings that hold here: 1, that do not: 1, not decided: 0"
    )
    few = told({SWAP: 10.0, COPY: 12.0, ASSIGN: 15.0}, blocks=5)
    assert published_words(few).endswith("hold here: 0, that do not: 0, not decided: 1")
    assert published_words(told({SWAP: 10.0})) == ""


def test_doublings_are_alike_when_each_costs_as_much() -> None:
    found = splitting(dict(zip(WAYS, (10.0, 11.0, 12.1, 13.31), strict=True)))
    assert (found.alike, found.reason) == ("yes", "")
    assert [each.verdict for each in found.changes] == ["equal", "equal"]
    # The cost of a doubling is reported, and is no separate claim.
    assert [round(each.ratio or 0, 2) for each in found.doublings] == [0.91] * 3


def test_the_ratio_that_decides_is_told_with_its_interval() -> None:
    found = splitting(dict(zip(WAYS, (10.0, 11.0, 12.1, 15.0), strict=True)))
    assert found.alike == "no"
    decides = found.changes[1]
    assert (decides.first, decides.second, decides.verdict) == (WAYS[3], WAYS[2], "slower")
    line = splitting_line(found)
    assert f"{decides.ratio:.3f} ({decides.ci_low:.3f} to {decides.ci_high:.3f})" in line
    assert "not alike here (the doubling to split8 over that to split4: 0.88" in line


def test_a_cell_whose_control_differs_leaves_doublings_untold() -> None:
    costs: dict[str, float | Mapping[str, float]] = dict(
        zip(WAYS, (10.0, 11.0, 12.1, 15.0), strict=True)
    )
    found = splitting({**costs, WAYS[3]: {ARM: 15.0, AGAIN: 15.8}})
    assert found.alike == "untold"
    assert found.changes[0].verdict == "equal"
    assert "the A/A arm" in found.reason
