# SPDX-License-Identifier: BSD-3-Clause
"""Find the time of the last lost frame by OTG alone: traffic is cut into consecutive flows.

Lost frames arrive nowhere, so the receiver cannot tell when they were lost. But each slice of the
traffic is a flow with its own number of frames, sent in its own time; the end of the last slice
that lost one bounds the moment. Slices grow with the time since the change, so that the moment is
known to a fifth of itself, or to the first slice. The end of the time, in which no frame of a
device that recovered is lost, is a slice of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from linerate.records.outcome import ChangeFigures
from linerate.traffic.otg import Slice, Traffic, flow_name
from linerate.traffic.sender import Touched
from linerate.trial.search.recovery import END_SHARE

FIRST_S = 0.001
GROWTH = 1.25


def cut(start_s: float, pps: float, seconds: float) -> tuple[Slice, ...]:
    """Cut `seconds` of traffic from `start_s` on, at `pps` frames per second of one port."""
    slices = []
    begin, sent = 0.0, 0
    whole, last = max(round(pps * seconds), 1), seconds * (1 - END_SHARE)
    while sent < whole:
        end = min(max(begin * GROWTH, begin + FIRST_S), last)
        frames = (whole if begin >= last else round(pps * end)) - sent
        if frames >= 1:
            slices.append(Slice(start_s + sent / pps, frames, pps))
            sent += frames
        begin = end
    return tuple(slices)


def change_of(
    traffic: Traffic,
    received: Mapping[str, int],
    disturbed: Mapping[str, Touched] | None = None,
) -> ChangeFigures:
    """Compute the figures from the frames received of each flow; flows of all sending ports are
    added.

    `disturbed`: frames by flow to leave out of all figures; None if the sender does not report
    them.
    """
    senders = range(len(traffic.locations) if traffic.senders is None else traffic.senders)

    def back(part: int) -> int:
        return sum(received.get(flow_name(index, part), 0) for index in senders)

    apart = disturbed or {}

    def touched(*parts: int) -> Touched:
        mine = [apart[flow_name(index, part)] for index in senders for part in parts]
        return Touched(sum(each.frames for each in mine), sum(each.lost for each in mine))

    def lost(part: int, frames: int) -> int:
        """Return how many undisturbed frames of a slice never came back."""
        missing = frames - back(part)
        if not apart or missing <= 0:
            return missing
        found = touched(part)
        return min(missing - found.lost, frames - found.frames)

    before = (traffic.frames or 0) * len(senders)
    found = ChangeFigures(
        before_intended=before,
        before_received=back(0),
        after_intended=sum(each.frames for each in traffic.slices) * len(senders),
        after_received=sum(back(part) for part in range(1, len(traffic.slices) + 1)),
    )
    if apart:
        first, rest = touched(0), touched(*range(1, len(traffic.slices) + 1))
        found.before_disturbed, found.before_disturbed_lost = first.frames, first.lost
        found.after_disturbed, found.after_disturbed_lost = rest.frames, rest.lost
    for part, each in enumerate(traffic.slices, start=1):
        if lost(part, each.frames * len(senders)) > 0:
            begin = each.start_s - traffic.slices[0].start_s
            found.slice_s = each.frames / each.pps
            found.last_lost_s = begin + found.slice_s
    return found
