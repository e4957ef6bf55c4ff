# SPDX-License-Identifier: BSD-3-Clause
"""Our l3fwd-graph, on both executors, with the routes that DPDK's routing examples get."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from linerate.forwarders.base import DpdkForwarder, routing_arguments
from linerate.host.errors import UsageError
from linerate.host.places import rust_binary
from linerate.host.process import Command
from linerate.links import Wire, rules
from linerate.links.eal import Memory, two_threads
from linerate.links.tables import Tables

# Its main lcore never forwards.
_LCORE = 1
# What these ports make is whatever lies in the buffer, unless they are given frames.
_MAKERS = ("net_null", "net_nearfree")
_FRAMES = "frames="


class RustL3fwdGraph(DpdkForwarder):
    """`executor`: DPDK's librte_graph, or one function that the compiler makes of all nodes."""

    language = "Rust"
    routes = True

    def __init__(self, executor: Literal["dpdk", "fused"]) -> None:
        self.executor = executor
        self.name = "rust-l3fwd-graph" + ("-fused" if executor == "fused" else "")

    def prepare(self) -> None:
        rust_binary("l3fwd-graph")

    def program(self) -> Path:
        return rust_binary("l3fwd-graph")

    def lcores(self, cpu: int) -> list[str]:
        return two_threads(cpu)

    def holds(self, tables: Tables) -> bool:
        return True

    def arguments(self, wire: Wire) -> list[str]:
        tables, ports = wire.tables, wire.ports
        routes = tables.routes_files(ports) if tables else rules.rule_files("lpm", ports)
        asked = [f"--rule_ipv4={tables.rules_files(ports).ipv4}"] if tables and tables.rules else []
        return [
            *routing_arguments(ports, _LCORE),
            f"--routes_ipv4={routes.ipv4}",
            f"--routes_ipv6={routes.ipv6}",
            *asked,
            f"--executor={self.executor}",
        ]

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        if any(vdev.startswith(_MAKERS) and _FRAMES not in vdev for vdev in wire.vdevs):
            raise UsageError(
                f"--forwarders {self.name}: frames of this link have no addresses to route by",
                "--link memif, memif2, nearfree1-ip or nearfree2-ip",
            )
        return super().command(cpu, memory, prefix, wire, probed=probed)
