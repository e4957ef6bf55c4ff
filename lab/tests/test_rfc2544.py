# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs of experiment rfc2544 on simulated forwarders with known capacity."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import by_schema
import pytest
from rfc2544_runs import BLOCKS, Measured, arm, measured_in, run, verdict
from simulated import printed
from simulated_lab import (
    CAPACITY,
    CEILING_PPS,
    CYCLES,
    HZ,
    QUICK,
    SimulatedLab,
    options,
    quiet,
    start,
)

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.plan import cells
from linerate.experiments.rfc2544.runs import Found
from linerate.host.errors import BusyError, Interrupted, LabError
from linerate.host.exit_status import ExitStatus
from linerate.records import trial as records
from linerate.records.trial import RECORDS, Test, Trial
from linerate.records.types import LOW_LOAD
from linerate.runs.kept import rebuild
from linerate.runs.plans.quiet import RESTS_S
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search import throughput
from linerate.trial.search.device import Device
from linerate.trial.search.goals import Goal
from linerate.trial.search.simulated import Model
from linerate.trial.trial import Bench, Plan

WIDTH = QUICK.goals[0].width


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measured_in(tmp_path_factory.mktemp("rfc2544") / "out")


def test_the_throughput_is_the_capacity_within_the_width(
    measured: Measured,
) -> None:
    for name in ("c-l2fwd", "rust-l2fwd"):
        figures = arm(measured.summary, name).search
        assert figures is not None
        ndr, pdr = figures.goals
        assert ndr.pps is not None
        assert pdr.pps is not None
        # The frames in the queue also pass, in a window of 0.1 s.
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
        # A full queue loses nothing more once the rate is below the capacity.
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
            # The probe is not used there.
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
        assert (
            trial.program.probe
            == (trial.frames.polling is not None)
            == (trial.request.test == "core-use")
        )
    assert not any("probe" in text for text in found.warnings)


def test_core_use_at_the_own_throughput_is_known_and_compared_with_nobody_s() -> None:
    """Not even if two arms found the same: both carry everything that is offered here."""
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
    unit = [t for t in trials if (t.arm, t.block, t.request.test) == ("rust-l2fwd", 0, "core-use")]
    assert [t.request.load_share for t in unit] == [*QUICK.core_use_loads, 1]


def test_forwarders_that_do_not_take_the_probe_are_searched_all_the_same() -> None:
    _, found = run(SimulatedLab(probe=False), tests=("throughput", "core-use"))
    assert verdict(found).verdict == "faster"
    assert all(each.busy_share is None for each in found.cells[0].lower_load)
    told = [text for text in found.warnings if "the probe cannot look" in text]
    assert len(told) == 1
    assert "c-l2fwd, rust-l2fwd" in told[0]


def test_records_alone_give_the_same_summary(measured: Measured, tmp_path: Path) -> None:
    lines = (measured.directory / RECORDS).read_text().splitlines()
    for line in lines[:200]:
        by_schema.check(json.loads(line), "trial-2.json")
    copy = tmp_path / "copy"
    shutil.copytree(measured.directory, copy)
    (copy / "summary.json").unlink()
    again = rebuild.report([copy], None, quiet())
    assert isinstance(again, Found)
    assert again.summary == measured.summary
    data = json.loads((copy / "summary.json").read_text())
    by_schema.check(data, "summary-1.json")
    assert data == json.loads((measured.directory / "summary.json").read_text())


def test_units_are_interleaved_with_the_control_and_the_peer(
    measured: Measured,
) -> None:
    trials = [trial for trial in measured.trials if trial.role == "search"]
    orders = []
    for block in range(6):
        labels = [trial.arm for trial in trials if trial.block == block]
        seen = list(dict.fromkeys(labels))
        # One unit after the other: none is continued later.
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
    attempts = {trial.request.attempt or 0 for trial in trials if trial.valid}
    assert max(attempts) > 1


@pytest.mark.parametrize("tests", [("throughput",), ("throughput", "loss"), presets.TESTS])
def test_a_search_that_ran_out_of_time_is_told_from_its_records(
    monkeypatch: pytest.MonkeyPatch, tests: tuple[Test, ...]
) -> None:
    """By what follows it, or by the lack of that: a new search has its full time."""
    live = throughput.search

    def hasty(
        device: Device, goals: Sequence[Goal], *, limit_s: float, bounds: bool
    ) -> throughput.Throughput:
        short = 1e-9 if limit_s == QUICK.limit_s else limit_s
        return live(device, goals, limit_s=short, bounds=bounds)

    monkeypatch.setattr("linerate.experiments.rfc2544.units.search", hasty)
    _, found = run(SimulatedLab(), keep_going=True, tests=tests)
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    blocks = cells(options(tests=tests))[0].blocks
    assert figures.unfinished == figures.searches == blocks
    assert figures.reasons == {
        "throughput: the search ended before its goal: its time was over, or the run's": blocks
    }
    # Frame loss needs no throughput; latency is measured at the lower bound.
    assert bool(figures.loss) == ("loss" in tests)
    assert bool(figures.latency) == ("latency" in tests)
    bound = figures.goals[0].at_least
    assert (figures.goals[0].pps, bound and bound.kind) == (None, "trials")
    assert verdict(found).verdict == "invalid"
    assert found.interrupted is False


def test_a_sender_that_is_late_at_the_flood_s_rate_has_a_lower_maximum() -> None:
    lab = SimulatedLab(late=lambda pps: 1.0 if pps > 0.86 * CEILING_PPS else 0.0)
    _, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps == pytest.approx(0.85 * CEILING_PPS)


def test_a_rate_at_which_the_sender_is_on_time_by_luck_alone_is_not_the_maximum() -> None:
    """One window of many is on time: the searches would find no other."""
    lab = SimulatedLab(late=lambda pps: 0.8 if pps > 0.66 * CEILING_PPS else 0.0, seed=5)
    lab.late_share = 0.99
    trials, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps == pytest.approx(0.6 * CEILING_PPS)
    paced = [t for t in trials if t.role == "self-test" and t.request.load == "paced"]
    assert any(t.valid for t in paced if (t.request.pps or 0) > 0.66 * CEILING_PPS)
    # Pauses of the machine, in as many windows, are another case.
    lab = SimulatedLab(late=lambda pps: 0.8 if pps > 0.66 * CEILING_PPS else 0.0, seed=5)
    _, found = run(lab, tests=("throughput",))
    ceiling = found.cells[0].ceiling
    assert ceiling is not None
    assert ceiling.pps > 0.66 * CEILING_PPS


def test_a_sender_that_is_never_on_time_ends_the_run() -> None:
    lab = SimulatedLab(late=lambda _: 1.0)
    with pytest.raises(LabError, match="not on time"):
        run(lab)


def test_a_self_test_waits_for_a_quieter_machine() -> None:
    lab = SimulatedLab()
    lab.peers_starve = True

    def calm(lab: SimulatedLab) -> None:
        lab.peers_starve = len(lab.rests) < 2

    lab.after_rest = calm
    _, found = run(lab, tests=("throughput",))
    assert lab.rests == list(RESTS_S[:2])
    assert verdict(found).verdict == "faster"


def test_a_machine_that_stays_busy_has_its_own_status() -> None:
    lab = SimulatedLab()
    lab.peers_starve = True
    with pytest.raises(BusyError, match="no trial of a reference peer counts") as raised:
        run(lab)
    assert raised.value.exit_code is ExitStatus.BUSY
    assert lab.rests == list(RESTS_S)


def test_a_run_that_is_to_keep_going_leaves_out_a_size_alone() -> None:
    lab = SimulatedLab()
    original = lab.flood

    def flood(bench: Bench, asked: Plan, setup: LinkSetup) -> Trial:
        lab.peers_starve = setup.context.size == 64
        return original(bench, asked, setup)

    lab.flood = flood  # type: ignore[method-assign]
    _, found = run(lab, tests=("throughput",), sizes=[64, 512], keep_going=True)
    assert [cell.size for cell in found.cells if cell.ceiling] == [512]
    assert any("64 B: no trial of a reference peer counts" in w for w in found.warnings)


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
    by_schema.check(data, "summary-1.json")
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
