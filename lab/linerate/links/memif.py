# SPDX-License-Identifier: BSD-3-Clause
"""memif: a shared-memory packet interface between two processes. Its counters are exact, and it
needs no privileges.

The generator is the server and must start first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from linerate.links.base import Link, LinkContext, Wire


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

    @contextmanager
    def open(self, context: LinkContext) -> Iterator[Wire]:
        socket = context.directory / "memif.sock"
        # A server that was killed leaves its socket, and the next one could not listen.
        socket.unlink(missing_ok=True)
        ports = range(self.ports)
        try:
            yield Wire(
                vdevs=tuple(
                    f"net_memif{n},role=client,id={n},socket={socket},socket-abstract=no"
                    for n in ports
                ),
                locations=tuple(f"memif:{socket},role=server,id={n}" for n in ports),
            )
        finally:
            socket.unlink(missing_ok=True)
