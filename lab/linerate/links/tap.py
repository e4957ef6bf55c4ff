# SPDX-License-Identifier: BSD-3-Clause
"""tap: kernel interfaces whose other end is a program, DPDK's net_tap in the forwarder.

The lab makes the interfaces, in a network namespace of its own, so that they stay when a trial's
forwarder ends; the generator sends on them by packet sockets. No kernel thread is in between: the
writer pays. A frame of the generator goes into the interface's queue on the generator's core, and
the forwarder reads it from there, one system call per frame; a frame that the forwarder writes is
received by the kernel within that call, up to the generator's socket, on the forwarder's core. The
threads that net_tap's signals wake run there, too: one signal for each frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linerate.host import netns
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL
from linerate.host.netns import Interface, Namespaces, ip
from linerate.links.base import Link, LinkContext, Wire, numbered

_WORD = "tap"
# Without the FCS, which these interfaces do not have.
_MTU = 1500

TUN = Path("/dev/net/tun")


class Tap(Link):
    """One interface for each port."""

    has_generator = True
    kernel_generator = True

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.packet_sender = ports == 1
        self.name = "tap" if ports == 2 else f"tap{ports}"
        self.description = (
            f"{ports} tap interface{'s' if ports > 1 else ''} of the kernel, with DPDK's net_tap "
            "in the forwarder: one system call for each frame; the writer's core does the work"
        )

    def prepare(self) -> None:
        netns.prepare()
        if why := LOCAL.obstacle(TUN):
            raise MachineError(
                f"{TUN}: {why}; tap interfaces are made there",
                "modprobe tun, in a container --device /dev/net/tun; or --link veth",
            )

    @contextmanager
    def open(self, context: LinkContext) -> Iterator[Wire]:
        word = numbered(_WORD, context.number)
        with Namespaces((word,)) as made:
            host = made.host(word)
            names = [f"tap{number}" for number in range(self.ports)]
            for name in names:
                # net_tap asks for several queues, and for an interface that is there it must.
                ip("tuntap", "add", "dev", name, "mode", "tap", "multi_queue", host=host)
                ip("link", "set", name, "mtu", str(_MTU), "up", host=host)
            yield Wire(
                vdevs=tuple(f"net_tap{n},iface={name}" for n, name in enumerate(names)),
                locations=tuple(f"af_packet:{name}" for name in names),
                host=host,
                sender_host=host,
                # Frames that they count as sent were read by the forwarder, received ones were
                # written by it.
                interfaces=tuple(Interface(host, name, Interface.GENERATOR) for name in names),
            )
