# SPDX-License-Identifier: BSD-3-Clause
"""net_nearfree ports: our own driver (bench/nearfree), which does no work per packet at all."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from linerate import rules
from linerate.benchmarks import nearfree_plugin
from linerate.links.base import Link, LinkContext, Wire


class NearFree(Link):
    """What is left of a trial's time is the forwarder's own."""

    has_generator = False
    size_matters = False

    def __init__(self, ports: int, *, ip: bool = False) -> None:
        self.ports = ports
        self._ip = ip
        self.name = f"nearfree{ports}{'-ip' * ip}"
        touches = (
            "and writes one word of each packet: IPv4 frames of the lab's flows"
            if ip
            else "and touches no packet"
        )
        self.description = (
            f"{ports} net_nearfree ports: a driver that copies pointers {touches}; "
            "what is measured is the forwarder's own instructions"
        )

    def prepare(self) -> None:
        nearfree_plugin()

    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        # The driver's size is without the FCS.
        arguments = f"size={context.size - 4},dense=1"
        if self._ip:
            arguments += f",frames={rules.frame_file(self.ports)}"
        return nullcontext(
            Wire(
                vdevs=tuple(f"net_nearfree{n},{arguments}" for n in range(self.ports)),
                eal_options=("-d", str(nearfree_plugin())),
            )
        )
