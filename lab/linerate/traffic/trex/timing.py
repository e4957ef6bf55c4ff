# SPDX-License-Identifier: BSD-3-Clause
"""When streams begin and end, as durations of OTG flows.

A stream that starts another (`next`) does so after its last packet. As all of that is known before
anything is sent, the other is a flow with a delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linerate.traffic.trex.described import Mode, Stream
from linerate.traffic.trex.rates import Rate
from linerate.traffic.trex.refusal import RefusalError


@dataclass(frozen=True)
class Timed:
    """A stream with its rate after all multipliers."""

    stream: Stream
    rate: Rate


def starts(streams: Sequence[Timed]) -> tuple[dict[int, float], dict[int, RefusalError]]:
    """Microseconds after which each stream begins, by its number: of those that ever do; and what
    is refused of others.
    """
    names: dict[str | None, int] = {
        each.stream.name: at for at, each in enumerate(streams) if each.stream.name
    }
    found: dict[int, float] = {}
    refused: dict[int, RefusalError] = {}
    for first, each in enumerate(streams):
        if not each.stream.self_start or not each.stream.enabled:
            continue
        number, at, way = first, each.stream.isg_us, [first]
        while True:
            if number in found:
                refused[number] = RefusalError("is started by two streams: flows begin once")
                break
            found[number] = at
            following = streams[number].stream.next
            if following is None or names.get(following) == number:
                break
            try:
                end = at + _length_us(streams[number])
                after = _named(names, following)
            except RefusalError as error:
                refused[number] = error
                break
            if after in way:
                around = " -> ".join(
                    repr(streams[each].stream.name) for each in (*way[way.index(after) :], after)
                )
                refused[number] = RefusalError(f"streams {around} repeat: flows of OTG begin once")
                break
            number, at = after, end + streams[after].stream.isg_us
            way.append(number)
    return found, refused


def _named(names: dict[str | None, int], name: str) -> int:
    if name not in names:
        raise RefusalError(f"next {name!r}: there is no such stream")
    return names[name]


def _length_us(timed: Timed) -> float:
    """From the first packet to the last."""
    mode, pps = timed.stream.mode, timed.rate.pps
    if mode.kind == "continuous":
        raise RefusalError(f"next {timed.stream.next!r} never begins: this stream has no end")
    if pps is None:
        raise RefusalError(
            f"next {timed.stream.next!r} begins after packets whose rate is in per cent of a line "
            "that is not known here"
        )
    burst = (mode.packets - 1) * 1e6 / pps
    return mode.bursts * burst + (mode.bursts - 1) * mode.gap_us


def duration(timed: Timed, start_us: float) -> tuple[dict[str, Any], str | None]:
    """The duration of a flow that begins then, and a note; raises `RefusalError`."""
    stream, mode = timed.stream, timed.stream.mode
    repeats = stream.next is not None and stream.next == stream.name
    delay = {"delay": {"choice": "microseconds", "microseconds": start_us}} if start_us else {}
    if mode.kind == "continuous":
        return {"choice": "continuous", "continuous": delay}, None
    if mode.kind == "single_burst" and not repeats:
        packets = {"packets": mode.packets, **delay}
        return {"choice": "fixed_packets", "fixed_packets": packets}, None
    note = None
    if repeats:
        if mode.kind == "multi_burst":
            raise RefusalError("repeats a series of bursts (next is itself): OTG has one series")
        # Each round begins with the same gap, which TRex has before the first, too.
        bursts, gap, start_us = stream.loops, stream.isg_us, 0.0
        note = "the first burst is sent at once" if gap else None
    else:
        bursts, gap = mode.bursts, mode.gap_us
    if start_us:
        raise RefusalError(
            f"bursts begin after {start_us:g} us (isg, or a stream before it): bursts of OTG have "
            "no delay"
        )
    return _burst(mode, timed.rate.pps, bursts, gap), note


def _burst(mode: Mode, pps: float | None, bursts: int, gap_us: float) -> dict[str, Any]:
    """`gap_us`: from the last packet of a burst to the first of the next. The model's gap comes on
    top of the time between two packets.
    """
    between = 0.0
    if gap_us:
        if pps is None:
            raise RefusalError("bursts with a rate in per cent of a line that is not known here")
        between = gap_us - 1e6 / pps
        if between < 0:
            raise RefusalError(
                f"the gap between bursts, {gap_us:g} us, is shorter than that between packets, "
                f"{1e6 / pps:g} us"
            )
    burst = {
        "bursts": bursts, "packets": mode.packets,
        "inter_burst_gap": {"choice": "microseconds", "microseconds": between},
    }  # fmt: skip
    return {"choice": "burst", "burst": burst}
