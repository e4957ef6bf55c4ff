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
from pathlib import Path

from linerate.host import netns
from linerate.host.errors import LinkError
from linerate.host.netns import Interface


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
            if end := ends.pop(name, None):
                fields = numbers.split()
                so_far = found.get(end, Passed())
                found[end] = Passed(so_far.received + int(fields[1]), so_far.sent + int(fields[9]))
        if ends:
            raise LinkError(f"{', '.join(ends)}: gone from the namespace {namespace}")
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
