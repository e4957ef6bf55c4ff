# SPDX-License-Identifier: BSD-3-Clause
"""net_nearfree ports: our own driver (bench/nearfree), which does next to no work per packet."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from linerate.host.builds.bench_programs import nearfree_plugin
from linerate.links import rules
from linerate.links.base import Link, LinkContext, Wire
from linerate.links.tables import Tables


class NearFree(Link):
    """What is left of a trial's time is the forwarder's own."""

    has_generator = False
    driver = "net_nearfree"
    size_matters = False

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.name = f"nearfree{ports}"
        self.description = (
            f"{_counted(ports)}: a driver that copies pointers and touches no packet; what is "
            "measured is the forwarder's own instructions"
        )

    def prepare(self) -> None:
        nearfree_plugin()

    def plugin(self) -> Path:
        return nearfree_plugin()

    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        # The driver's size is without the FCS.
        arguments = f"size={context.size - 4},dense=1"
        return nullcontext(
            Wire(
                vdevs=tuple(
                    f"net_nearfree{port},{arguments}{self._further(port)}"
                    for port in range(self.ports)
                ),
                eal_options=("-d", str(self.plugin())),
                tables=self.tables,
            )
        )

    def _further(self, port: int) -> str:
        """What else the port is told."""
        return ""


class RoutedNearFree(NearFree):
    """The same with frames to route: of `tables`, or without them of the lab's flows.

    What comes in by one port of two leaves by the other.
    """

    def __init__(self, ports: int, tables: Tables | None = None) -> None:
        super().__init__(ports)
        self.tables = tables
        self.name += "-ip"
        if tables:
            self.name += f":{tables.name}"
        self.description = self.describe(
            f"flows over {tables.words}" if tables else "the lab's flows"
        )

    def describe(self, flows: str) -> str:
        """What it is, with frames of such flows."""
        return (
            f"{_counted(self.ports)}: a driver that copies pointers and writes 16 bytes of each "
            f"packet anew: IPv4 frames of {flows}; what is measured is the forwarder's own "
            "instructions, and what its tables cost in the cache"
        )

    def with_tables(self, tables: Tables) -> RoutedNearFree:
        return RoutedNearFree(self.ports, tables)

    def _further(self, port: int) -> str:
        return f",frames={self._frames((port + 1) % self.ports)}"

    def _frames(self, leaving: int) -> Path:
        if self.tables:
            return self.tables.frame_file(leaving, self.ports)
        return rules.frame_file(leaving, self.ports)


def _counted(ports: int) -> str:
    return f"{ports} net_nearfree port{'s' * (ports > 1)}"
