# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces that the lab owns, and the interfaces in them.

Lifecycle: `Namespaces` makes some and removes them, with everything in them, when its context ends,
in whatever way. The next lab removes those of a killed lab before it makes its own: their names
hold the lab's pid and start time, and a lab locks each while it runs, which is visible in other
containers, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from linerate.host.errors import LinkError, MachineError, MissingError
from linerate.host.host import LOCAL, Host, InNamespace, inside
from linerate.host.locks import PATIENCE_S, hold, hold_by, is_held
from linerate.host.process import NAMESPACES, start_time

_PREFIX = "linerate"
_SIOCETHTOOL, _ETHTOOL_STSO, _ETHTOOL_SGRO = 0x8946, 0x1F, 0x2C
# Effective capabilities of the process, and the numbers of those that are needed.
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


@dataclass(frozen=True)
class Interface:
    """A kernel interface on a host (or in a network namespace), and its owner."""

    GENERATOR: ClassVar = "generator"
    FORWARDER: ClassVar = "forwarder"

    host: Host
    name: str
    end: str


def ip(*words: str, host: Host = LOCAL) -> str:
    """Run `ip` and return its output; raises `LinkError` with its error message."""
    return run(host, ("ip", *words))


def bridge(*words: str, host: Host = LOCAL) -> str:
    """Run `bridge` (of iproute2) and return its output, like `ip`."""
    return run(host, ("bridge", *words))


def run(host: Host, argv: Sequence[str], directory: Path | None = None) -> str:
    """Run a command and return its output.

    Raises `LinkError` with its error message, or if it takes more than ten seconds.
    """
    try:
        done = host.run(argv, directory=directory)
    except OSError as error:
        raise LinkError(f"{' '.join(argv)}: {error.strerror or error}") from error
    if done.exit_code:
        raise LinkError(f"{' '.join(argv)}: {done.errors.strip() or done.exit_code}")
    return done.output


def exists(host: Host, interface: str) -> bool:
    """Return True if the host has an interface of this name."""
    found = json.loads(ip("-json", "link", "show", host=host))
    return any(each["ifname"] == interface for each in found)


def is_up(interface: Interface) -> bool:
    """Return True if an interface and its peer are up."""
    return bool(_shown(interface)["operstate"] == "UP")


def mac(interface: Interface) -> str:
    return str(_shown(interface)["address"])


def _shown(interface: Interface) -> dict[str, Any]:
    told = ip("-json", "link", "show", "dev", interface.name, host=interface.host)
    (found,) = json.loads(told)
    return dict(found)


def prepare(
    host: Host = LOCAL, otherwise: str = "--link memif needs none, for programs on DPDK"
) -> None:
    """Raise an error if namespaces cannot be made here; `otherwise`: the hint of what to do
    instead.
    """
    if host.which("ip") is None:
        raise MissingError("ip is not installed", "make setup (Debian: iproute2)")
    status = host.read_text("/proc/self/status")
    capabilities = int(_CAPABILITIES.findall(status)[0], 16)
    missing = [name for name, bit in _NEEDED.items() if not capabilities >> bit & 1]
    if missing:
        raise MachineError(
            f"network namespaces and interfaces need the capabilities {' and '.join(missing)}",
            f"sudo; {otherwise}",
        )


def set_value(host: Host, path: str, text: str) -> str | None:
    """Set a value below /proc/sys/net or /sys/class/net: each network namespace has its own.

    Returns the previous value, or None if this kernel has no such value.
    """
    try:
        before = host.read_text(path).strip()
        host.set_value(path, text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LinkError(f"{path}: {error.strerror}") from error
    return before


def set_gro(namespace: InNamespace, interface: str, *, on: bool = True) -> None:
    """Switch generic receive offload of an interface on or off (ETHTOOL_SGRO)."""
    _set(namespace, interface, "GRO", _ETHTOOL_SGRO, on=on)


def clear_tso(namespace: InNamespace, interface: str) -> None:
    """Switch TCP segmentation offload of an interface off (ETHTOOL_STSO)."""
    _set(namespace, interface, "TSO", _ETHTOOL_STSO, on=False)


def _set(namespace: InNamespace, interface: str, what: str, command: int, *, on: bool) -> None:
    """Set a feature of an interface, by ioctl SIOCETHTOOL."""
    value = ctypes.create_string_buffer(struct.pack("II", command, on))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    try:
        with inside(namespace.namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked, _SIOCETHTOOL, request)
    except OSError as error:
        raise LinkError(f"{interface}: {what} cannot be set: {error.strerror}") from error


def stale() -> list[str]:
    """The names of namespaces of labs that no longer run, as they are."""
    found = []
    for path in _without_process():
        with contextlib.suppress(OSError):
            if not is_held(path):
                found.append(path.name)
    return found


def remove_stale() -> list[str]:
    """Remove namespaces of labs that no longer run; return their names."""
    removed = []
    deadline = time.monotonic() + PATIENCE_S
    for path in _without_process():
        # Its owner may be in another container, or remove it at any moment.
        if (lock := hold_by(deadline, path)) is None:
            continue
        try:
            ip("netns", "del", path.name)
            removed.append(path.name)
        except LinkError:
            pass
        finally:
            os.close(lock)
    return removed


def _without_process() -> Iterator[Path]:
    """The lab's namespaces whose process is not seen here."""
    for path in NAMESPACES.glob(f"{_PREFIX}-*"):
        with contextlib.suppress(ValueError):  # not ours
            pid, started = (int(part) for part in path.name.split("-")[1:3])
            if start_time(pid) != started:
                yield path


class Namespaces:
    """A set of namespaces, each known by the word it was requested with."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._made: list[str] = []
        self._locks: list[int] = []

    def name(self, word: str) -> str:
        return f"{_PREFIX}-{os.getpid()}-{start_time(os.getpid())}-{word}"

    def host(self, word: str) -> InNamespace:
        """Return the namespace as a host: start processes and set values in it."""
        return InNamespace(self.name(word))

    def __enter__(self) -> Namespaces:
        remove_stale()
        try:
            for word in self._words:
                name = self.name(word)
                if (NAMESPACES / name).exists():
                    raise LinkError(f"netns add {name}: it is there already")
                # Recorded before it is made: an interruption in between must not leave it behind.
                self._made.append(name)
                ip("netns", "add", name)
                if (lock := hold(NAMESPACES / name)) is None:
                    raise LinkError(f"netns add {name}: it was removed by another lab")
                self._locks.append(lock)
                ip("link", "set", "lo", "up", host=self.host(word))
                # The kernel's own frames (router solicitations) are none of an experiment's.
                self.write(word, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        except BaseException:
            self.close()
            raise
        return self

    def write(self, word: str, path: str, text: str) -> None:
        """Set a value below /proc/sys/net, or nothing if this kernel has none (without IPv6)."""
        set_value(self.host(word), path, text)

    def close(self) -> None:
        for name in reversed(self._made):
            with contextlib.suppress(LinkError):
                ip("netns", "del", name)
        self._made.clear()
        # Open, they would keep the namespaces.
        for lock in self._locks:
            os.close(lock)
        self._locks.clear()

    def __exit__(self, *_: object) -> None:
        self.close()
