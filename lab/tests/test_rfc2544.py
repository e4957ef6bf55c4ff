# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs of experiment rfc2544 on simulated forwarders whose capacity is known."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console
from simulated import KilledError, printed
from simulated_lab import (
    CAPACITY,
    CEILING_PPS,
    CYCLES,
    HZ,
    QUICK,
    SimulatedLab,
    options,
    quiet,
    resume,
    start,
)

from linerate import links, rebuild, records, schemas
from linerate.comparisons import compare, pair_searched
from linerate.errors import Interrupted, LabError, UsageError
from linerate.metrics import NDR
from linerate.other_generator import Named
from linerate.records import RECORDS, Test, Trial
from linerate.rfc2544 import presets
from linerate.rfc2544.estimate import estimate
from linerate.rfc2544.experiment import cells
from linerate.rfc2544.runs import Found
from linerate.rfc2544.table import conformity, print_rfc2544
from linerate.search import latency, throughput
from linerate.search.device import Device
from linerate.search.goals import Goal
from linerate.search.simulated import Model
from linerate.sentences import sentence
from linerate.stats import ALPHA
from linerate.summary import ArmSummary, CellSummary, Comparison, Summary
from linerate.verdict import LOW_LOAD

WIDTH = QUICK.goals[0].width


# With all tests at one size, where nothing else is asked for.
BLOCKS = cells(options())[0].blocks


def run(lab: SimulatedLab, **given: object) -> tuple[list[Trial], Summary]:
    with tempfile.TemporaryDirectory() as scratch:
        found = start(lab, Path(scratch) / "out", **given)
    return found.trials, found.summary


@dataclass(frozen=True)
class Measured:
    directory: Path
    trials: list[Trial]
    summary: Summary


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    directory = tmp_path_factory.mktemp("rfc2544") / "out"
    found = start(SimulatedLab(), directory)
    return Measured(directory, found.trials, found.summary)


def arm(found: Summary, name: str) -> ArmSummary:
    return next(each for each in found.cells[0].arms if each.arm == name)


def verdict(found: Summary, metric: str = "ndr_pps") -> Comparison:
    return next(each for each in found.comparisons if each.metric == metric)


def test_the_throughput_is_the_capacity_within_the_width(
    measured: Measured,
) -> None:
    for name in ("c-l2fwd", "rust-l2fwd"):
        figures = arm(measured.summary, name).search
        assert figures is not None
        ndr, pdr = figures.goals
        assert ndr.pps is not None
        assert pdr.pps is not None
        # What the queue holds passes too, in a window of 0.1 s.
        most = CAPACITY[name] + 512 / 0.1
        assert CAPACITY[name] * (1 - WIDTH - 0.01) < ndr.pps.median < most * 1.01
        assert pdr.pps.median >= ndr.pps.median
        assert ndr.l2_bps == pytest.approx(ndr.pps.median * 64 * 8)
        assert ndr.l1_bps == pytest.approx(ndr.pps.median * 84 * 8)
        assert (figures.unfinished, figures.void_windows, figures.reasons) == (0, 0, {})


def test_a_known_difference_gets_its_verdict(measured: Measured) -> None:
    for metric in ("ndr_pps", "pdr_pps"):
        found = verdict(measured.summary, metric)
        assert (found.verdict, found.arm, found.n) == ("faster", "rust-l2fwd", BLOCKS)
        assert found.ratio == pytest.approx(1.1, rel=2 * WIDTH)
        assert "rust-l2fwd is faster than c-l2fwd" in found.sentence
    assert measured.summary.limited_by == []


def test_one_hundred_per_cent_is_the_best_peer_s(measured: Measured) -> None:
    ceiling = measured.summary.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps == pytest.approx(CEILING_PPS, rel=1e-6)
    assert ceiling.peer == "reflect"
    assert set(ceiling.measured_mpps) == {"reflect", "testpmd-io"}


def test_other_tests_are_at_the_own_throughput(measured: Measured) -> None:
    for name in ("c-l2fwd", "rust-l2fwd"):
        figures = arm(measured.summary, name).search
        assert figures is not None
        assert [each.share for each in figures.latency] == list(QUICK.latency_loads)
        for each in figures.latency:
            assert each.trials == BLOCKS
            assert each.minimum_us >= 10
            assert each.quantiles_us["0.999"].median >= each.quantiles_us["0.5"].median
            expected = each.quantiles_us["0.999"].median - each.minimum_us
            assert each.pdv_us["0.999"].median == pytest.approx(expected, rel=0.2)
            # Of delays that fall off exponentially: the mean of the differences is that of the
            # delays beyond the least, the median of both is that by the natural logarithm of 2.
            assert each.jitter_us is not None
            assert each.ipdv_us is not None
            mean = each.mean_us.median - each.minimum_us
            assert each.jitter_us.median == pytest.approx(mean, rel=0.1)
            assert each.ipdv_us["0.5"].median == pytest.approx(mean * math.log(2), rel=0.1)
        assert figures.loss[0].share == 1
        expected = 1 - CAPACITY[name] / CEILING_PPS
        assert figures.loss[0].loss_ratio.median == pytest.approx(expected, abs=0.02)
        assert figures.loss[-1].loss_ratio.median == 0
        burst = figures.back_to_back
        assert burst is not None
        full = 512 / (1 - CAPACITY[name] / CEILING_PPS)
        recovery = figures.recovery
        assert recovery is not None
        assert (recovery.repetitions, recovery.not_recovered) == (BLOCKS, 0)
        assert recovery.not_overloaded == 0
        # A full queue loses no more once the rate is below the capacity.
        assert recovery.recovered_s is not None
        assert recovery.recovered_s.median == pytest.approx(0, abs=1e-3)
        assert burst.frames.median == pytest.approx(full, abs=QUICK.burst_resolution + 20)


def test_core_use_is_known_at_the_loads_that_an_arm_carries() -> None:
    fast = {"c-l2fwd": 4e6, "rust-l2fwd": 6e6}
    trials, found = run(SimulatedLab(capacity=fast), tests=("throughput", "core-use"))
    lower = {(each.arm, each.load_share): each for each in found.cells[0].lower_load}
    carried = {"c-l2fwd": (0.1, 0.2, 0.35), "rust-l2fwd": (0.1, 0.2, 0.35, 0.5)}
    carried["c-l2fwd-again"] = carried["c-l2fwd"]
    assert set(lower) == {
        (name, share) for name, shares in carried.items() for share in (*shares, LOW_LOAD)
    }
    for (name, share), entry in lower.items():
        assert (entry.trials, entry.invalid, entry.loss_share) == (BLOCKS, 0, 0)
        if share == LOW_LOAD:
            # The probe does not look there.
            assert entry.busy_cycles_per_packet is None
            continue
        assert entry.offered_mpps == pytest.approx(share * CEILING_PPS / 1e6)
        cycles = CYCLES[name.removesuffix("-again")]
        for figure, expected in (
            (entry.busy_cycles_per_packet, cycles),
            (entry.average_rx_burst, 4),
            (entry.average_nonempty_rx_burst, 16),
            (entry.busy_share, cycles * share * CEILING_PPS / HZ),
            (entry.full_share, 1 / 8),
            (entry.rx_spin, 6 / 8),
        ):
            assert figure is not None
            assert figure.n == BLOCKS
            assert figure.median == pytest.approx(expected, rel=0.02)
    for trial in trials:
        assert trial.probe == (trial.polling is not None) == (trial.test == "core-use")
    assert not any("probe" in text for text in found.warnings)


def test_core_use_at_the_own_throughput_is_known_and_compared_with_nobody_s() -> None:
    """Not even where two arms found the same: both carry all there is here."""
    fast = {"c-l2fwd": 12e6, "rust-l2fwd": 12e6, "testpmd-mac": 5.5e6}
    trials, found = run(
        SimulatedLab(capacity=fast),
        tests=("throughput", "core-use"),
        forwarders=["c-l2fwd", "rust-l2fwd", "testpmd-mac"],
    )
    for entry in found.cells[0].arms:
        assert entry.search is not None
        own, rate = entry.search.at_throughput, entry.search.goals[0].pps
        assert own is not None
        assert rate is not None
        assert (own.arm, own.trials, own.invalid) == (entry.arm, BLOCKS, 0)
        assert own.load_share == pytest.approx(rate.median / CEILING_PPS)
        assert own.offered_mpps == pytest.approx(rate.median / 1e6, rel=1e-3)
        assert own.average_rx_burst is not None
        assert own.average_rx_burst.n == BLOCKS
    (peer,) = [each for each in found.cells[0].references if each.search]
    assert peer.search is not None
    assert peer.search.at_throughput is None
    loads = {c.load_share for c in found.comparisons if c.metric == "busy_cycles_per_packet"}
    assert loads == set(QUICK.core_use_loads)
    # It is the last of the windows.
    unit = [t for t in trials if (t.arm, t.block, t.test) == ("rust-l2fwd", 0, "core-use")]
    assert [t.load_share for t in unit] == [*QUICK.core_use_loads, 1]


def test_forwarders_that_do_not_take_the_probe_are_searched_all_the_same() -> None:
    _, found = run(SimulatedLab(probe=False), tests=("throughput", "core-use"))
    assert verdict(found).verdict == "faster"
    assert all(each.busy_share is None for each in found.cells[0].lower_load)
    told = [text for text in found.warnings if "the probe cannot look" in text]
    assert len(told) == 1
    assert "c-l2fwd, rust-l2fwd" in told[0]


def test_records_alone_give_the_same_summary(measured: Measured, tmp_path: Path) -> None:
    lines = (measured.directory / RECORDS).read_text().splitlines()
    validator = jsonschema.Draft202012Validator(schemas.stored("trial-1.json"))
    for line in lines[:200]:
        validator.validate(json.loads(line))
    copy = tmp_path / "copy"
    shutil.copytree(measured.directory, copy)
    (copy / "summary.json").unlink()
    again = rebuild.report([copy], None, quiet())
    assert isinstance(again, Found)
    assert again.summary == measured.summary
    data = json.loads((copy / "summary.json").read_text())
    jsonschema.validate(data, schemas.stored("summary-1.json"))
    assert data == json.loads((measured.directory / "summary.json").read_text())


def test_units_are_interleaved_with_the_control_and_the_peer(
    measured: Measured,
) -> None:
    trials = [trial for trial in measured.trials if trial.role == "search"]
    orders = []
    for block in range(6):
        labels = [trial.arm for trial in trials if trial.block == block]
        seen = list(dict.fromkeys(labels))
        # One unit after the other: nobody comes back.
        assert labels == sorted(labels, key=seen.index)
        assert set(seen) == {"c-l2fwd", "c-l2fwd-again", "rust-l2fwd", "reflect"}
        orders.append(tuple(seen))
    assert len(set(orders)) > 1
    assert [trial.position for trial in measured.trials] == list(range(len(measured.trials)))


def test_void_windows_are_repeated_told_and_change_no_answer() -> None:
    lab = SimulatedLab(late=lambda _: 0.5)
    trials, found = run(lab, tests=("throughput",))
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    assert figures.unfinished == 0
    assert 0.4 < figures.void_windows / figures.windows < 0.6
    assert verdict(found).verdict == "faster"
    void = [trial for trial in trials if trial.invalid_code == "late"]
    assert found.invalid_trials == len(void) > 0
    # Each is followed by another window of the same trial.
    attempts = {trial.attempt or 0 for trial in trials if trial.valid}
    assert max(attempts) > 1


@pytest.mark.parametrize("tests", [("throughput",), ("throughput", "loss"), presets.TESTS])
def test_a_search_that_ran_out_of_time_is_told_from_its_records(
    monkeypatch: pytest.MonkeyPatch, tests: tuple[Test, ...]
) -> None:
    """By what came next, or did not: asked anew, the search has all the time it wants."""
    live = throughput.search

    def hasty(device: Device, goals: Sequence[Goal], *, limit_s: float) -> throughput.Throughput:
        short = 1e-9 if limit_s == QUICK.limit_s else limit_s
        return live(device, goals, limit_s=short)

    monkeypatch.setattr("linerate.rfc2544.units.search", hasty)
    _, found = run(SimulatedLab(), keep_going=True, tests=tests)
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    blocks = cells(options(tests=tests))[0].blocks
    assert figures.unfinished == figures.searches == blocks
    assert figures.reasons == {
        "throughput: the search ended before its goal: its time was over, or the run's": blocks
    }
    # Frame loss needs no throughput, latency does.
    assert bool(figures.loss) == ("loss" in tests)
    assert figures.latency == []
    assert verdict(found).verdict == "invalid"
    assert found.interrupted is False


def test_a_sender_that_is_late_at_the_flood_s_rate_has_a_lower_maximum() -> None:
    lab = SimulatedLab(late=lambda pps: 1.0 if pps > 0.86 * CEILING_PPS else 0.0)
    _, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps == pytest.approx(0.85 * CEILING_PPS)


def test_a_rate_at_which_the_sender_is_on_time_by_luck_alone_is_not_the_maximum() -> None:
    """One window of many: the searches would find no other."""
    lab = SimulatedLab(late=lambda pps: 0.8 if pps > 0.66 * CEILING_PPS else 0.0, seed=3)
    lab.late_share = 0.99
    trials, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps == pytest.approx(0.6 * CEILING_PPS)
    paced = [t for t in trials if t.role == "self-test" and t.load == "paced"]
    assert any(t.valid for t in paced if (t.asked_pps or 0) > 0.66 * CEILING_PPS)
    # Gaps of the machine's, in as many windows, are another matter.
    lab = SimulatedLab(late=lambda pps: 0.8 if pps > 0.66 * CEILING_PPS else 0.0, seed=3)
    _, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps > 0.66 * CEILING_PPS


def test_a_sender_that_is_never_on_time_ends_the_run() -> None:
    lab = SimulatedLab(late=lambda _: 1.0)
    with pytest.raises(LabError, match="not on time"):
        run(lab)


def test_searches_that_never_end_end_the_run() -> None:
    lab = SimulatedLab(model=Model(capacity_pps=1.0, max_pps=1.0, failing=0.9))
    with pytest.raises(LabError, match="found no throughput"):
        run(lab, line_rate=CEILING_PPS)
    assert lab.running == 0


def test_a_peer_that_fails_is_named() -> None:
    lab = SimulatedLab(model=Model(capacity_pps=1.0, max_pps=1.0, failing=1.0))
    with pytest.raises(LabError, match="reference peer reflect failed"):
        run(lab)


def test_without_a_sound_self_test_only_a_line_rate_helps() -> None:
    lab = SimulatedLab()
    lab.peers_starve = True
    with pytest.raises(LabError, match="no trial of a reference peer counts, the last because"):
        run(lab)
    _, found = run(lab, tests=("throughput",), line_rate=CEILING_PPS)
    assert verdict(found).verdict == "faster"
    assert found.cells[0].ceiling is not None
    assert found.cells[0].ceiling.peer == "--line-rate"


FAST = {"c-l2fwd": 12e6, "rust-l2fwd": 8.8e6, "reflect": 9e6}


def limits_of(found: Summary) -> dict[str, str]:
    return {each.arm: each.by for each in found.limited_by}


def test_an_arm_at_the_ceiling_is_limited() -> None:
    """The sender is on time with all that the peer carries of a flood: the link carries no more."""
    _, found = run(SimulatedLab(capacity=FAST, noise=0.001), tests=("throughput",))
    assert limits_of(found) == {"c-l2fwd": "link", "rust-l2fwd": "link"}


def test_a_sender_that_cannot_send_what_the_link_carries_is_the_limit() -> None:
    """The other arm is limited by nothing else than itself."""
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
    """The link carries no more than its line rate; of one that is less nobody knows."""
    lab = SimulatedLab(capacity=FAST, noise=0.001)
    _, found = run(lab, tests=("throughput",), line_rate=line_rate)
    assert limits_of(found)["c-l2fwd"] == by


def test_a_device_that_loses_at_a_low_load_gets_no_verdict() -> None:
    lossy = Model(capacity_pps=1.0, max_pps=1.0, queue=512, random_loss=0.003)
    _, found = run(SimulatedLab(model=lossy), tests=("throughput",), keep_going=True)
    assert verdict(found, "pdr_pps").verdict == "invalid"
    assert "at a low load" in verdict(found, "pdr_pps").reason
    searched = verdict(found, "ndr_pps")
    assert (searched.verdict, searched.ratio) == ("invalid", None)
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
        # A family of two sizes at six loads: the least p of ten blocks, twelve times.
        assert each.p_holm == pytest.approx(12 / 512)
        assert f"fewer busy cycles per packet at {each.load_share:.0%}".replace("%", " %") in (
            each.sentence
        )
        assert (each.limited_by, each.limited) == (None, None)
    rates = [each for each in found.comparisons if each.metric == "ndr_pps"]
    assert {(each.primary, each.verdict) for each in rates} == {(False, "undecided")}
    shown = StringIO()
    print_rfc2544(Console(file=shown, width=130), found)
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
    # All searches ended at 100 %: what difference they could have found is not known.
    assert (primary.ratio, primary.spread, primary.smallest_detectable) == (1.0, 0.0, None)
    assert "smallest difference" not in primary.sentence
    assert found.smallest_detectable is None


def test_every_other_test_is_compared_too(measured: Measured) -> None:
    found = {(c.metric, c.load_share): c for c in measured.summary.comparisons if not c.primary}
    loads = (0.1, 0.5, 0.9)
    assert set(found) == {
        ("pdr_pps", None), ("corrected_buffer_s", None), ("loss_ratio", 1.0), ("recovery_s", None),
        *(("busy_cycles_per_packet", share) for share in (0.1, 0.2, 0.35)),
        *(("latency_p50_us", share) for share in loads),
        *(("latency_p99_us", share) for share in loads),
        *(("pdv_p99_us", share) for share in loads),
    }  # fmt: skip
    assert {c.better for c in found.values() if c.metric.startswith(("lat", "pdv"))} == {"lower"}
    loss = found["loss_ratio", 1.0]
    assert (loss.verdict, loss.n) == ("faster", BLOCKS)
    capacities = CAPACITY["rust-l2fwd"], CAPACITY["c-l2fwd"]
    rust, c = (1 - capacity / CEILING_PPS for capacity in capacities)
    assert loss.ratio == pytest.approx(rust / c, rel=0.02)
    assert "rust-l2fwd loses less than c-l2fwd" in loss.sentence
    recovery = found["recovery_s", None]
    assert recovery.ratio is None
    assert recovery.difference is not None
    assert (recovery.verdict, recovery.difference.arm_zeros) == ("equal", 1)
    assert "every run of both lost nothing after it" in recovery.sentence
    controls = {(each.metric, each.load_share): each for each in measured.summary.aa}
    assert set(controls) == {*found, ("ndr_pps", None)}
    assert not any(each.found_difference for each in controls.values())


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
    assert (loss.verdict, loss.ratio, loss.p) == ("slower", None, 1 / 64)
    difference = loss.difference
    assert difference is not None
    assert difference.shift == pytest.approx(0.05, abs=0.01)
    assert (difference.cliffs_delta, difference.arm_zeros, difference.baseline_zeros) == (1, 0, 1)
    assert "rust-l2fwd loses more than c-l2fwd" in loss.sentence
    assert "points more frames lost at 100 % load" in loss.sentence
    assert "0 % of the runs of rust-l2fwd lost nothing and 100 % of c-l2fwd's" in loss.sentence


def test_a_search_without_any_load_that_reaches_the_goal_counts() -> None:
    """As 0, which has no ratio: without three such searches the arm would be the faster one."""
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
    """As searches found them, block by block; the A/A arm has what the baseline has."""
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
    """The searches that end at a limit are those of the longest; the others are too short."""
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


def test_an_interrupted_run_leaves_what_there_is(tmp_path: Path) -> None:
    lab = SimulatedLab()
    stop_in = [400]

    def count(_: Trial) -> None:
        stop_in[0] -= 1
        if stop_in[0] == 0:
            raise Interrupted(2)

    lab.before_window = count

    console = quiet()
    with pytest.raises(Interrupted):
        start(lab, tmp_path / "out", console)
    assert lab.running == 0
    data = json.loads((tmp_path / "out" / "summary.json").read_text())
    jsonschema.validate(data, schemas.stored("summary-1.json"))
    assert data["interrupted"] is True
    assert len(records.read(tmp_path / "out" / "records.jsonl")) == data["trials"] > 300
    assert "Ended early" in printed(console)
    assert "cut off before its end" in printed(console)


def test_the_console_tells_all_of_it(tmp_path: Path) -> None:
    lab = SimulatedLab(late=lambda _: 0.2)

    console = quiet()
    found = start(lab, tmp_path / "out", console, sizes=[64, 1518]).summary
    text = printed(console)
    for words in (
        "NOT conforming to RFC 2544", "memif, 1518 B", "L1 Gbit/s", "L2 Gbit/s",
        "windows were void", "PDV p99.9", "longest burst", "frame loss by offered load",
        "100 % = 10.000 Mpps", "About ", "core use, by share of 100 % (own: at the own throughput)",
        "empty polls", "jitter",
        "Secondary, exploratory:", "median latency at 50 % of the own throughput differs by",
        "The baseline against itself: found nothing.",
    ):  # fmt: skip
        assert words in text
    told = [c.sentence in text for c in found.comparisons if c.primary]
    assert told == [True, True]
    for comparison in found.comparisons:
        answered = comparison.verdict in ("faster", "slower", "equal")
        assert (comparison.sentence in text) == (comparison.primary or answered)


# -- what can be asked for -------------------------------------------------------------------------


def test_sizes_with_names() -> None:
    assert presets.named_sizes("standard", 4) == [64, 128, 256, 512, 1024, 1280, 1518]
    assert presets.named_sizes("standard", 6) == [84, 128, 256, 512, 1024, 1280, 1518]
    published = presets.named_sizes("published", 4)
    assert published is not None
    assert (len(published), published[0], published[-1]) == (26, 64, 1518)
    assert presets.named_sizes("64", 4) is None


@pytest.mark.parametrize(
    "given",
    [
        {"sizes": [63]}, {"sizes": [1519]}, {"sizes": [64], "ip": 6}, {"blocks": 0},
        {"links": ["null"]}, {"directions": "one"}, {"links": ["nowhere"]},
        {"sizes": [84], "ip": 6, "forwarders": ["c-l3fwd-lpm", "c-l3fwd-graph"]},
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        cells(options(**given))


def test_forwarders_that_route_take_ipv6_where_they_can() -> None:
    names = ["c-l3fwd-lpm", "c-l3fwd-em", "c-l3fwd-acl"]
    assert cells(options(ip=6, forwarders=names, sizes=[84]))
    assert cells(options(forwarders=[*names, "c-l3fwd-graph"]))


def test_one_direction_needs_two_ports() -> None:
    assert [cell.link for cell in cells(options(links=["memif2"], directions="one"))] == ["memif2"]


@pytest.mark.parametrize(
    ("sizes", "tests", "family"),
    [
        ([64], ("throughput",), 1),
        ([64], ("throughput", "core-use"), 6),
        ([64], ("throughput", "latency"), 3),
        (list(presets.STANDARD_SIZES), ("throughput", "loss"), 7),
        (list(presets.STANDARD_SIZES), presets.TESTS, 7 * 6),
        (list(presets.published_sizes()), presets.TESTS, 26 * 6),
    ],
)
def test_one_failed_search_leaves_blocks_that_can_decide(
    sizes: list[int], tests: tuple[Test, ...], family: int
) -> None:
    """At one size and load of all that are corrected together."""
    blocks = cells(options(sizes=sizes, tests=tests))[0].blocks
    assert family * 2 / 2 ** (blocks - 1) < ALPHA <= family * 2 / 2 ** (blocks - 2)


def test_throughput_is_always_measured() -> None:
    assert presets.tests_of([]) == presets.TESTS
    assert presets.tests_of(["loss"]) == ("throughput", "loss")
    with pytest.raises(UsageError, match="reset"):
        presets.tests_of(["reset"])


def test_estimates_are_in_proportion() -> None:
    def seconds(name: str) -> float:
        preset = presets.preset(name)
        return estimate(preset, presets.TESTS, cells=1, blocks=6, whole=2, short=2).seconds

    assert 60 < seconds("quick") < 1200
    assert 3 * seconds("quick") < seconds("csit") < seconds("conforming") / 10


def test_conforming_has_the_rfc_s_durations_and_repetitions() -> None:
    preset = presets.preset("conforming")
    goal = preset.goals[0]
    assert (goal.final_s, goal.loss_ratio, goal.exceed_ratio) == (60, 0, 0)
    assert preset.latency_share(6) * 6 >= 20
    assert preset.burst_share(6) * 6 >= 50
    _, found = run(
        SimulatedLab(), preset=preset, tests=("throughput",), forwarders=["c-l2fwd"], blocks=1
    )
    assert found.conforming is True


CONFORMING = presets.preset("conforming")


def test_a_conforming_run_that_was_cut_off_does_not_conform(tmp_path: Path) -> None:
    """After one of eight blocks."""
    lab = SimulatedLab()

    def kill(trial: Trial) -> None:
        if (trial.role, trial.block) == ("search", 1):
            raise KilledError

    lab.before_window = kill
    asked = {"preset": CONFORMING, "forwarders": ["c-l2fwd"], "tests": ("throughput", "latency")}
    with pytest.raises(KilledError):
        start(lab, tmp_path / "run", **asked)
    found = rebuild.report([tmp_path / "run"], None, quiet())
    assert isinstance(found, Found)
    summary = found.summary
    assert (summary.interrupted, summary.conforming) == (True, False)
    # Three of the twenty repetitions, and not what eight blocks would have made of them.
    assert conformity(summary) == (
        "Preset conforming, NOT conforming to RFC 2544: latency repeated 3 times instead of 20; "
        "the run ended early."
    )
    summary.interrupted = False
    assert "not every forwarder was searched in every block" in conformity(summary)


def test_a_conforming_run_with_a_test_that_has_no_result_does_not_conform() -> None:
    """No frame comes back with its latency."""
    lab = SimulatedLab()
    lab.timeless = True
    _, found = run(
        lab, preset=CONFORMING, tests=("throughput", "latency"), forwarders=["c-l2fwd"], blocks=2
    )
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    assert (figures.unfinished, figures.latency, found.interrupted) == (0, [], False)
    assert found.conforming is False
    assert conformity(found) == (
        "Preset conforming, NOT conforming to RFC 2544: latency repeated 0 times instead of 20; "
        "not every test of every search has a result."
    )


# Ports of a simulated bed.
NAMED = {
    "generator": Named("http://127.0.0.1:1"),
    "links": ["ports"],
    "generator_ports": ["10.0.0.9;1;1"],
    "forwarder_ports": ["tap:a"],
}


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINKS", dict(links.LINKS))


@pytest.mark.usefixtures("other")
def test_another_generator_is_not_asked_to_flood(tmp_path: Path) -> None:
    console = quiet()
    asked = {**NAMED, "line_rate": CEILING_PPS / 2, "blocks": 2, "tests": presets.THROUGHPUT}
    found = start(SimulatedLab(), tmp_path / "out", console, **asked)
    assert {trial.load for trial in found.trials} == {"paced"}
    tried = [trial for trial in found.trials if trial.role == "self-test"]
    assert [(t.arm, t.asked_pps) for t in tried] == [("reflect", CEILING_PPS / 2)]
    cell = found.summary.cells[0]
    assert cell.ceiling is not None
    assert (cell.ceiling.pps, cell.ceiling.measured_mpps) == (CEILING_PPS / 2, {})
    # The peer is searched all the same, and is at the end of what was asked for.
    (peer,) = cell.references
    assert peer.arm == "reflect"
    assert peer.search is not None
    assert peer.search.goals[0].at_maximum == 2
    assert "100 % = 5.000 Mpps (--line-rate); books closed" in printed(console)
    kept = json.loads((tmp_path / "out" / "summary.json").read_text())
    jsonschema.validate(kept, schemas.stored("summary-1.json"))
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["design"]["generator"] == "http://127.0.0.1:1"


@pytest.mark.usefixtures("other")
def test_latency_is_called_what_the_sender_measures(measured: Measured) -> None:
    asked = {**NAMED, "line_rate": CEILING_PPS / 2, "blocks": 1, "tests": ("throughput", "latency")}
    _, found = run(SimulatedLab(), **asked)
    definitions = []
    for summary in (measured.summary, found):
        figures = arm(summary, "c-l2fwd").search
        assert figures is not None
        definitions.append(figures.latency_definition)
    assert definitions == [latency.DEFINITION, latency.CUT_THROUGH]


@pytest.mark.usefixtures("other")
def test_a_generator_that_does_not_send_100_per_cent_ends_the_run() -> None:
    lab = SimulatedLab(late=lambda _: 1.0)
    with pytest.raises(LabError, match=r"--generator does not send 100 %.*sent late") as caught:
        run(lab, **NAMED, line_rate=1e6)
    assert "--line-rate" in str(caught.value)
    assert lab.running == 0


@pytest.mark.usefixtures("other")
def test_a_run_with_another_generator_goes_on_with_it(tmp_path: Path) -> None:
    lab = SimulatedLab()
    asked = {**NAMED, "line_rate": 3e6, "blocks": 1, "tests": presets.THROUGHPUT}

    def interrupt(trial: Trial) -> None:
        if trial.role == "search":
            raise Interrupted(2)

    lab.before_window = interrupt
    with pytest.raises(Interrupted):
        start(lab, tmp_path / "out", **asked)
    lab.before_window = lambda _: None
    found = resume(lab, tmp_path / "out")
    assert {trial.load for trial in found.trials} == {"paced"}
    assert {trial.session for trial in found.trials if trial.role == "self-test"} == {1}
    assert found.summary.interrupted is False


def test_the_100_per_cent_of_another_generator_is_asked_for() -> None:
    with pytest.raises(UsageError, match="--generator: its 100 % is not known"):
        cells(options(**NAMED))
