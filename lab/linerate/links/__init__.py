# SPDX-License-Identifier: BSD-3-Clause
"""Links: what carries frames between the generator and the forwarder.

A new link is one small class here and one line in `LINKS`.
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.host.errors import UsageError, look_up
from linerate.links.base import KernelThread, Link, LinkContext, Wire
from linerate.links.memif import Memif
from linerate.links.nearfree import NearFree, RoutedNearFree
from linerate.links.null import Null
from linerate.links.ports import FORWARDER, GENERATOR, Ports
from linerate.links.tables import Tables
from linerate.links.tap import Tap
from linerate.links.veth import Veth

LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        *(
            Null(1),
            Null(2),
            NearFree(2),
            RoutedNearFree(1),
            RoutedNearFree(2),
            Memif(1),
            Memif(2),
            Veth(1),
            Veth(2),
        ),
        *(Veth(1, af_xdp=True), Veth(2, af_xdp=True), Tap(1), Tap(2), Ports()),
    )
}


# Between a link's name and that of its tables.
TABLES = ":"


def base_name(name: str) -> str:
    """A link's name without that of its tables."""
    return name.partition(TABLES)[0]


def link(name: str) -> Link:
    """The link of that name; those that route have a variety for all tables: `LINK:TABLES`."""
    base, _, tables = name.partition(TABLES)
    found = look_up(LINKS, base, "--link", "link")
    if not tables:
        return found
    if not isinstance(found, RoutedNearFree):
        raise UsageError(f"--link {name}: {base} has no frames for tables")
    return found.with_tables(Tables.named(tables))


def use_ports(
    links: Sequence[str],
    generator: Sequence[str],
    forwarder: Sequence[str],
    *,
    foreign: bool = False,
) -> None:
    """Make the link `ports` that of these devices, for this process; `links`: those to run on.

    `foreign`: the generator is not the lab's.
    """
    if foreign and list(links) != [Ports.name]:
        raise UsageError(
            "--generator: the lab connects no other generator than its own with a link that it "
            "makes",
            f"--link {Ports.name} with {GENERATOR} LOCATION and {FORWARDER} LOCATION",
        )
    if Ports.name not in links:
        for option, given in ((GENERATOR, generator), (FORWARDER, forwarder)):
            if given:
                raise UsageError(
                    f"{option} {given[0]}: only for --link {Ports.name}", f"--link {Ports.name}"
                )
        return
    chosen = Ports(generator, forwarder, foreign=foreign)
    chosen.prepare()
    LINKS[chosen.name] = chosen


def remember_ports(generator: Sequence[str], forwarder: Sequence[str]) -> None:
    """Make the link `ports` that of a run which is told of, for this process."""
    if forwarder:
        LINKS[Ports.name] = Ports.remembered(generator, forwarder)


__all__ = [
    "LINKS", "KernelThread", "Link", "LinkContext", "RoutedNearFree", "Wire", "base_name",
    "link", "remember_ports", "use_ports",
]  # fmt: skip
