# SPDX-License-Identifier: BSD-3-Clause
"""Our forwarders on the kernel's own ways to packets, built by `make build`. They use no DPDK and
take l2fwd's command line, so that a wire's DPDK devices are theirs too."""

from __future__ import annotations

from linerate.eal import Memory, one_core
from linerate.errors import UsageError
from linerate.forwarders.base import Forwarder, l2fwd_arguments
from linerate.links import Wire
from linerate.places import rust_binary
from linerate.process import Command


class AfPacketFwd(Forwarder):
    """`io`: read-write, one call a frame; mmsg, one a burst; mmap, rings shared with the kernel."""

    language = "Rust"
    # Its own figures: there is no DPDK for the probe to look at.
    polling = "/linerate/polling"

    def __init__(self, io: str) -> None:
        self.io = io
        self.name = f"af-packet-{io}"

    def prepare(self) -> None:
        rust_binary("af-packet-fwd")

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        for vdev in wire.vdevs:
            if not vdev.startswith("net_af_packet"):
                raise UsageError(
                    f"--forwarders {self.name}: it forwards between network interfaces only",
                    "--link veth, or --link ports with interfaces",
                )
        vdevs = [word for vdev in wire.vdevs for word in ("--vdev", vdev)]
        argv = [
            str(rust_binary("af-packet-fwd")), *one_core(cpu), "--file-prefix", prefix, *vdevs,
            "--", *l2fwd_arguments(wire.ports), "--io", self.io,
        ]  # fmt: skip
        return Command("forwarder", tuple(argv), (cpu,), namespace=wire.namespace)
