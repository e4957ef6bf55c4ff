# SPDX-License-Identifier: BSD-3-Clause
"""Faults that make a start unfair to compare. They are reported, and not judged.

A program that drops everything is cheap, one that polls fewer ports has less to do, and one that
crashed says nothing about the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

from linerate.host.errors import GeneratorError, TrialError
from linerate.traffic.sender import Sender
from linerate.trial.starts.window import Window

Kind = Literal[
    "start", "ended", "silent", "stuck", "counters", "drops", "ports", "shared", "unsaturated",
    "wrong", "work", "replaced",
]  # fmt: skip
# The share of received packets that a program may keep and still have done the work.
KEPT = 0.02
# The same on a link whose other end may not receive all.
MOST_LOST = 0.99
# The share that it may send of earlier packets, if a generator's frames wait in rings.
_COPIED = 0.1
# Packets per port that may be under way when counters are read.
UNDER_WAY = 512


class FaultError(TrialError):
    """A fault of one program: `arm` is its index. `kind`: for programs; the message is for people.
    `said`: output of the start at fault, if it still runs.
    """

    def __init__(self, arm: int, kind: Kind, message: str, said: str = "") -> None:
        super().__init__(message)
        self.arm = arm
        self.kind = kind
        self.said = said


@contextmanager
def blamed(arm: int, sender: Sender | None = None) -> Iterator[None]:
    """Turn a failure inside into a fault of this program, which did not start; except failures
    caused by its generator.
    """
    try:
        yield
    except GeneratorError:
        raise
    except TrialError as error:
        if sender:
            # A program whose generator has ended waits in vain.
            sender.check()
        raise FaultError(arm, "start", str(error.message)) from error


def refuse(
    windows: Sequence[Window],
    *,
    dropping: bool = False,
    said: Callable[[int], str] = lambda place: "",
) -> None:
    """Raise `FaultError` for a start that did not do the work. `dropping`: programs may drop
    packets, because all do it to the same ones. `said`: complaints of a window's start.
    """
    most = max(sum(count > 0 for count in window.received) for window in windows)
    looks: tuple[Callable[[Window], tuple[Kind, str] | None], ...] = (
        _no_work,
        partial(_less_work, most=most, dropping=dropping),
        partial(_more_work, windows=windows),
    )
    for look in looks:
        for place, window in enumerate(windows):
            if found := look(window):
                raise FaultError(window.arm, *found, said(place))


def _no_work(window: Window) -> tuple[Kind, str] | None:
    if window.time_ns <= 0:
        return "stuck", "it did no work in a whole window"
    if not any(window.received):
        return "stuck", "it received no packet in a whole window"
    return None


def _more_work(window: Window, *, windows: Sequence[Window]) -> tuple[Kind, str] | None:
    """Find a program that sent each packet several times, and so did only a part of the work for
    each. If all do, they are comparable.
    """
    received, sent = sum(window.received), sum(window.sent)
    others = [sum(each.sent) / sum(each.received) for each in windows if each.arm != window.arm]
    usual = max(1.0, *others) if others else sent / received
    copied = KEPT if window.lossless else _COPIED
    # At the start of each slice packets may be under way, for another program may have had the CPU
    # since the slice before.
    under_way = UNDER_WAY * len(window.received) * len(window.slices)
    if sent > (1 + copied) * usual * received + under_way:
        return (
            "work",
            f"it sent {sent / received:.0%} as many packets as it received, the other program "
            f"{max(others):.0%}",
        )
    return None


def _less_work(window: Window, *, most: int, dropping: bool) -> tuple[Kind, str] | None:
    """Find a program that received on fewer ports. `most`: the number of ports on which others
    did.
    """
    if (polled := sum(count > 0 for count in window.received)) < most:
        silent = [port for port, count in enumerate(window.received) if not count]
        return (
            "ports",
            f"it received packets on {polled} of {len(window.received)} ports, not on "
            f"{', '.join(map(str, silent))}",
        )
    received, sent = sum(window.received), sum(window.sent)
    # A flooding generator has little time to receive, so the program's TX ring overflows.
    kept = KEPT if window.lossless else MOST_LOST
    lost = received if dropping else kept * received + UNDER_WAY * len(window.received)
    if not sent or received - sent > lost:
        return "drops", f"it sent on {sent / received:.0%} of the packets that it received"
    if window.pps <= 0:
        return "stuck", "it sent no packet in most of its measurements"
    if not (window.cost_only or window.saturated):
        return (
            "unsaturated",
            "it took all that the generator offered, so that its own speed is not seen",
        )
    return None
