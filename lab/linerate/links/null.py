# SPDX-License-Identifier: BSD-3-Clause
"""net_null ports: the driver makes and discards frames without copying, so only software cost
remains.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from linerate.links.base import Link, LinkContext, Wire


class Null(Link):
    """DPDK's null driver without copying."""

    has_generator = False
    driver = "net_null"
    size_matters = False

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.name = "null" if ports == 1 else f"null{ports}"
        self.description = (
            f"{ports} net_null port{'s' if ports > 1 else ''}: a driver that makes and frees "
            "frames at nearly no cost; this measures the forwarder's own software"
        )

    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        # The driver's size is without the FCS.
        vdevs = [f"net_null{n},size={context.size - 4},copy=0" for n in range(self.ports)]
        return nullcontext(Wire(vdevs=tuple(vdevs)))
