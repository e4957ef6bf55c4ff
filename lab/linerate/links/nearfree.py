# SPDX-License-Identifier: BSD-3-Clause
"""net_nearfree ports: our own driver (bench/nearfree), which does no work per packet at all."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from linerate.benchmarks import nearfree_plugin
from linerate.links.base import Link, LinkContext, Wire


class NearFree(Link):
    """What is left of a trial's time is the forwarder's own."""

    has_generator = False
    size_matters = False

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.name = "nearfree" if ports == 1 else f"nearfree{ports}"
        self.description = (
            f"{ports} net_nearfree port{'s' if ports > 1 else ''}: a driver that copies pointers "
            "and touches no packet; what is measured is the forwarder's own instructions"
        )

    def prepare(self) -> None:
        nearfree_plugin()

    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        # The driver's size is without the FCS.
        arguments = f"size={context.size - 4},dense=1"
        return nullcontext(
            Wire(
                vdevs=tuple(f"net_nearfree{n},{arguments}" for n in range(self.ports)),
                eal_options=("-d", str(nearfree_plugin())),
            )
        )
