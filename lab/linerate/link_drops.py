# SPDX-License-Identifier: BSD-3-Clause
"""Frames that the kernel's interfaces lost between the ends of a link: each is named once.

An interface counts in tx_dropped whatever it refused, also when its sender knows. Linux 6.6 and
later tell the sender that a veth has no room: a program that sends by calls then counts the frame
among its own drops, and a ring of a packet socket keeps it and offers it again, so that one frame
is refused many times. Lost at the interfaces is what their end takes for sent and they did not
send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate import netns
from linerate.errors import LinkError
from linerate.netns import Interface


@dataclass(frozen=True)
class Counters:
    """Frames, of all interfaces of an end."""

    rx_dropped: int = 0
    tx_packets: int = 0
    tx_dropped: int = 0

    def plus(self, other: Counters, sign: int = 1) -> Counters:
        return Counters(
            self.rx_dropped + sign * other.rx_dropped,
            self.tx_packets + sign * other.tx_packets,
            self.tx_dropped + sign * other.tx_dropped,
        )


def read(interfaces: Sequence[Interface]) -> dict[str, Counters]:
    """What the kernel counted so far, by end; nothing of an end without interfaces."""
    found: dict[str, Counters] = {}
    for namespace in dict.fromkeys(each.namespace for each in interfaces):
        ends = {each.name: each.end for each in interfaces if each.namespace == namespace}
        try:
            with netns.inside(namespace):
                # Of the thread: /proc/net is that of the process.
                told = Path("/proc/thread-self/net/dev").read_text()
        except OSError as error:
            raise LinkError(f"{namespace}: {error.strerror}") from error
        for line in told.splitlines()[2:]:
            name, _, numbers = line.strip().partition(":")
            if end := ends.get(name):
                fields = [int(number) for number in numbers.split()]
                counted = Counters(fields[3], fields[9], fields[11])
                found[end] = found.get(end, Counters()).plus(counted)
    return found


def lost(
    before: Mapping[str, Counters], after: Mapping[str, Counters], sent: Mapping[str, int]
) -> dict[str, int]:
    """Frames that were lost in between, by place; `sent`: what each end takes for sent."""
    found = {}
    for end, counted in after.items():
        since = counted.plus(before[end], -1)
        unsent = max(sent[end] - since.tx_packets, 0)
        found[f"{end} interfaces rx_dropped"] = since.rx_dropped
        found[f"{end} interfaces tx_dropped"] = min(since.tx_dropped, unsent)
    return found
