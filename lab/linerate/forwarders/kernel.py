# SPDX-License-Identifier: BSD-3-Clause
"""Our forwarders on the kernel's own ways to packets, built by `make build`. They use no DPDK and
take l2fwd's command line, with devices of their own on the interfaces of the wire."""

from __future__ import annotations

from dataclasses import replace

from linerate.eal import Memory, one_core
from linerate.errors import UsageError
from linerate.forwarders.base import Forwarder, l2fwd_arguments
from linerate.links import Wire
from linerate.places import rust_binary
from linerate.process import Command

# What a wire of the kernel's interfaces calls its devices.
_WIRE = "net_af_packet"


class KernelForwarder(Forwarder):
    """`program` with devices `driver`, and `options` beside l2fwd's."""

    language = "Rust"
    # Its own figures: there is no DPDK for the probe to look at.
    polling = "/linerate/polling"
    spans: str | None = "/linerate/latency"
    interfaces_only = True

    def __init__(self, name: str, program: str, driver: str, *options: str) -> None:
        self.name = name
        self._program = program
        self._driver = driver
        self._options = options

    def measuring_spans(self, command: Command, one_in: int) -> Command:
        return replace(command, argv=(*command.argv, "--spans", str(one_in)))

    def prepare(self) -> None:
        rust_binary(self._program)

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        for vdev in wire.vdevs:
            if not vdev.startswith(_WIRE):
                raise UsageError(
                    f"--forwarders {self.name}: it forwards between network interfaces only",
                    "--link veth, or --link ports with interfaces",
                )
        vdevs = [
            word
            for vdev in wire.vdevs
            for word in ("--vdev", self._driver + vdev.removeprefix(_WIRE))
        ]
        argv = [
            str(rust_binary(self._program)), *one_core(cpu), "--file-prefix", prefix, *vdevs,
            "--", *l2fwd_arguments(wire.ports), *self._options,
        ]  # fmt: skip
        return Command("forwarder", tuple(argv), (cpu,), namespace=wire.namespace)


class XdpForwarder(KernelForwarder):
    """The kernel forwards, and the program only watches."""

    spans = None


KERNEL_FORWARDERS = (
    # One call a frame; one a burst; rings shared with the kernel.
    *(
        KernelForwarder(f"af-packet-{io}", "af-packet-fwd", _WIRE, "--io", io)
        for io in ("read-write", "mmsg", "mmap")
    ),
    # Waiting for frames, or asking for them all the time.
    KernelForwarder("af-xdp", "af-xdp-fwd", "net_af_xdp"),
    KernelForwarder("af-xdp-spin", "af-xdp-fwd", "net_af_xdp", "--idle", "spin"),
    # The kernel forwards alone, in the driver of the veth or in its stack.
    XdpForwarder("xdp-redirect", "xdp-fwd", "net_xdp"),
    XdpForwarder("xdp-redirect-generic", "xdp-fwd", "net_xdp", "--mode", "generic"),
)
