# SPDX-License-Identifier: BSD-3-Clause
"""Frames that were lost between a program and its interfaces of the kernel: each is named once.

What interfaces count as dropped does not tell: others name such a frame, too. Where an interface
refuses a frame, Linux 6.6 and later tell the sender: a program that sends by calls counts it among
its own drops, and a ring of a packet socket keeps it, and all behind it, and offers them again.
What XDP programs could not send on a veth is in tx_dropped of one end and rx_dropped of the other.
And what finds no room in a program's socket is in no counter of the interface. So it is looked at
what passed: how many frames the program and its interfaces took for sent, and for received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.host.errors import LinkError
from linerate.host.netns import Interface
from linerate.host.sampler import Wanted


@dataclass(frozen=True)
class Passed:
    """Frames that were received and sent: by all interfaces of an end, or by its program."""

    received: int = 0
    sent: int = 0

    def since(self, before: Passed) -> Passed:
        return Passed(self.received - before.received, self.sent - before.sent)


def read(interfaces: Sequence[Interface]) -> dict[str, Passed]:
    """What the kernel counted so far, by end; nothing of an end without interfaces.

    Raises `LinkError` where one is gone: the others' sum would be taken for the end's.
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
    """Frames that were lost in between, by place; `programs`: what each end's counted meanwhile.

    `not sent` is below 0 where frames that a ring held back before left now.
    """
    found = {}
    for end, counted in after.items():
        since, program = counted.since(before[end]), programs[end]
        found[f"{end} not sent"] = program.sent - since.sent
        found[f"{end} not received"] = since.received - program.received
    return found
