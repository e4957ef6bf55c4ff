# SPDX-License-Identifier: BSD-3-Clause
"""XDP programs that stayed on interfaces when a program on AF_XDP sockets was killed.

libxdp attaches its program for such sockets (DPDK's net_af_xdp has it do so) without a link that
would end with the process. The kernel then goes on running it, for nobody. It is not the lab's to
remove: another program may have put it there and may be about to come back.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linerate.host.errors import LinkError
from linerate.host.host import LOCAL
from linerate.host.netns import ip

# What libxdp and, before it, libbpf call the program for AF_XDP sockets.
_NAMES = ("xsk_def_prog", "xdp_sock_prog")
# XDP_ATTACHED_* of linux/if_link.h, in the words of `ip link set`. Without a mode the kernel takes
# the driver's, and leaves a generic program where it is.
_MODES = {1: "xdp", 2: "xdpgeneric", 3: "xdpoffload"}
_PROGRAM_ID = re.compile(r"^prog_id:\s*(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Left:
    """A program that no process has which can be seen. `number`: the kernel's id of it."""

    interface: str
    program: str
    number: int
    mode: str

    @property
    def command(self) -> str:
        """What removes it; as root."""
        return f"ip link set dev {self.interface} {self.mode} off"


def left() -> list[Left]:
    """Those on interfaces of this network namespace. None where nobody can say: without `ip`, and
    for users who cannot see what root's processes have open.
    """
    if LOCAL.which("ip") is None or os.geteuid() != 0:
        return []
    try:
        found = list(_for_sockets(json.loads(ip("-json", "link", "show"))))
    except LinkError:
        return []
    held = _held() if found else set()
    return [each for each in found if each.number not in held]


def _for_sockets(interfaces: Iterable[dict[str, Any]]) -> Iterator[Left]:
    """Programs for AF_XDP sockets, of what `ip -json link show` tells."""
    for each in interfaces:
        xdp = each.get("xdp", {})
        for attached in xdp.get("attached", [xdp]):
            program = attached.get("prog", {})
            mode = _MODES.get(attached.get("mode"))
            if mode and program.get("name") in _NAMES:
                yield Left(each["ifname"], program["name"], program["id"], mode)


def _held() -> set[int]:
    """The ids of the programs that processes have which can be seen from here: those of other
    containers cannot.
    """
    found: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        # It may end at any moment, or be a container's first, which others may not look at.
        with contextlib.suppress(OSError):
            for file in (process / "fdinfo").iterdir():
                with contextlib.suppress(OSError):
                    found.update(map(int, _PROGRAM_ID.findall(file.read_text())))
    return found
