# SPDX-License-Identifier: BSD-3-Clause
"""Traffic cut into consecutive flows: nothing is missing, and the last loss is found."""

from __future__ import annotations

import pytest
from simulated_lab import blank

from linerate.records.cells import Arm, Cell
from linerate.traffic.otg import Traffic, flow_name
from linerate.traffic.sender import Touched
from linerate.trial.search.device import Changed
from linerate.trial.search.recovery import END_SHARE, recovery
from linerate.trial.search.setup_device import changed_of
from linerate.trial.search.simulated import Model, SimulatedForwarder
from linerate.trial.search.slices import FIRST_S, GROWTH, change_of, cut


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
    *slices, end = cut(0.0, 1e6, 30.0)
    for each in slices:
        assert each.frames / each.pps <= max(FIRST_S, (GROWTH - 1) * each.start_s) * 1.001
    assert end.start_s == pytest.approx(30 * (1 - END_SHARE))


class Once(SimulatedForwarder):
    """Answers any change of rate with this."""

    def __init__(self, changed: Changed) -> None:
        super().__init__(Model(1e6, 1e8))
        self._changed = changed

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return self._changed


@pytest.mark.parametrize(("pps", "seconds"), [(1234.5, 0.05), (1e6, 0.2), (7e6, 30.0)])
def test_only_who_loses_in_the_last_tenth_has_not_recovered(pps: float, seconds: float) -> None:
    """With the real slices, whichever of them lost its last frame."""
    slices = cut(1.0, pps, seconds)
    traffic = Traffic(("a",), 64, 1.0, 2 * pps, frames=round(2 * pps), slices=slices)
    all_back = {flow_name(0, part): each.frames for part, each in enumerate(slices, start=1)}
    states = []
    for part in range(1, len(slices) + 1):
        name = flow_name(0, part)
        back = {flow_name(0, 0): 1, **all_back, name: all_back[name] - 1}
        found = change_of(traffic, back)
        trial = blank(Cell("memif", 64, 1), Arm("reflect", "reflect"), 0, "search", "paced", 1)
        trial.frames.change, trial.request.seconds, trial.request.then_s = found, 1.0, seconds
        result = recovery(Once(changed_of(trial)), pps, watched_s=seconds, repetitions=1)
        states.append(result.repetitions[0].state)
    assert states == ["recovered"] * (len(slices) - 1) + ["not_recovered"]


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


def test_what_was_lost_while_the_sender_was_kept_from_its_cpu_is_no_sign_of_the_device() -> None:
    traffic = Traffic(("a",), 64, 1.0, 1e5, frames=100_000, senders=1, slices=cut(1.0, 5e4, 1.0))
    names = [flow_name(0, part) for part in range(len(traffic.slices) + 1)]
    back = {name: each.frames for name, each in zip(names[1:], traffic.slices, strict=True)}
    back[names[0]] = 90_000
    disturbed = dict.fromkeys(names, Touched(0, 0))
    # In the second slice the device lost three; in the last, besides a gap, the generator ten.
    back[names[2]] -= 3
    back[names[-1]] -= 10
    disturbed[names[-1]] = Touched(100, 10)
    found = change_of(traffic, back, disturbed)
    second = traffic.slices[1]
    assert found.last_lost_s == pytest.approx(second.start_s - 1.0 + second.frames / 5e4)
    assert (found.before_disturbed, found.after_disturbed) == (0, 100)
    sent, came = found.undisturbed_after
    assert (sent, sent - came) == (49_900, 3)
    # One more, which nothing explains.
    back[names[-1]] -= 1
    last = change_of(traffic, back, disturbed).last_lost_s
    assert last == pytest.approx(1.0)
    # Without any other loss the device has lost none.
    back[names[2]] += 3
    back[names[-1]] += 1
    found = change_of(traffic, back, disturbed)
    assert (found.last_lost_s, found.undisturbed_after) == (None, (49_900, 49_900))


def test_a_slice_of_which_no_frame_was_undisturbed_tells_nothing() -> None:
    """Frames lost at the end of a flow are in no count of the receiver."""
    traffic = Traffic(("a",), 64, 1.0, 1e5, frames=1000, senders=1, slices=cut(1.0, 5e4, 1.0))
    names = [flow_name(0, part) for part in range(len(traffic.slices) + 1)]
    back = {name: each.frames for name, each in zip(names[1:], traffic.slices, strict=True)}
    back[names[0]], back[names[3]] = 1000, 0
    disturbed = dict.fromkeys(names, Touched(0, 0))
    disturbed[names[3]] = Touched(traffic.slices[2].frames, 5)
    assert change_of(traffic, back, disturbed).last_lost_s is None
