# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's testpmd, as the distribution packages it, in its forwarding modes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linerate.forwarders.base import DpdkForwarder, on_interfaces
from linerate.host.errors import MissingError
from linerate.host.netns import Interface, ip
from linerate.host.process import Command
from linerate.links import Wire, eal, flows
from linerate.links.eal import Memory

# These write the address of who is next into the frame.
_NAME_THEIR_PEER = ("mac", "csum")


class Testpmd(DpdkForwarder):
    """`io`: receive and send, nothing else; a reference peer for the self-test. `mac`: writes both
    Ethernet addresses anew, `macswap`: swaps them, `5tswap`: IP addresses and ports too; `csum`:
    writes them anew and computes the checksums of IP and UDP.
    """

    __test__ = False  # not a pytest class
    language = "C"
    # It ends at end-of-file on its standard input.
    hold_stdin = True

    def __init__(self, mode: str = "io") -> None:
        self.mode = mode
        self.name = f"testpmd-{mode}"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        found = shutil.which("dpdk-testpmd")
        if found is None:
            raise MissingError("dpdk-testpmd is not installed", "make setup (Debian: dpdk)")
        return Path(found)

    def lcores(self, cpu: int) -> list[str]:
        # The main lcore of testpmd does not forward: it sleeps on standard input.
        return eal.two_threads(cpu)

    def arguments(self, wire: Wire) -> list[str]:
        options = [
            f"--forward-mode={self.mode}",
            "--auto-start",
            "--nb-cores=1",
            f"--port-topology={'loop' if wire.ports == 1 else 'paired'}",
            "--total-num-mbufs=16384",
            "--no-flush-rx",
        ]
        if self.mode in _NAME_THEIR_PEER:
            options += [f"--eth-peer={n},{flows.sender_mac(n)}" for n in range(wire.ports)]
        return options


class TestpmdAfXdp(Testpmd):
    """`testpmd-io` on DPDK's af_xdp driver instead of its af_packet one."""

    kind = "dpdk-af-xdp"
    interfaces_only = True

    def __init__(self) -> None:
        super().__init__()
        self.name = "testpmd-af-xdp"

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        own = on_interfaces(self.name, "net_af_xdp", wire)
        return super().command(cpu, memory, prefix, own, probed=probed)

    @contextmanager
    def configured(self, wire: Wire) -> Iterator[None]:
        """The driver's XDP program stays on the interfaces when the process is killed."""
        try:
            yield
        finally:
            for port in wire.of(Interface.FORWARDER):
                ip("-n", port.namespace, "link", "set", "dev", port.name, "xdp", "off")
