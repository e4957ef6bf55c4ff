# SPDX-License-Identifier: BSD-3-Clause
"""Links carry frames between the generator and the forwarder.

A new link is one small class here and one line in `LINKS`.
"""

from __future__ import annotations

from collections.abc import Callable

from linerate.host.errors import UsageError, look_up
from linerate.links.base import KernelThread, Link, LinkContext, Wire
from linerate.links.memif import Memif
from linerate.links.nearfree import Frames, NearFree, RoutedNearFree
from linerate.links.null import Null
from linerate.links.ports import Ports
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
            Frames(1),
            Frames(2),
            Memif(1),
            Memif(2),
            Veth(1),
            Veth(2),
        ),
        *(Veth(1, af_xdp=True), Veth(2, af_xdp=True), Tap(1), Tap(2), Ports()),
    )
}


# Returns a link by its name: `link`, or a run's own function, which knows the run's devices.
FindLink = Callable[[str], Link]
# Separates a link's name from that of its tables.
TABLES = ":"


def base_name(name: str) -> str:
    """Return a link's name without the name of its tables."""
    return name.partition(TABLES)[0]


def link(name: str) -> Link:
    """Return the link of that name; a routed link has a variant for each set of tables:
    `LINK:TABLES`.

    The link `ports` has no devices here: those come from a run's options and design
    (`linerate.runs.options.Common.link`).
    """
    base, _, tables = name.partition(TABLES)
    found = look_up(LINKS, base, "--link", "link")
    if not tables:
        return found
    if not isinstance(found, RoutedNearFree):
        raise UsageError(f"--link {name}: {base} has no frames for tables")
    return found.with_tables(Tables.named(tables))


__all__ = [
    "LINKS", "TABLES", "FindLink", "Frames", "KernelThread", "Link", "LinkContext", "Ports",
    "RoutedNearFree", "Wire", "base_name", "link",
]  # fmt: skip
