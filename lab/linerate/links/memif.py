# SPDX-License-Identifier: BSD-3-Clause
"""memif: a shared-memory packet interface between two processes. Counts exactly, needs no rights.

The generator is the server and must start first.
"""

from __future__ import annotations

from linerate.links.base import Link, LinkContext


class Memif(Link):
    """One memif connection per port, all on one socket."""

    has_generator = True

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.name = "memif" if ports == 1 else f"memif{ports}"
        self.description = (
            f"{ports} memif port{'s' if ports > 1 else ''}: shared memory between generator and "
            "forwarder; a full ring is back-pressure at the sender"
        )

    def forwarder_vdevs(self, context: LinkContext) -> list[str]:
        socket = context.directory / "memif.sock"
        return [
            f"net_memif{n},role=client,id={n},socket={socket},socket-abstract=no"
            for n in range(self.ports)
        ]

    def generator_locations(self, context: LinkContext) -> list[str]:
        socket = context.directory / "memif.sock"
        return [f"memif:{socket},role=server,id={n}" for n in range(self.ports)]
