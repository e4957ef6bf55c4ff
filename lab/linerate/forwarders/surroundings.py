# SPDX-License-Identifier: BSD-3-Clause
"""Everything around a forwarder that definitions refer to by name: settings of the kernel
(`configure`), and a program at the other end of the link (`companion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from linerate.forwarders.bridging import bridged
from linerate.forwarders.definition import Companion, Configure
from linerate.forwarders.routing import routed
from linerate.host import netns
from linerate.host.errors import LinkError, UsageError
from linerate.host.host import Host
from linerate.host.netns import Interface, Namespaces, ip
from linerate.host.places import rust_binary
from linerate.host.process import Command
from linerate.links import Wire
from linerate.links.eal import lcores

# The driver's name in a wire of kernel interfaces.
_INTERFACE = "net_af_packet"


def on_interfaces(name: str, driver: str, wire: Wire) -> Wire:
    """Return the same wire with devices of another driver on the kernel's interfaces."""
    if wire.pci or not all(vdev.startswith(_INTERFACE) for vdev in wire.vdevs):
        raise UsageError(
            f"--forwarders {name}: it forwards between network interfaces only",
            "--link veth, or --link ports with interfaces",
        )
    vdevs = (driver + vdev.removeprefix(_INTERFACE) for vdev in wire.vdevs)
    return replace(wire, vdevs=tuple(vdevs))


def two_ports(name: str, wire: Wire) -> tuple[Interface, Interface]:
    """Return the forwarder's two interfaces, to be configured as a pair."""
    ports = wire.of(Interface.FORWARDER)
    if not ports:
        why = "the lab sets the kernel up on interfaces in a namespace of its own only"
    elif len(ports) != 2:
        why = "it forwards from one port to the other, and this link has one"
    else:
        return ports[0], ports[1]
    raise UsageError(f"--forwarders {name}: {why}", "--link veth")


@contextmanager
def in_own_network(name: str, wire: Wire, word: str) -> Iterator[Wire]:
    """Move the forwarder's end of the wire into a new network namespace. Sockets by path, such as
    telemetry's and memif's, are reachable from there; interfaces are not.
    """
    if any("iface=" in vdev for vdev in wire.vdevs):
        raise UsageError(
            f'--forwarders {name}: network = "own" hides the interfaces of --link ports',
            'another link, or take network = "own" out of its definition',
        )
    with Namespaces((word,)) as made:
        yield replace(wire, host=made.host(word))


@contextmanager
def _detached(wire: Wire) -> Iterator[None]:
    """Remove XDP programs when the context ends: a driver's program stays on the interfaces when
    its process is killed.
    """
    try:
        yield
    finally:
        for port in wire.of(Interface.FORWARDER):
            ip("link", "set", "dev", port.name, "xdp", "off", host=port.host)


@contextmanager
def between(
    setup: Sequence[Sequence[str]], teardown: Sequence[Sequence[str]], host: Host, folder: Path
) -> Iterator[None]:
    """Run the commands of a definition before and after; all of `teardown`, even if one fails.

    Raises `LinkError` with the message of the first that failed.
    """
    try:
        for argv in setup:
            netns.run(host, argv, folder)
        yield
    except BaseException:
        for argv in teardown:
            with suppress(LinkError):
                netns.run(host, argv, folder)
        raise
    complaints = []
    for argv in teardown:
        try:
            netns.run(host, argv, folder)
        except LinkError as error:
            complaints.append(error)
    if complaints:
        raise complaints[0]


# Arguments: the forwarder's name, for errors, and its end of the link.
CONFIGURE: dict[Configure, Callable[[str, Wire], AbstractContextManager[None]]] = {
    "bridge": lambda name, wire: bridged(two_ports(name, wire)),
    "route": lambda name, wire: routed(two_ports(name, wire)),
    "detach-xdp": lambda _, wire: _detached(wire),
}


def companion_program() -> Path:
    """Return the program of every companion; raises `MissingError` with the command that builds
    it.
    """
    return rust_binary("xdp-fwd")


def _xdp_pass(name: str, cpu: int, prefix: str, wire: Wire) -> Command | None:
    """Return a program that passes all frames at the other end of a veth: a veth accepts frames of
    XDP_TX only if its peer has an XDP program, too. None if the generator has one, as with AF_XDP.
    """
    ports = wire.of(Interface.GENERATOR)
    if not ports:
        raise UsageError(
            f"--forwarders {name}: it needs a program at the generator's end, too", "--link veth"
        )
    if wire.sender_has_xdp:
        return None
    devices = [f"net_xdp{n},iface={port.name}" for n, port in enumerate(ports)]
    argv = [
        str(companion_program()), *lcores(cpu), "--file-prefix", prefix,
        *(word for device in devices for word in ("--vdev", device)),
        "--", "-p", f"{(1 << len(ports)) - 1:x}", "-q", str(len(ports)), "-T", "0",
        "--action", "pass",
    ]  # fmt: skip
    return Command("companion", tuple(argv), (cpu,))


# Arguments: the forwarder's name, for errors, and the place of the companion.
COMPANIONS: dict[Companion, Callable[[str, int, str, Wire], Command | None]] = {
    "xdp-pass": _xdp_pass
}
