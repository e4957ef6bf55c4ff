# SPDX-License-Identifier: BSD-3-Clause
"""Histograms in telemetry: decoded, subtracted, summed."""

from __future__ import annotations

import random

import pytest
from hdrh.histogram import HdrHistogram
from probed import hdr_pieces

from linerate.telemetry.hdr import Histogram, decode, difference, together


def histogram(values: list[int]) -> Histogram:
    return decode("".join(hdr_pieces(values)))


def some(seed: int, number: int = 3000) -> list[int]:
    source = random.Random(seed)
    return [int(source.lognormvariate(8, 1.5)) + 1 for _ in range(number)]


def test_percentiles_are_those_of_the_values_to_two_digits() -> None:
    values = sorted(some(1))
    found = histogram(values)
    assert found.total == len(values)
    for percent in (1.0, 50.0, 90.0, 99.0, 99.9, 100.0):
        exact = values[max(0, -(-len(values) * round(percent * 10) // 1000) - 1)]
        value = found.percentile(percent)
        assert value is not None
        assert exact <= value <= exact * 1.01
    assert found.maximum == found.percentile(100)


def test_a_percentile_of_exactly_so_many_values_takes_no_more() -> None:
    assert Histogram(((1, 999), (50, 1))).percentile(99.9) == 1
    assert Histogram(((1, 998), (50, 2))).percentile(99.9) == 50


def test_the_difference_is_the_histogram_of_what_came_between() -> None:
    before, later = some(1), some(2)
    assert difference(histogram(before + later), histogram(before)) == histogram(later)
    assert difference(histogram(later), histogram([])) == histogram(later)


def test_a_histogram_that_grew_keeps_its_buckets() -> None:
    def of(values: list[int], highest: int) -> Histogram:
        found = HdrHistogram(1, highest, 2)
        for value in values:
            found.record_value(value)
        return decode(found.encode().decode())

    values = some(1)
    grown = difference(of([*values, 10**12], 10**13), of(values, 10**9))
    assert grown is not None
    assert grown.total == 1
    assert grown.maximum == pytest.approx(10**12, rel=0.01)


def test_counts_that_fell_are_no_difference() -> None:
    assert difference(histogram([5, 6]), histogram([5, 6, 7])) is None
    assert difference(histogram([]), histogram([5])) is None


def test_nothing_has_no_percentiles() -> None:
    empty = histogram([])
    assert empty == Histogram()
    assert empty.percentile(50) is None
    assert empty.maximum is None


@pytest.mark.parametrize("text", ["", "x", "é", "AAAA", "".join(hdr_pieces([1, 2, 3]))[:-12]])
def test_what_is_no_histogram_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no HDR histogram"):
        decode(text)


def test_several_together_are_that_of_all_values() -> None:
    first, second = some(3), some(4, 500)
    assert together([histogram(first), histogram(second)]) == histogram(first + second)
    assert together([]).percentile(50) is None
