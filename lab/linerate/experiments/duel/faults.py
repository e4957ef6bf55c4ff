# SPDX-License-Identifier: BSD-3-Clause
"""What makes a duel no comparison: named, and not judged.

A program that drops everything is cheap, one that polls fewer ports has less to do, and one that
crashed says nothing of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from linerate.experiments.duel.window import Window
from linerate.host.errors import TrialError

Kind = Literal[
    "start", "ended", "silent", "stuck", "counters", "drops", "ports", "shared", "unsaturated"
]
# Share of what a program received that it may keep, and still have done the work.
KEPT = 0.02
# The same on a link whose other end may not receive all.
MOST_LOST = 0.99
# Packets per port that may be under way when counters are read.
UNDER_WAY = 512


# A pattern in a program's output when it does not start, and the advice for it. The first match
# counts.
_ADVICE = (
    (
        r"no cores defined for forwarding",
        "--lcores idle-main is for programs whose main lcore does not forward",
    ),
    (
        r"not enough (l?cores|workers)|need \S+ l?cores|l?core\S* \d+ is not (enabled|detected)",
        "a duel gives a command line in quotes one lcore: tell the program to use it for all ports "
        "(l2fwd: -q 2, l3fwd: --config {queues}), or give it more with --lcores 2",
    ),
    (
        r"pool.*(no buffer space|failed|cannot)|(cannot|can't|could ?n.t|failed to)"
        r" (allocate|create|init)[^;]*(mem|mbuf|pool)|cannot allocate memory",
        "memory is short: let it make fewer mbufs (testpmd: --total-num-mbufs=16384), or set "
        "memory_mib in a TOML file",
    ),
    (
        r"(cannot|can't|failed to) configure (device|port)",
        "the ports of many links have no hardware offloads and no RSS; a program that insists on "
        "them does not start there",
    ),
    (
        r"exit code 12[67].*(no such file|not found|permission denied)",
        "programs start in a new, empty directory: a script must name its files by absolute paths",
    ),
)


def advice(message: str) -> str | None:
    """Advice for a program that did not start and printed this; None: there is none."""
    return next((what for words, what in _ADVICE if re.search(words, message, re.I)), None)


class FaultError(TrialError):
    """Of one program: `arm` is its place. `kind`: for programs; the message is for people."""

    def __init__(self, arm: int, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.arm = arm
        self.kind = kind


def refuse(windows: Sequence[Window]) -> None:
    """Raise `FaultError` for a start that did not do the work."""
    for window in windows:
        if window.time_ns <= 0:
            raise FaultError(window.arm, "stuck", "it used no CPU time in a whole window")
        if not any(window.received):
            raise FaultError(window.arm, "stuck", "it received no packet in a whole window")
        if not window.saturated:
            raise FaultError(
                window.arm, "unsaturated",
                "it took all that the generator offered, so that its own speed is not seen; "
                "--link null2 has no generator",
            )  # fmt: skip
    most = max(sum(count > 0 for count in window.received) for window in windows)
    for window in windows:
        if (polled := sum(count > 0 for count in window.received)) < most:
            silent = [port for port, count in enumerate(window.received) if not count]
            raise FaultError(
                window.arm, "ports",
                f"it received packets on {polled} of {len(window.received)} ports, not on "
                f"{', '.join(map(str, silent))}",
            )  # fmt: skip
        received, sent = sum(window.received), sum(window.sent)
        # A flooding generator has little time to receive, so the program's TX ring overflows.
        kept = KEPT if window.lossless else MOST_LOST
        if not sent or received - sent > kept * received + UNDER_WAY * len(window.received):
            raise FaultError(
                window.arm, "drops",
                f"it sent on {sent / received:.0%} of the packets that it received",
            )  # fmt: skip
        if window.pps <= 0:
            raise FaultError(window.arm, "stuck", "it sent no packet in most of its measurements")
