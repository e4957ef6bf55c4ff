# SPDX-License-Identifier: BSD-3-Clause
"""Observations: rows to arrays, missing values, and levels without values."""

from __future__ import annotations

import numpy as np
import pytest
from factorial_data import FACTORS, LOAD, TENANTS, drawn, observations

from linerate.experiments.cloud.factorial.design import (
    Dropped,
    Factor,
    Missing,
    combinations,
    crossed,
    observe,
    pooled,
    relative_to,
)
from linerate.host.errors import DesignError

SIZE = Factor("size", ("64", "1518"), ordered=True)
ROWS = [
    ("1", {"load": "cpu", "size": "64"}, 4.0),
    ("1", {"load": "cpu", "size": "1518"}, 2.0),
    ("1", {"load": "network", "size": "64"}, 1.0),
    ("1", {"load": "network", "size": "1518"}, None),
    ("2", {"size": "64", "load": "network"}, 0.0),
    ("2", {"size": "1518", "load": "network"}, 3.0),
]


def test_rows_become_an_array() -> None:
    found = observe("rate", [LOAD, SIZE], ROWS)
    assert found.blocks == ("1", "2")
    expected = [[[4, 2], [1, np.nan]], [[np.nan, np.nan], [0, 3]]]
    assert np.array_equal(found.values, np.asarray(expected), equal_nan=True)


def test_what_is_missing_is_listed_and_zeros_apart() -> None:
    found = observe("rate", [LOAD, SIZE], ROWS)
    assert found.zeros == 1
    assert found.missing == (
        Missing("1", ("network", "1518")),
        Missing("2", ("cpu", "64")),
        Missing("2", ("cpu", "1518")),
        Missing("2", ("network", "64"), zero=True),
    )
    linear = observe("loss", [LOAD, SIZE], ROWS, scale="linear")
    assert len(linear.missing) == 3
    assert not any(each.zero for each in linear.missing)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("1", {"load": "cpu", "size": "64"}, 1.0), "two values"),
        (("3", {"load": "disk", "size": "64"}, 1.0), "no level disk"),
        (("3", {"load": "cpu"}, 1.0), "levels of"),
        (("3", {"load": "cpu", "size": "64"}, float("nan")), "the value is nan"),
        (("3", {"load": "cpu", "size": "64"}, -1.0), "negative"),
    ],
)
def test_bad_rows_are_named(row: tuple[str, dict[str, str], float], message: str) -> None:
    with pytest.raises(DesignError, match=message) as raised:
        observe("rate", [LOAD, SIZE], [*ROWS, row])
    assert raised.value.hint


def test_bad_designs_are_named() -> None:
    with pytest.raises(DesignError, match="its levels are"):
        Factor("load", ("cpu", "cpu"))
    with pytest.raises(DesignError, match="the factors are"):
        observe("rate", [LOAD, LOAD], [])
    with pytest.raises(DesignError, match="of shape"):
        observations(np.ones((2, 3)), [LOAD])
    with pytest.raises(DesignError, match="no factor is called rate"):
        observations(np.ones((2, 2)), [LOAD]).factor("rate")


def test_levels_without_values_are_dropped_and_named() -> None:
    """For example an own core beside tenants on a machine with two cores."""
    cpu = Factor("cpu", ("shared", "quota", "own"))
    values = drawn(1, 4, 3, 3)
    values[:, 2, 1:] = np.nan
    found = crossed(observations(values, [cpu, TENANTS]))
    assert found.dropped == (Dropped("cpu", "own"),)
    assert found.factor("cpu").levels == ("shared", "quota")
    assert np.array_equal(found.values, values[:, :2])


def test_of_crossed_observations_nothing_is_dropped_and_empty_blocks_are() -> None:
    values = drawn(1, 4, 2, 3)
    values[2] = np.nan
    values[0, 1, 1] = np.nan
    found = crossed(observations(values, [LOAD, TENANTS]))
    assert found.dropped == ()
    assert found.blocks == ("b0", "b1", "b3")
    assert len(found.missing) == 1
    with pytest.raises(DesignError, match="have values"):
        crossed(observations(np.full((3, 2), np.nan), [LOAD]))


def test_ratios_to_a_level() -> None:
    values = drawn(2, 4, 3, 2)
    values[1, 0, 1] = np.nan
    load = Factor("load", ("idle", "cpu", "network"))
    found = relative_to(observations(values, [load, SIZE]), "load", "idle")
    assert found.factor("load").levels == ("cpu", "network")
    assert found.values == pytest.approx(values[:, 1:] / values[:, :1], nan_ok=True)
    assert len(found.missing) == 2
    with pytest.raises(DesignError, match="no ratios"):
        relative_to(observations(values, [load, SIZE], "linear"), "load", "idle")


def test_pooled_levels_are_means_and_lack_what_one_lacks() -> None:
    values = drawn(3, 4, 3, 2)
    values[1, 0, 1] = np.nan
    framework = Factor("framework", ("a", "b", "c"))
    groups = {"AB": ["a", "b"], "C": ["c"]}
    found = pooled(observations(values, [framework, SIZE]), "framework", groups)
    assert found.values[:, 0] == pytest.approx(np.sqrt(values[:, 0] * values[:, 1]), nan_ok=True)
    assert found.values[:, 1] == pytest.approx(values[:, 2])
    linear = pooled(observations(values, [framework, SIZE], "linear"), "framework", groups)
    assert linear.values[:, 0] == pytest.approx((values[:, 0] + values[:, 1]) / 2, nan_ok=True)
    with pytest.raises(DesignError, match="empty"):
        pooled(observations(values, [framework, SIZE]), "framework", {"AB": []})


def test_levels_are_chosen_and_combined() -> None:
    found = observations(drawn(1, 4, 2, 2, 3), FACTORS)
    chosen = found.at({"load": "network", "tenants": "8"})
    assert chosen.values == pytest.approx(found.values[:, :, 1:, 2:])
    assert found.has("load", "cpu", "network")
    assert not found.has("load", "disk")
    assert list(combinations(found, [])) == [{}]
    assert len(list(combinations(found, ["load", "tenants"]))) == 6
