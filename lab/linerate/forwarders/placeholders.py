# SPDX-License-Identifier: BSD-3-Clause
"""The values of a command line's placeholders, for one start of a forwarder."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from linerate.forwarders.definition import Definition, Placeholder, Routing
from linerate.host.builds.plugins import probe_plugin
from linerate.links import Wire, eal, flows, rules
from linerate.links.eal import Memory
from linerate.links.rules import RuleFiles

# Drivers of virtual devices that report the type of a received packet.
_KNOW_PACKET_TYPES = ("net_tap",)
NO_HUGE = Memory(hugepages=False)
_SOCKET = re.compile(r",socket=([^,]+)")
_INTERFACE = re.compile(r"(?:^|,)iface=([^,]+)")


@dataclass(frozen=True)
class Place:
    """One start of a forwarder: its end of a link, and for a program its CPUs and memory.

    `program`: the executable. `prefix`: EAL's file prefix, by which its telemetry is found.
    `probed`: with the probe loaded.
    """

    definition: Definition
    wire: Wire
    program: Path = Path()
    cpus: tuple[int, ...] = (0,)
    memory: Memory = NO_HUGE
    prefix: str = ""
    probed: bool = False

    def values(self, name: str) -> Sequence[str]:
        """Return the values of a placeholder."""
        return _VALUES[cast(Placeholder, name)](self)

    @property
    def lcore_options(self) -> list[str]:
        """EAL's options for its lcores, all of them on its CPUs."""
        if self.definition.lcores == "idle-main":
            return eal.idle_main(*self.cpus)
        if self.definition.lcores == "renumbered":
            return eal.numbered_lcores(*self.cpus)
        return eal.lcores(*self.cpus)

    @property
    def forwarding_lcores(self) -> list[int]:
        """The numbers of the lcores that forward."""
        if self.definition.lcores == "idle-main":
            return [1 + number for number, _ in enumerate(self.cpus)]
        if self.lcore_options[0] == "-l":
            return list(self.cpus)
        return [number for number, _ in enumerate(self.cpus)]

    @property
    def routing(self) -> Routing:
        found = self.definition.routing
        assert found is not None  # a definition without it has no placeholder that asks
        return found

    def eal_options(self) -> list[str]:
        """Return all EAL options that the lab chooses; for programs without DPDK, the equivalents
        that they have.
        """
        if not self.definition.uses_dpdk:
            devices = [word for vdev in self.wire.vdevs for word in ("--vdev", vdev)]
            return [*self.lcore_options, "--file-prefix", self.prefix, *devices]
        options = eal.options(
            self.lcore_options, self.memory, self.prefix, self.wire, mib=self.definition.memory_mib
        )
        return [*options, "-d", str(probe_plugin())] if self.probed else options

    def rule_files(self) -> RuleFiles:
        """Return the files with the routes and rules for this link's frames, in the form of the
        program's lookup.
        """
        tables, ports, lookup = self.wire.tables, self.wire.ports, self.routing.lookup
        if tables is None:
            return rules.rule_files(lookup, ports)
        return tables.rules_files(ports) if lookup == "acl" else tables.routes_files(ports)

    def filter_file(self) -> list[str]:
        """Return the file of the rules that come before the routes, or an empty list."""
        tables = self.wire.tables
        return [str(tables.rules_files(self.wire.ports).ipv4)] if tables and tables.rules else []

    def rules_file(self) -> list[str]:
        """Return the same file; on a link without tables, one for the lab's flows."""
        if self.wire.tables is None:
            return [str(rules.rule_files("acl", self.wire.ports).ipv4)]
        return self.filter_file()

    def parse_ptype(self) -> list[str]:
        """Return l3fwd's option to parse packet types, if a driver does not report them."""
        known = all(vdev.startswith(_KNOW_PACKET_TYPES) for vdev in self.wire.vdevs)
        return [] if known else ["--parse-ptype"]

    def interfaces(self) -> list[str]:
        """Return the names of the network interfaces of its ports."""
        return [name for vdev in self.wire.vdevs for name in _INTERFACE.findall(vdev)]

    def sockets(self) -> list[str]:
        """Return the sockets of its ports, each once."""
        found = [path for vdev in self.wire.vdevs for path in _SOCKET.findall(vdev)]
        return list(dict.fromkeys(found))

    def queues(self) -> str:
        """Assign the first queue of each port to the forwarding lcores, in turn."""
        lcores = itertools.cycle(self.forwarding_lcores)
        return ",".join(f"({port},0,{next(lcores)})" for port in range(self.wire.ports))


_VALUES: dict[Placeholder, Callable[[Place], Sequence[str]]] = {
    "program": lambda place: [str(place.program)],
    "eal": Place.eal_options,
    "lcores": lambda place: place.lcore_options[-1:],
    "prefix": lambda place: [place.prefix],
    "ports": lambda place: [str(place.wire.ports)],
    "portmask": lambda place: [f"{(1 << place.wire.ports) - 1:x}"],
    "port": lambda place: [str(port) for port in range(place.wire.ports)],
    "peer": lambda place: [flows.sender_mac(port) for port in range(place.wire.ports)],
    "queues": lambda place: [place.queues()],
    "topology": lambda place: ["loop" if place.wire.ports == 1 else "paired"],
    "parse_ptype": Place.parse_ptype,
    "table_ipv4": lambda place: [str(place.rule_files().ipv4)],
    "table_ipv6": lambda place: [str(place.rule_files().ipv6)],
    "filter_ipv4": Place.filter_file,
    "rules_ipv4": Place.rules_file,
    "frames": lambda place: [str(rules.mixed_frame_file(place.wire.ports))],
    "rx": lambda place: place.interfaces()[:1],
    "tx": lambda place: place.interfaces()[-1:],
    "socket": Place.sockets,
}
