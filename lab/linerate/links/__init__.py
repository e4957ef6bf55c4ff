# SPDX-License-Identifier: BSD-3-Clause
"""Links: what carries frames between the generator and the forwarder.

A new link is one small class here and one line in `LINKS`.
"""

from __future__ import annotations

from linerate.errors import look_up
from linerate.links.base import Link, LinkContext, Wire
from linerate.links.memif import Memif
from linerate.links.nearfree import NearFree
from linerate.links.null import Null

LINKS: dict[str, Link] = {
    link.name: link for link in (Null(1), Null(2), NearFree(2), Memif(1), Memif(2))
}


def link(name: str) -> Link:
    return look_up(LINKS, name, "--link", "link")


__all__ = ["LINKS", "Link", "LinkContext", "Wire", "link"]
