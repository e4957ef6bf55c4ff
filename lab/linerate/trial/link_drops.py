# SPDX-License-Identifier: BSD-3-Clause
"""Frames lost between a program and its kernel interfaces, each counted once.

The interfaces' drop counters do not tell this, because other counters include the same frames. If
an interface refuses a frame, Linux 6.6 and later report it to the sender: a program that sends by
system calls counts it among its own drops, and a ring of a packet socket keeps it and all later
frames, and offers them again. Frames that XDP programs could not send on a veth are in tx_dropped
of one end and rx_dropped of the other. And frames that find no room in a program's socket are in no
counter of the interface. So this compares what passed: the frames that the program and its
interfaces counted as sent, and as received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.host.errors import LinkError
from linerate.host.netns import Interface
from linerate.host.sampler import Wanted


@dataclass(frozen=True)
class Passed:
    """Received and sent frames: of all interfaces of an end, or of its program."""

    received: int = 0
    sent: int = 0

    def since(self, before: Passed) -> Passed:
        return Passed(self.received - before.received, self.sent - before.sent)


def read(interfaces: Sequence[Interface]) -> dict[str, Passed]:
    """Return the kernel's counts so far, by end; none for an end without interfaces.

    Raises `LinkError` if an interface is gone: the sum of the others would be wrong.
    """
    found: dict[str, Passed] = {}
    for host in dict.fromkeys(each.host for each in interfaces):
        try:
            told = host.sample(Wanted(interfaces=True)).interfaces
        except OSError as error:
            raise LinkError(f"{host.id}: {error.strerror}") from error
        ours = [each for each in interfaces if each.host == host]
        if gone := [each.name for each in ours if each.name not in told]:
            raise LinkError(f"{', '.join(gone)}: gone from the {host.id}")
        for each in ours:
            so_far, now = found.get(each.end, Passed()), told[each.name]
            found[each.end] = Passed(so_far.received + now.rx_frames, so_far.sent + now.tx_frames)
    return found


def lost(
    before: Mapping[str, Passed], after: Mapping[str, Passed], programs: Mapping[str, Passed]
) -> dict[str, int]:
    """Return the frames lost in between, by place; `programs`: the counts of each end's program in
    that time.

    `not sent` is below 0 if frames that a ring held before left now.
    """
    found = {}
    for end, counted in after.items():
        since, program = counted.since(before[end]), programs[end]
        found[f"{end} not sent"] = program.sent - since.sent
        found[f"{end} not received"] = since.received - program.received
    return found
