# SPDX-License-Identifier: BSD-3-Clause
"""A Linux bridge between the two ports of a veth link."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from linerate.host.netns import Interface, bridge, ip
from linerate.links import flows

_BRIDGE = "bridge"


@contextmanager
def bridged(ports: tuple[Interface, Interface]) -> Iterator[None]:
    """Make a bridge without a spanning tree, and remove it when the context ends.

    Its forwarding table has the generator's addresses from the start, as if it had learnt them.
    """
    host = ports[0].host
    ip(
        "link", "add", _BRIDGE, "type", "bridge", "stp_state", "0",
        "forward_delay", "0", "mcast_snooping", "0", host=host,
    )  # fmt: skip
    try:
        for port in ports:
            ip("link", "set", port.name, "master", _BRIDGE, host=host)
        for number, other in enumerate(reversed(ports)):
            # Frames to this port's address leave by the other.
            mac = flows.forwarder_mac(number)
            bridge("fdb", "add", mac, "dev", other.name, "master", "static", host=host)
        ip("link", "set", _BRIDGE, "up", host=host)
        yield
    finally:
        # Deleting the bridge frees its ports.
        ip("link", "del", _BRIDGE, host=host)
