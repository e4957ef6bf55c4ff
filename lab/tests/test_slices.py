# SPDX-License-Identifier: BSD-3-Clause
"""Traffic cut into flows that follow each other: nothing is missing, and the last loss is found."""

from __future__ import annotations

import pytest

from linerate.otg import Traffic, flow_name
from linerate.search.slices import FIRST_S, GROWTH, change_of, cut


@pytest.mark.parametrize("pps", [3.0, 1234.5, 1e6, 7e6])
@pytest.mark.parametrize("seconds", [0.001, 0.05, 1.0, 30.0])
def test_slices_follow_each_other_and_are_all_of_the_traffic(pps: float, seconds: float) -> None:
    slices = cut(2.0, pps, seconds)
    assert sum(each.frames for each in slices) == max(round(pps * seconds), 1)
    at = 2.0
    for each in slices:
        assert each.frames >= 1
        assert each.start_s == pytest.approx(at)
        at += each.frames / pps
    assert len(slices) <= 60


def test_a_slice_is_short_against_the_time_since_the_change() -> None:
    slices = cut(0.0, 1e6, 30.0)
    for each in slices[:-1]:
        assert each.frames / each.pps <= max(FIRST_S, (GROWTH - 1) * each.start_s) * 1.001
    assert slices[-1].frames / 1e6 < 30 * (1 - 1 / GROWTH**2) * 1.01


@pytest.mark.parametrize("senders", [1, 2])
def test_the_last_slice_that_lost_bounds_the_moment(senders: int) -> None:
    traffic = Traffic(
        ("a", "b"), 64, 1.0, 1e5, frames=100_000, senders=senders, slices=cut(1.0, 5e4, 1.0)
    )
    back = {flow_name(port, 0): 90_000 for port in range(senders)}
    for part, each in enumerate(traffic.slices, start=1):
        for port in range(senders):
            back[flow_name(port, part)] = each.frames
    whole = change_of(traffic, back)
    assert (whole.before_intended, whole.before_received) == (100_000 * senders, 90_000 * senders)
    assert whole.after_intended == whole.after_received == 50_000 * senders
    assert whole.last_lost_s is None
    back[flow_name(senders - 1, 3)] -= 1
    back[flow_name(0, 1)] -= 5
    lossy = change_of(traffic, back)
    third = traffic.slices[2]
    assert lossy.after_intended - lossy.after_received == 6
    assert lossy.last_lost_s == pytest.approx(third.start_s - 1.0 + third.frames / 5e4)
    assert lossy.slice_s == pytest.approx(third.frames / 5e4)
