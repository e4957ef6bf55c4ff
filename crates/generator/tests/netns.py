# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces with a veth between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from linerate.host import netns
from linerate.host.errors import LabError
from linerate.host.host import inside
from linerate.host.netns import Namespaces, ip

__all__ = ["FAR", "NEAR", "counters", "inside", "ip", "veth"]

# `va` is in the first, `vb` in the second.
_OWN = Namespaces("ab")
NEAR, FAR = map(_OWN.name, "ab")


@contextmanager
def veth() -> Iterator[None]:
    """`va` near and `vb` far, both up, without IPv6's own frames; skips where this cannot be."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with _OWN:
        ip("link", "add", "va", "netns", NEAR, "type", "veth", "peer", "name", "vb", "netns", FAR)
        for namespace, interface in ((NEAR, "va"), (FAR, "vb")):
            ip("-n", namespace, "link", "set", interface, "up")
        yield


def counters(namespace: str, interface: str) -> dict[str, dict[str, int]]:
    """What the kernel counted at an interface, by direction (`rx`, `tx`)."""
    (found,) = json.loads(ip("-n", namespace, "-s", "-j", "link", "show", "dev", interface))
    return dict(found["stats64"])
