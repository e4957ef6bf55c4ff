# SPDX-License-Identifier: BSD-3-Clause
"""Contrasts of levels, by ratio and by loss: what is paired, corrected and concluded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from factorial_data import FACTORS, LOAD, TENANTS, drawn, observations
from statsmodels.stats.multitest import multipletests

from linerate.experiments.cloud.factorial.contrasts import block_means, contrasts
from linerate.experiments.cloud.factorial.losses import loss_contrasts, loss_free
from linerate.host.errors import DesignError
from linerate.verdict import stats


def test_a_contrast_is_the_paired_comparison_of_block_means() -> None:
    values = drawn(1, 8, 2, 2, 3)
    (found,) = contrasts(observations(values, FACTORS), "framework")
    means = np.exp(np.log(values).mean(axis=(2, 3)))
    assert found.found == stats.compare(means[:, 1].tolist(), means[:, 0].tolist())
    assert (found.level, found.against, found.within) == ("xdp", "dpdk", ())
    assert found.cliffs_delta == 2 * found.found.a12 - 1


def test_a_missing_value_takes_its_partner_with_it() -> None:
    values = drawn(2, 4, 2, 3)
    values[0, 0, 1] = np.nan
    values[1] = np.nan
    found = observations(values, [LOAD, TENANTS])
    means = block_means(found, [{"load": "cpu"}, {"load": "network"}])
    logs = np.log(values)
    assert means.shape == (3, 2)
    assert means[0] == pytest.approx(logs[0][:, [0, 2]].mean(axis=1))
    assert means[1:] == pytest.approx(logs[2:].mean(axis=2))


def test_pairs_within_levels_are_one_family() -> None:
    values = drawn(3, 10, 2, 2, 3)
    values[:, 1, :, 2] *= 1.3
    found = contrasts(observations(values, FACTORS), "tenants", ["framework"])
    assert len(found) == 6
    assert [each.within for each in found[:3]] == [(("framework", "dpdk"),)] * 3
    assert [(each.level, each.against) for each in found[:3]] == [
        ("2", "0"),
        ("8", "0"),
        ("8", "2"),
    ]
    p_values = [each.found.p for each in found if each.found]
    expected = multipletests(p_values, method="holm")[1]
    assert [each.p_holm for each in found] == pytest.approx(expected.tolist())
    assert [each.verdict for each in found[4:]] == ["higher", "higher"]
    assert all(each.family == 6 for each in found)


def test_levels_against_one() -> None:
    found = contrasts(observations(drawn(4, 8, 2, 2, 3), FACTORS), "tenants", against="0")
    assert [(each.level, each.against) for each in found] == [("2", "0"), ("8", "0")]
    with pytest.raises(DesignError, match="no level 9"):
        contrasts(observations(drawn(4, 8, 2, 2, 3), FACTORS), "tenants", against="9")


def test_equal_is_an_interval_inside_the_margin() -> None:
    source = np.random.default_rng(5)
    values = np.exp(source.normal(0, 0.2, (20, 1)) + source.normal(0, 0.008, (20, 2)))
    (found,) = contrasts(observations(values, [LOAD]), "load")
    assert found.verdict == "equal"
    noisy = np.exp(source.normal(0, 0.2, (20, 1)) + source.normal(0, 0.1, (20, 2)))
    (found,) = contrasts(observations(noisy, [LOAD]), "load")
    assert found.verdict == "undecided"
    assert found.detectable is not None
    assert 0.02 < found.detectable < 0.2


def test_too_few_blocks_are_told() -> None:
    values = drawn(6, 5, 2)
    values[:, 1] *= 2
    (found,) = contrasts(observations(values, [LOAD]), "load")
    assert (found.verdict, found.detectable) == ("undecided", None)
    assert "fewer than 6 blocks" in found.reason
    # Six blocks are enough for one comparison, not for three.
    values = drawn(6, 6, 3) * np.asarray([1.0, 2.0, 4.0])
    for each in contrasts(observations(values, [TENANTS]), "tenants"):
        assert each.verdict == "undecided"
        assert "takes 7 blocks" in each.reason


def test_levels_without_a_common_block() -> None:
    values = drawn(7, 6, 3)
    values[:, 0] = np.nan
    found = contrasts(observations(values, [TENANTS]), "tenants")
    assert [each.found is None for each in found] == [True, True, False]
    assert found[0].verdict == "undecided"
    assert "no block" in found[0].reason
    assert found[2].family == 1


def test_order_of_blocks_and_unit_change_nothing() -> None:
    found = observations(drawn(8, 9, 2, 2, 3), FACTORS)
    before = contrasts(found, "tenants", ["load"])
    turned = replace(found, values=5 * found.values[::-1], blocks=found.blocks[::-1])
    for first, second in zip(before, contrasts(turned, "tenants", ["load"]), strict=True):
        assert first.found
        assert second.found
        assert second.found.ratio == pytest.approx(first.found.ratio)
        assert second.p_holm == pytest.approx(first.p_holm)
        assert second.verdict == first.verdict


def test_loss_has_no_ratios() -> None:
    with pytest.raises(DesignError, match="no ratios"):
        contrasts(observations(drawn(1, 8, 2), [LOAD], "linear"), "load")


# -- loss ------------------------------------------------------------------------------------------


def test_loss_is_compared_by_differences_of_block_means() -> None:
    values = np.maximum(drawn(9, 10, 2, 3) - 1, 0)
    values[:, 1] += 0.2
    (found,) = loss_contrasts(observations(values, [LOAD, TENANTS], "linear"), "load")
    means = values.mean(axis=2)
    assert found.found == stats.shifted(means[:, 1].tolist(), means[:, 0].tolist())
    assert found.verdict == "higher"
    assert found.loss_free == (0.0, np.mean(values[:, 0] == 0))
    assert found.found.cliffs_delta > 0


def test_never_lost_is_equal_and_once_lost_is_not() -> None:
    values = np.zeros((8, 2, 3))
    found = observations(values, [LOAD, TENANTS], "linear")
    (never,) = loss_contrasts(found, "load")
    assert (never.verdict, never.loss_free, never.detectable) == ("equal", (1.0, 1.0), None)
    values[3, 1, 2] = 0.1
    (once,) = loss_contrasts(observations(values, [LOAD, TENANTS], "linear"), "load")
    assert once.verdict == "undecided"
    assert once.loss_free == (1 - 1 / 24, 1.0)


def test_loss_free_runs_are_counted_among_those_there_are() -> None:
    values = np.asarray([[0.0, 0.1], [np.nan, 0.0], [0.2, np.nan]])
    found = observations(values, [LOAD], "linear")
    assert loss_free(found, {"load": "cpu"}) == 0.5
    assert loss_free(found, {}) == 0.5
    values[:, 0] = np.nan
    assert loss_free(observations(values, [LOAD], "linear"), {"load": "cpu"}) is None


def test_loss_of_one_block_and_of_none() -> None:
    one = observations(np.asarray([[0.0, 0.1]]), [LOAD], "linear")
    (found,) = loss_contrasts(one, "load")
    assert found.found is not None
    assert (found.found.p, found.verdict) == (1.0, "undecided")
    none = observations(np.asarray([[0.0, np.nan]]), [LOAD], "linear")
    (found,) = loss_contrasts(none, "load")
    assert (found.found, found.verdict) == (None, "undecided")
