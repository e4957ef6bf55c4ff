# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's routing examples in C, from the distribution's package: l3fwd and l3fwd-graph.

Their sources are unmodified; headers of ours that they are compiled with (`bench/examples`) stand
between them and DPDK. The records say what these change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from linerate.forwarders.base import DpdkForwarder, routing_arguments
from linerate.host.builds import c_examples, compilers
from linerate.host.builds.c_examples import CExample
from linerate.host.errors import MissingError
from linerate.host.process import Command
from linerate.links import Wire, rules
from linerate.links.eal import Memory, two_threads
from linerate.links.rules import RuleFiles
from linerate.links.tables import Tables

# The drivers of virtual devices that tell what kind of packet they received.
_KNOW_PACKET_TYPES = ("net_tap",)


class _Routing(DpdkForwarder):
    """What both have in common: how they are built, and the options that both know.

    `clang`: built by clang instead of the system's compiler. `native`: with -march=native instead
    of the -march of the distribution's DPDK.
    """

    language = "C"
    routes = True
    example: str
    lookup: str
    include: str
    changes: str
    # The lcore that forwards.
    lcore: int

    def __init__(self, name: str, *, clang: bool = False, native: bool = False) -> None:
        self.name = "-".join([name, *["clang"] * clang, *["native"] * native])
        self._clang = clang
        self._native = native
        self._built: CExample | None = None

    def prepare(self) -> None:
        compiler = None
        if self._clang and (compiler := compilers.clang()) is None:
            raise MissingError(
                f"clang is missing, which one of the C {self.example} is built with", "make bench"
            )
        self._built = c_examples.build(
            self.example, compiler, native=self._native, include=self.include
        )

    def program(self) -> Path:
        if self._built is None:
            self.prepare()
        assert self._built is not None
        return self._built.program

    def arguments(self, wire: Wire) -> list[str]:
        return routing_arguments(wire.ports, self.lcore)

    def environment(self, wire: Wire) -> dict[str, str]:
        return {"LINERATE_FRAMES": str(rules.mixed_frame_file(wire.ports))}

    def files(self, wire: Wire) -> RuleFiles:
        """What the frames of this wire are forwarded by."""
        if wire.tables is None:
            return rules.rule_files(self.lookup, wire.ports)
        by_rules = self.lookup == "acl"
        return (wire.tables.rules_files if by_rules else wire.tables.routes_files)(wire.ports)

    def build_facts(self) -> dict[str, str]:
        return {**self._built.facts, "changes": self.changes} if self._built else {}


class CL3fwd(_Routing):
    """l3fwd, with one of its lookups: `lpm`, `em` or `acl`."""

    example = "l3fwd"
    include = "linerate_ports.h"
    changes = (
        "RX offloads that a port lacks are not asked for (checksums are then not checked); "
        "buffers of ports that make their own frames hold frames of the lab's flows; the IPv4 "
        "table has room for as many routes as there are"
    )
    lcore = 0

    def __init__(self, lookup: str, *, native: bool = False) -> None:
        super().__init__(f"c-l3fwd-{lookup}", native=native)
        self.lookup = lookup
        if lookup == "em":
            # Two hash tables of four million entries each, whatever is put into them.
            self.memory_mib = 1024

    def lcores(self, cpu: int) -> list[str]:
        # Queues are given to lcores by their number.
        return ["--lcores", f"{self.lcore}@{cpu}"]

    def holds(self, tables: Tables) -> bool:
        # By ACL the rules are the routes; exact match knows no networks.
        return {"lpm": not tables.rules, "acl": bool(tables.rules)}.get(self.lookup, False)

    def arguments(self, wire: Wire) -> list[str]:
        files = self.files(wire)
        return [
            *super().arguments(wire),
            f"--lookup={self.lookup}",
            f"--rule_ipv4={files.ipv4}",
            f"--rule_ipv6={files.ipv6}",
        ]

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        command = super().command(cpu, memory, prefix, wire, probed=probed)
        if all(vdev.startswith(_KNOW_PACKET_TYPES) for vdev in wire.vdevs):
            return command
        return replace(command, argv=(*command.argv, "--parse-ptype"))


class CL3fwdGraph(_Routing):
    """l3fwd-graph: the same by LPM, as a graph of nodes."""

    example = "l3fwd-graph"
    lookup = "lpm"
    include = "linerate_graph.h"
    changes = (
        "RX offloads that a port lacks are not asked for; buffers of ports that make their own "
        "frames hold frames of the lab's flows; routes of a file are added to its own, as many as "
        "there are; the main lcore has no TX queue, and sleeps between two prints"
    )
    # It has no node for IPv6: such frames go to the one that drops.
    ips = (4,)
    # Its main lcore never forwards.
    lcore = 1

    def __init__(self, *, clang: bool = False, native: bool = False) -> None:
        super().__init__("c-l3fwd-graph", clang=clang, native=native)

    def holds(self, tables: Tables) -> bool:
        return not tables.rules

    def lcores(self, cpu: int) -> list[str]:
        return two_threads(cpu)

    def environment(self, wire: Wire) -> dict[str, str]:
        return {**super().environment(wire), "LINERATE_ROUTES": str(self.files(wire).ipv4)}
