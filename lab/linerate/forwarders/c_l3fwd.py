# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's routing examples in C, from the distribution's package: l3fwd and l3fwd-graph.

Their sources are unmodified; headers of ours that they are compiled with (`bench/examples`) stand
between them and DPDK. The records say what these change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from linerate import c_examples, rules
from linerate.c_examples import CExample
from linerate.eal import Memory, two_threads
from linerate.forwarders.base import DpdkForwarder, routing_arguments
from linerate.links import Wire
from linerate.process import Command

# Experiments have one port or two.
_PORTS = (1, 2)
# The drivers of virtual devices that tell what kind of packet they received.
_KNOW_PACKET_TYPES = ("net_tap",)


class _Routing(DpdkForwarder):
    """What both have in common: how they are built, and the options that both know."""

    language = "C"
    routes = True
    example: str
    lookup: str
    include: str
    changes: str
    # The lcore that forwards.
    lcore: int

    def __init__(self) -> None:
        self._built: CExample | None = None

    def prepare(self) -> None:
        self._built = c_examples.build(self.example, include=self.include)
        for ports in _PORTS:
            self.environment(ports)
            self.arguments(ports)

    def program(self) -> Path:
        if self._built is None:
            self.prepare()
        assert self._built is not None
        return self._built.program

    def arguments(self, ports: int) -> list[str]:
        return routing_arguments(ports, self.lcore)

    def environment(self, ports: int) -> dict[str, str]:
        return {"LINERATE_FRAMES": str(rules.frame_file(ports))}

    def build_facts(self) -> dict[str, str]:
        return {**self._built.facts, "changes": self.changes} if self._built else {}


class CL3fwd(_Routing):
    """l3fwd, with one of its lookups: `lpm`, `em` or `acl`."""

    example = "l3fwd"
    include = "linerate_ports.h"
    changes = (
        "RX offloads that a port lacks are not asked for (checksums are then not checked); "
        "buffers of ports that make their own frames hold frames of the lab's flows"
    )
    lcore = 0

    def __init__(self, lookup: str) -> None:
        super().__init__()
        self.lookup = lookup
        self.name = f"c-l3fwd-{lookup}"
        if lookup == "em":
            # Two hash tables of four million entries each, whatever is put into them.
            self.memory_mib = 1024

    def lcores(self, cpu: int) -> list[str]:
        # Queues are given to lcores by their number.
        return ["--lcores", f"{self.lcore}@{cpu}"]

    def arguments(self, ports: int) -> list[str]:
        files = rules.rule_files(self.lookup, ports)
        return [
            *super().arguments(ports),
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

    name = "c-l3fwd-graph"
    example = "l3fwd-graph"
    lookup = "lpm"
    include = "linerate_graph.h"
    changes = (
        "RX offloads that a port lacks are not asked for; buffers of ports that make their own "
        "frames hold frames of the lab's flows; routes of a file are added to its own; the main "
        "lcore has no TX queue, and sleeps between two prints"
    )
    # It has no node for IPv6: such frames go to the one that drops.
    ips = (4,)
    # Its main lcore never forwards.
    lcore = 1

    def lcores(self, cpu: int) -> list[str]:
        return two_threads(cpu)

    def environment(self, ports: int) -> dict[str, str]:
        routes = rules.rule_files(self.lookup, ports).ipv4
        return {**super().environment(ports), "LINERATE_ROUTES": str(routes)}
