# SPDX-License-Identifier: BSD-3-Clause
"""net_nearfree ports: our own driver (drivers/nearfree), which does almost no work per packet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from linerate.host.builds.bench_programs import nearfree_plugin
from linerate.links import rules
from linerate.links.base import Link, LinkContext, Wire
from linerate.links.tables import Tables

FCS = 4


class NearFree(Link):
    """Ports that cost almost nothing, so that a trial's time is the forwarder's own."""

    has_generator = False
    driver = "net_nearfree"
    size_matters = False

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.name = f"nearfree{ports}"
        self.description = (
            f"{_counted(ports)}: a driver that copies pointers and touches no packet; this "
            "measures the forwarder's own instructions"
        )

    def prepare(self) -> None:
        nearfree_plugin()

    def plugin(self) -> Path:
        return nearfree_plugin()

    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        # The driver's size is without the FCS.
        arguments = f"size={context.size - FCS},dense=1"
        return nullcontext(
            Wire(
                vdevs=tuple(
                    f"net_nearfree{port},{arguments}{self._further(port, context)}"
                    for port in range(self.ports)
                ),
                eal_options=("-d", str(self.plugin())),
                tables=self.tables,
            )
        )

    def _further(self, port: int, context: LinkContext) -> str:
        """Return further arguments of the port."""
        return ""


class Frames(NearFree):
    """The same with frames of capture files, or by default of the lab's flows.

    `files`: of each port in turn, or one for all of them. `checked`: the driver checks each packet
    that is sent, and reports by telemetry (drivers/nearfree/check.h).
    """

    def __init__(self, ports: int, files: Sequence[Path] = (), *, checked: bool = False) -> None:
        super().__init__(ports)
        self.name = "frames" if ports == 1 else f"frames{ports}"
        self.files = tuple(files)
        self.checked = checked
        self.size_matters = not files
        self.description = (
            f"{_counted(ports)}: a driver that writes each packet anew, with frames of a capture "
            "file (--traffic) or of the lab's flows; this measures the forwarder's own "
            "instructions"
        )

    def with_files(self, files: Sequence[Path]) -> Frames:
        return Frames(self.ports, files)

    def checking(self) -> Frames:
        """Return the same link with checks of sent packets."""
        return Frames(self.ports, self.files, checked=True)

    def _further(self, port: int, context: LinkContext) -> str:
        # Commas end an argument of a device; the user's path may have some.
        place = context.directory / f"frames{port}.pcap"
        if self.files:
            file = self.files[port % len(self.files)].resolve()
        else:
            file = rules.mixed_capture(self.ports, context.size - FCS)
        # A file of another size may exist.
        place.unlink(missing_ok=True)
        place.symlink_to(file)
        return f",frames={place}" + (",check=1" if self.checked else "")


class RoutedNearFree(NearFree):
    """The same with frames to route: of `tables`, or by default of the lab's flows.

    Frames received on one port of two leave by the other.
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
        """Return the link's description, with frames of these flows."""
        return (
            f"{_counted(self.ports)}: a driver that writes each packet anew: IPv4 frames of "
            f"{flows}; this measures the forwarder's own instructions and the cache misses of its "
            "tables"
        )

    def with_tables(self, tables: Tables) -> RoutedNearFree:
        return RoutedNearFree(self.ports, tables)

    def _further(self, port: int, context: LinkContext) -> str:
        return f",frames={self._frames((port + 1) % self.ports)}"

    def _frames(self, leaving: int) -> Path:
        if self.tables:
            return self.tables.frame_file(leaving, self.ports)
        return rules.frame_file(leaving, self.ports)


def _counted(ports: int) -> str:
    return f"{ports} net_nearfree port{'s' * (ports > 1)}"
