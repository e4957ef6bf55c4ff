# SPDX-License-Identifier: BSD-3-Clause
"""Frames that the kernel's interfaces lost between the ends of a link: each is named once.

An interface's counters name frames that others name, too. tx_dropped has what it refused, also when
its sender knows: Linux 6.6 and later tell the sender that a veth has no room. A program that sends
by calls then counts the frame among its own drops, and a ring of a packet socket keeps it and
offers it again, so that one frame is refused many times. So it is looked at what passed: lost at an
end is what the program there takes for sent and the interfaces did not send, and what they received
and the program did not.
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

    rx_packets: int = 0
    rx_dropped: int = 0
    tx_packets: int = 0
    tx_dropped: int = 0

    def since(self, before: Counters) -> Counters:
        return Counters(
            self.rx_packets - before.rx_packets,
            self.rx_dropped - before.rx_dropped,
            self.tx_packets - before.tx_packets,
            self.tx_dropped - before.tx_dropped,
        )


@dataclass(frozen=True)
class Program:
    """Frames that the program at an end received or says that it missed, and takes for sent."""

    received: int
    sent: int


def read(interfaces: Sequence[Interface]) -> dict[str, Counters]:
    """What the kernel counted so far, by end; nothing of an end without interfaces."""
    sums: dict[str, list[int]] = {}
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
                total = sums.setdefault(end, [0] * 4)
                for at, field in enumerate((1, 3, 9, 11)):
                    total[at] += fields[field]
    return {end: Counters(*total) for end, total in sums.items()}


def lost(
    before: Mapping[str, Counters],
    after: Mapping[str, Counters],
    programs: Mapping[str, Program],
) -> dict[str, int]:
    """Frames that were lost in between, by place; `programs`: what each end's counted meanwhile.

    `not received` are those that the interfaces received without a drop and the program did not:
    DPDK's af_packet driver, for one, does not say what it had no room for.
    """
    found = {}
    for end, counted in after.items():
        since, program = counted.since(before[end]), programs[end]
        unsent = max(program.sent - since.tx_packets, 0)
        missing = max(since.rx_packets - program.received, 0)
        dropped = min(since.rx_dropped, missing)
        found[f"{end} interfaces tx_dropped"] = min(since.tx_dropped, unsent)
        found[f"{end} interfaces rx_dropped"] = dropped
        found[f"{end} not received"] = missing - dropped
    return found
