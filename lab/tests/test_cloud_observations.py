# SPDX-License-Identifier: BSD-3-Clause
"""From records to values by setup and cell: what counts, what is missing, what is paired."""

from __future__ import annotations

import numpy as np
import pytest
from cloud_data import (
    DPDK,
    PART,
    XDP,
    Truth,
    design,
    levels,
    records,
    split,
    void,
    with_part,
    work_beside,
)
from trials import changed

from linerate.experiments.cloud.analysis.observations import (
    METRICS,
    beside,
    crossed_part,
    has_values,
    observed,
    of_control,
    over_tenants,
    with_nobody,
)
from linerate.experiments.cloud.analysis.windows import windows_of
from linerate.experiments.cloud.analysis.work import all_left, all_work, left, work_per_s
from linerate.experiments.cloud.design.levels import (
    CPU,
    FRAMEWORK,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    place_of,
)
from linerate.experiments.cloud.factorial.contrasts import block_means
from linerate.experiments.cloud.window import levels_of
from linerate.records.trial import Trial

THROUGHPUT, LOSS = METRICS["throughput"], METRICS["loss"]
LOSSY = Truth(loss_at=0.1)


def first(trials: list[Trial], role: str = "measure") -> Trial:
    return next(trial for trial in trials if trial.role == role)


def test_a_parts_values_are_by_bed_and_cell() -> None:
    asked = design(blocks=3)
    trials = records(asked)
    found = observed(windows_of(trials), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    assert [(each.name, each.levels) for each in found.factors] == [
        (FRAMEWORK, (DPDK, XDP)),
        (LOAD, ("idle", "cpu", "network")),
        (SIZE, ("64", "1518")),
    ]
    assert found.values.shape == (3, 2, 3, 2)
    one = next(
        trial
        for trial in trials
        if trial.block == 1
        and (place := place_of(trial))
        and (place.framework, place.cell.load, place.size) == (XDP, "network", 64)
    )
    assert found.values[1, 1, 2, 0] == one.frames.received_pps


def test_loss_is_of_what_was_intended_the_ingress_included() -> None:
    trial = first(records(design(blocks=1), LOSSY))
    assert trial.frames.intended
    assert trial.frames.received is not None
    lost = (trial.frames.intended - trial.frames.received) / trial.frames.intended
    windows = windows_of([trial])
    assert LOSS.value(windows, trial) == lost
    assert lost == pytest.approx(0.1, abs=0.05)
    at_ingress = METRICS["loss_at_ingress"].value(windows, trial)
    assert at_ingress == pytest.approx(lost / 2, rel=1e-3)
    more = changed(trial, received=trial.frames.intended + 3)
    assert LOSS.value(windows, more) == 0
    unknown = changed(trial, intended=None)
    assert LOSS.value(windows, unknown) is None


def test_latency_needs_as_many_frames_as_its_quantile() -> None:
    trial = first(records(design(blocks=1)))
    assert trial.frames.latency
    windows = windows_of([trial])
    median, high = (METRICS[f"latency_p{q}_us"] for q in (50, 99))
    assert median.value(windows, trial) == trial.frames.latency.quantiles_ns["0.5"] / 1e3
    assert high.value(windows, trial) == trial.frames.latency.quantiles_ns["0.99"] / 1e3
    trial.frames.latency.count = 20
    assert median.value(windows, trial) is not None
    assert high.value(windows, trial) is None


def test_a_window_that_was_void_and_repeated_counts_once() -> None:
    asked = design(blocks=2)
    trials = records(asked)
    whole = observed(windows_of(trials), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    repeated = [each for trial in trials for each in (void(trial), trial)]
    found = observed(windows_of(repeated), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    assert np.array_equal(found.values, whole.values)
    after = [each for trial in trials for each in (trial, void(trial))]
    again = observed(windows_of(after), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    assert np.array_equal(again.values, whole.values)


def test_a_window_that_stayed_void_is_missing() -> None:
    trials = records(design(blocks=2))
    mine = next(trial for trial in trials if trial.arm == XDP)
    trials = [void(trial) if trial is mine else trial for trial in trials]
    found = observed(windows_of(trials), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    (missing,) = found.missing
    assert missing.block == "block 0, session 1"
    assert missing.levels[0] == XDP
    every = observed(
        windows_of([void(trial) for trial in trials]), THROUGHPUT, crossed_part(PART, THROUGHPUT)
    )
    assert not has_values(every)
    assert not has_values(observed(windows_of([]), THROUGHPUT, crossed_part(PART, THROUGHPUT)))


def test_an_interrupted_block_is_two_beds() -> None:
    trials = split(records(design(blocks=4)), 1)
    found = observed(windows_of(trials), THROUGHPUT, crossed_part(PART, THROUGHPUT))
    assert set(found.blocks) == {
        "block 0, session 1",
        "block 1, session 1",
        "block 1, session 2",
        "block 2, session 2",
        "block 3, session 2",
    }
    assert np.isfinite(found.values).sum() == 4 * 12
    # Values of the two pieces make no pairs.
    one = found.blocks.index("block 1, session 1")
    pairs = block_means(found, [{LOAD: "cpu"}, {LOAD: "network"}])
    assert len(pairs) <= 5
    assert np.isnan(found.values[one]).any()


def test_an_interrupted_block_has_the_tenants_alone_of_its_own_bed_only() -> None:
    trials = records(design(blocks=1))
    trial = next(t for t in trials if t.role == "measure" and levels(t).load == "cpu")
    windows = windows_of(trials)
    assert windows.beside_nobody(trial)
    moved = changed(trial, session=2)
    assert windows.beside_nobody(moved) is None
    assert all_left(windows, moved) is None


def test_work_is_of_all_tenants_and_per_second() -> None:
    trials = records(design(blocks=1), Truth(work={((FRAMEWORK, XDP),): -1.0}, spread=1e-4))
    windows = windows_of(trials)
    for _, trial in windows.measured:
        if levels(trial).load == "idle":
            assert all_left(windows, trial) is None
            continue
        share = np.exp(-1.0) if trial.arm == XDP else 1.0
        assert all_left(windows, trial) == pytest.approx(share, rel=0.01)
    busy = next(t for _, t in windows.measured if levels_of(t) and levels(t).load == "cpu")
    counts = [each.bogo_ops for each in work_beside(busy).tenants]
    assert work_per_s(busy, "bogo_ops") == pytest.approx(sum(c or 0 for c in counts) / 10)
    assert work_per_s(busy, "io_bytes") is None
    work_beside(busy).tenants[0].bogo_ops = None
    assert work_per_s(busy, "bogo_ops") is None
    assert all_work(busy) is None


def test_a_load_of_several_works_has_the_mean_of_their_shares() -> None:
    part = with_part(loads=("mixed",))
    windows = windows_of(records(design(part, blocks=1)))
    _, trial = windows.measured[0]
    alone = windows.beside_nobody(trial)
    assert alone
    for each, other in zip(work_beside(trial).tenants, work_beside(alone).tenants, strict=True):
        each.bogo_ops = 8 * (other.bogo_ops or 0)
        each.io_bytes = other.io_bytes
        each.network_bytes = other.network_bytes
    assert left(windows, trial, "bogo_ops") == pytest.approx(8)
    assert all_left(windows, trial) == pytest.approx(2)


def test_tenants_alone_that_did_nothing_have_no_share() -> None:
    windows = windows_of(records(design(blocks=1)))
    trial = next(t for _, t in windows.measured if levels_of(t) and levels(t).load == "cpu")
    alone = windows.beside_nobody(trial)
    assert alone
    for each in work_beside(alone).tenants:
        each.bogo_ops = 0
    assert left(windows, trial, "bogo_ops") is None


def test_none_is_no_load_but_the_first_number_of_tenants() -> None:
    part = with_part(tenants=(0, 1, 2))
    windows = windows_of(records(design(part, blocks=2)))
    crossed = observed(windows, THROUGHPUT, crossed_part(part, THROUGHPUT))
    assert crossed.factor(LOAD).levels == ("idle", "cpu", "network")
    assert crossed.factor(TENANTS).levels == ("1", "2")
    counts = observed(windows, THROUGHPUT, over_tenants(part, "cpu"))
    assert counts.factor(TENANTS).levels == ("0", "1", "2")
    assert counts.factor(TENANTS).ordered
    assert counts.factor(LOAD).levels == ("cpu",)
    assert np.isfinite(counts.values).all()
    other = observed(windows, THROUGHPUT, over_tenants(part, "network"))
    nobody = {TENANTS: "0"}
    assert np.array_equal(counts.at(nobody).values, other.at(nobody).values)
    stands = observed(windows, THROUGHPUT, with_nobody(part, "none"))
    assert stands.factor(LOAD).levels == ("none", "idle", "cpu", "network")
    same = stands.at({LOAD: "none"}).values
    assert np.array_equal(same[:, :, :, 0], same[:, :, :, 1])


def test_without_tenants_all_cells_are_the_parts() -> None:
    part = with_part(tenants=(0,))
    assert {place.cell.load for place in beside(part, THROUGHPUT)} == {"none"}
    assert not beside(part, METRICS["work_left"])


def test_tenants_work_has_no_idle_level() -> None:
    metric = METRICS["work_left"]
    windows = windows_of(records(design(blocks=2)))
    found = observed(windows, metric, crossed_part(PART, metric))
    assert found.factor(LOAD).levels == ("cpu", "network")
    assert not found.empty.any()


def test_levels_are_in_their_order() -> None:
    part = with_part(
        cpus=("own", "quota-100", "quota-25", "shared"), sizes=(1518, 64), rates=(1.2, 0.5)
    )
    windows = windows_of(records(design(part, blocks=1)))
    found = observed(windows, THROUGHPUT, crossed_part(part, THROUGHPUT))
    assert found.factor(CPU).levels == ("shared", "quota-25", "quota-100", "own")
    assert found.factor(SIZE).levels == ("64", "1518")
    assert found.factor(RATE).levels == ("50 %", "120 %")


def test_the_control_pairs_the_two_labels_cell_by_cell() -> None:
    asked = design(blocks=3)
    windows = windows_of(records(asked, Truth(again=0.5, spread=1e-4)))
    labels = of_control(asked.places, DPDK, f"{DPDK}-again")
    found = observed(windows, THROUGHPUT, labels)
    assert found.factor(FRAMEWORK).levels == (DPDK, f"{DPDK}-again")
    pair = block_means(found, [{FRAMEWORK: DPDK}, {FRAMEWORK: f"{DPDK}-again"}])
    assert pair[:, 1] - pair[:, 0] == pytest.approx(np.full(3, 0.5), abs=1e-3)
