# SPDX-License-Identifier: BSD-3-Clause
"""What runs of rfc2544 say about forwarders with and without differences, and when nothing."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from rfc2544_runs import arm, run, verdict
from rich.console import Console
from simulated_lab import (
    CAPACITY,
    CEILING_PPS,
    CYCLES,
    SimulatedLab,
)

from linerate.experiments.rfc2544.table import print_rfc2544
from linerate.records.summary import CellSummary, Comparison, Summary
from linerate.trial.search.simulated import Model
from linerate.verdict.comparisons import compare, pair_searched
from linerate.verdict.metrics import NDR
from linerate.verdict.sentences import sentence

FAST = {"c-l2fwd": 12e6, "rust-l2fwd": 8.8e6, "reflect": 9e6}


def limits_of(found: Summary) -> dict[str, str]:
    return {each.arm: each.by for each in found.limited_by}


def test_an_arm_at_the_ceiling_is_limited() -> None:
    """The sender is on time with everything the peer carries of a flood: the link is the limit."""
    _, found = run(SimulatedLab(capacity=FAST, noise=0.001), tests=("throughput",))
    assert limits_of(found) == {"c-l2fwd": "link", "rust-l2fwd": "link"}


def test_a_sender_that_cannot_send_what_the_link_carries_is_the_limit() -> None:
    """The other arm is limited only by itself."""
    slow = {**FAST, "rust-l2fwd": 4e6}
    late = SimulatedLab(
        capacity=slow, noise=0.001, late=lambda pps: float(pps > 0.86 * CEILING_PPS)
    )
    _, found = run(late, tests=("throughput",))
    assert limits_of(found) == {"c-l2fwd": "generator"}


@pytest.mark.parametrize(("line_rate", "by"), [(CEILING_PPS, "link"), (8.5e6, "line rate")])
def test_an_arm_at_the_line_rate_is_limited_by_the_link_or_by_what_was_asked_for(
    line_rate: float, by: str
) -> None:
    """The link carries no more than its line rate; if a lower rate was given, what it carries is
    not known.
    """
    lab = SimulatedLab(capacity=FAST, noise=0.001)
    _, found = run(lab, tests=("throughput",), line_rate=line_rate)
    assert limits_of(found)["c-l2fwd"] == by


def test_a_device_that_always_loses_has_no_rate_without_loss_and_a_verdict_on_the_other() -> None:
    lossy = Model(capacity_pps=1.0, max_pps=1.0, queue=512, random_loss=0.003)
    _, found = run(SimulatedLab(model=lossy), tests=("throughput",), keep_going=True)
    assert verdict(found, "pdr_pps").verdict != "invalid"
    searched = verdict(found, "ndr_pps")
    assert (searched.verdict, searched.ratio) == ("undecided", None)
    assert searched.n == found.cells[0].blocks
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    assert figures.goals[0].below_minimum == figures.searches
    assert figures.goals[0].pps is None


def test_where_the_generator_is_the_limit_cycles_per_packet_decide() -> None:
    fast = {"c-l2fwd": 12e6, "rust-l2fwd": 12e6}
    lab = SimulatedLab(capacity=fast)
    _, found = run(lab, tests=("throughput", "core-use"), sizes=[64, 512], blocks=10)
    primary = [each for each in found.comparisons if each.primary]
    assert [(c.metric, c.size, c.load_share, c.better, c.verdict) for c in primary] == [
        ("busy_cycles_per_packet", size, share, "lower", "faster")
        for size in (64, 512)
        for share in (0.1, 0.2, 0.35, 0.5, 0.75, 0.9)
    ]
    for each in primary:
        assert each.ratio == pytest.approx(CYCLES["rust-l2fwd"] / CYCLES["c-l2fwd"], rel=0.01)
        assert each.p == pytest.approx(1 / 512)
        # A family of two sizes at six loads: the smallest p of ten blocks, twelve times.
        assert each.p_holm == pytest.approx(12 / 512)
        assert f"fewer busy cycles per packet at {each.load_share:.0%}".replace("%", " %") in (
            each.sentence
        )
        assert (each.limited_by, each.limited) == (None, None)
    rates = [each for each in found.comparisons if each.metric == "ndr_pps"]
    assert {(each.primary, each.verdict) for each in rates} == {(False, "undecided")}
    shown = StringIO()
    print_rfc2544(Console(file=shown, width=130), found, verdicts=True)
    assert (
        "the verdict is that of cycles per packet at 10 %, 20 %, 35 %, 50 %, 75 % and 90 % load"
        in shown.getvalue()
    )
    assert shown.getvalue().index("core use") < shown.getvalue().index("throughput")


def test_an_equal_cost_is_equal_and_a_higher_one_is_dearer() -> None:
    fast = {"c-l2fwd": 12e6, "rust-l2fwd": 12e6, "testpmd-mac": 12e6}
    cycles = {"rust-l2fwd": CYCLES["c-l2fwd"], "testpmd-mac": 1.1 * CYCLES["c-l2fwd"]}
    _, found = run(
        SimulatedLab(capacity=fast, cycles=cycles),
        tests=("throughput", "core-use"),
        forwarders=["c-l2fwd", "rust-l2fwd", "testpmd-mac"],
    )
    verdicts = {(c.arm, c.load_share): c.verdict for c in found.comparisons if c.primary}
    assert {v for (arm, _), v in verdicts.items() if arm == "rust-l2fwd"} == {"equal"}
    assert {v for (arm, _), v in verdicts.items() if arm == "testpmd-mac"} == {"slower"}
    assert any("testpmd-mac is dearer than c-l2fwd" in c.sentence for c in found.comparisons)


def test_without_the_cost_the_rates_stay_primary() -> None:
    fast = {"c-l2fwd": 12e6, "rust-l2fwd": 12e6}
    _, found = run(SimulatedLab(capacity=fast, probe=False), tests=("throughput", "core-use"))
    assert found.limited_by
    (primary,) = [c for c in found.comparisons if c.primary]
    assert primary.metric == "ndr_pps"
    # All searches ended at 100 %: the difference that they could have found is unknown.
    assert (primary.ratio, primary.spread, primary.smallest_detectable) == (1.0, 0.0, None)
    assert "smallest difference" not in primary.sentence
    assert found.smallest_detectable is None


def test_a_slower_forwarder_is_found_to_be_slower_by_latency() -> None:
    lab = SimulatedLab(noise=0.001)
    lab.latency = {"rust-l2fwd": 1.3}
    _, found = run(lab, tests=("throughput", "latency"))
    for share in (0.1, 0.5):
        comparison = next(
            c for c in found.comparisons
            if (c.metric, c.load_share) == ("latency_p50_us", share)
        )  # fmt: skip
        assert comparison.verdict == "slower"
        assert comparison.ratio == pytest.approx(1.3, rel=0.02)
        assert "higher median latency at" in comparison.sentence


def test_loss_that_some_runs_lack_is_compared_by_its_difference() -> None:
    """One forwarder loses nothing even at 100 %, the other does."""
    fast = {"c-l2fwd": 12e6, "rust-l2fwd": 9.5e6}
    _, found = run(SimulatedLab(capacity=fast), tests=("throughput", "loss"))
    loss = next(c for c in found.comparisons if c.metric == "loss_ratio")
    assert (loss.verdict, loss.ratio, loss.p) == ("slower", None, 2 / 2**10)
    difference = loss.difference
    assert difference is not None
    assert difference.shift == pytest.approx(0.05, abs=0.01)
    assert (difference.cliffs_delta, difference.arm_zeros, difference.baseline_zeros) == (1, 0, 1)
    assert "rust-l2fwd loses more than c-l2fwd" in loss.sentence
    assert "points more frames lost at 100 % load" in loss.sentence
    assert "0 % of the runs of rust-l2fwd lost nothing and 100 % of c-l2fwd's" in loss.sentence


def test_a_search_without_any_load_that_reaches_the_goal_counts() -> None:
    """It counts as 0, which has no ratio: without three such searches the arm would be the faster
    one.
    """
    slow = [4e6 * (1 + 0.001 * block) for block in range(9)]
    found = rates_compared(slow, [0.0 if block < 3 else 1.1 * slow[block] for block in range(9)])
    assert (found.verdict, found.n, found.ratio) == ("undecided", 9, None)
    assert found.difference is not None
    assert found.difference.arm_zeros == pytest.approx(1 / 3)
    assert "33 % of the runs of rust-l2fwd found no load that reaches it" in found.sentence


def test_without_any_load_at_all_an_arm_is_slower_and_two_are_not_told_apart() -> None:
    slow = [4e6 * (1 + 0.001 * block) for block in range(9)]
    found = rates_compared(slow, [0.0] * 9)
    assert found.verdict == "slower"
    assert "million fewer frames per second at the non-drop rate" in found.sentence
    found = rates_compared([0.0] * 9, [0.0] * 9)
    assert (found.verdict, found.reason) == ("undecided", "both are below all that was tried")


def rates_compared(baseline: Sequence[float], other: Sequence[float]) -> Comparison:
    """Return rates as searches found them, block by block; the A/A arm has those of the
    baseline.
    """
    values = {
        (block, 1): {"c-l2fwd": slow, "c-l2fwd-again": slow, "rust-l2fwd": fast}
        for block, (slow, fast) in enumerate(zip(baseline, other, strict=True))
    }
    cell = CellSummary(link="memif", size=64, blocks=9, arms=[], references=[], lower_load=[])
    labels = ["c-l2fwd", "c-l2fwd-again", "rust-l2fwd"]
    (found,) = compare([pair_searched(cell, NDR, values, labels, planned=9, primary=True)])
    found.sentence = sentence(found)
    return found


def test_bursts_longer_than_any_that_was_tried_are_not_left_out() -> None:
    """Searches that end at a limit have the longest bursts; the others are too short."""
    lab = SimulatedLab(capacity={"rust-l2fwd": 9.9e6}, noise=0.02)
    _, found = run(lab, tests=("throughput", "back-to-back"))
    figures = arm(found, "rust-l2fwd").search
    assert figures is not None
    assert figures.back_to_back is not None
    assert 0 < figures.back_to_back.at_limit < figures.searches
    buffer = verdict(found, "corrected_buffer_s")
    assert (buffer.verdict, buffer.n, buffer.ratio) == ("undecided", 0, None)
    assert (
        f"in {figures.back_to_back.at_limit} of {figures.searches} searches of rust-l2fwd the "
        "longest burst that was tried passed, so that its figure is not known"
    ) in buffer.sentence


def test_few_blocks_leave_every_comparison_undecided() -> None:
    _, found = run(SimulatedLab(), blocks=3)
    assert {c.verdict for c in found.comparisons} == {"undecided"}
    assert {c.reason for c in found.comparisons} == {"no test can reject with fewer than 6 blocks"}


def test_equal_forwarders_are_not_found_to_differ() -> None:
    same = {"rust-l2fwd": CAPACITY["c-l2fwd"]}
    same_cycles = {"rust-l2fwd": CYCLES["c-l2fwd"]}
    _, found = run(SimulatedLab(capacity=same, cycles=same_cycles, noise=0.002))
    assert len(found.comparisons) > 10
    for comparison in found.comparisons:
        assert comparison.verdict in ("equal", "undecided"), comparison.sentence
