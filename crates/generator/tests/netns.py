# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces with a veth between them."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import TIMEOUT_S

# `va` is in the first, `vb` in the second.
NEAR, FAR = (f"lrt{os.getpid()}{end}" for end in "ab")


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread, and what it starts, in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (
        Path("/proc/thread-self/ns/net").open() as home,
        Path(f"/run/netns/{namespace}").open() as there,
    ):
        assert libc.setns(there.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), 0) == 0, os.strerror(ctypes.get_errno())


@contextmanager
def veth() -> Iterator[None]:
    """`va` near and `vb` far, both up, without IPv6's own frames; skips where this cannot be."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    try:
        for namespace in (NEAR, FAR):
            try:
                ip("netns", "add", namespace)
            except (AssertionError, FileNotFoundError) as error:
                pytest.skip(f"no network namespace can be made here: {error}")
        ip("link", "add", "va", "netns", NEAR, "type", "veth", "peer", "name", "vb", "netns", FAR)
        for namespace, interface in ((NEAR, "va"), (FAR, "vb")):
            off = f"net.ipv6.conf.{interface}.disable_ipv6=1"
            ip("netns", "exec", namespace, "sysctl", "-qw", off)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", interface, "up")
        yield
    finally:
        for namespace in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def counters(namespace: str, interface: str) -> dict[str, dict[str, int]]:
    """What the kernel counted at an interface, by direction (`rx`, `tx`)."""
    (found,) = json.loads(ip("-n", namespace, "-s", "-j", "link", "show", "dev", interface))
    return dict(found["stats64"])
