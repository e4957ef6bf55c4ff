# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces that the lab owns, and the interfaces in them.

Lifecycle: `Namespaces` makes some and removes them, with all that is in them, when its context
ends, however it ends. Those of a lab that was killed are removed when the next one makes its own:
their names tell the lab's pid and start time, and a lab holds a lock on each for as long as it
runs, which is seen from other containers, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from linerate.host.errors import LinkError, MachineError, MissingError
from linerate.host.locks import PATIENCE_S, hold, hold_by
from linerate.host.process import CLONE_NEWNET, NAMESPACES, start_time

_PREFIX = "linerate"
_TIMEOUT_S = 10.0
_SIOCETHTOOL, _ETHTOOL_STSO, _ETHTOOL_SGRO = 0x8946, 0x1F, 0x2C
# Effective capabilities of the process, and the numbers of those that are needed.
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Interface:
    """An interface of the kernel, in a network namespace by its name; whose it is."""

    GENERATOR: ClassVar = "generator"
    FORWARDER: ClassVar = "forwarder"

    namespace: str
    name: str
    end: str


def ip(*words: str) -> str:
    """What `ip` prints; raises `LinkError` with what it complained of."""
    return _told("ip", *words)


def bridge(*words: str) -> str:
    """The same of `bridge`, which is of iproute2, too."""
    return _told("bridge", *words)


def run(namespace: str | None, argv: Sequence[str], directory: Path) -> str:
    """What a command prints that runs in this namespace (None: the lab's) and directory.

    Raises `LinkError` with what it complained of, or if it takes more than ten seconds.
    """
    inside = ("ip", "netns", "exec", namespace) if namespace else ()
    return _told(*inside, *argv, directory=directory)


def _told(*argv: str, directory: Path | None = None) -> str:
    try:
        # Ctrl-C in a terminal is for the lab alone: what removes things is to come to its end.
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            process_group=0,
            cwd=directory,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LinkError(f"{' '.join(argv)}: {error}") from error
    if done.returncode:
        raise LinkError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def exists(namespace: str | None, interface: str) -> bool:
    """Whether there is an interface of this name; namespace None: in the lab's."""
    where = ("-n", namespace) if namespace else ()
    found = json.loads(ip(*where, "-json", "link", "show"))
    return any(each["ifname"] == interface for each in found)


def is_up(namespace: str, interface: str) -> bool:
    """Whether an interface and its other end are."""
    (found,) = json.loads(ip("-n", namespace, "-json", "link", "show", "dev", interface))
    return bool(found["operstate"] == "UP")


def mac(namespace: str, interface: str) -> str:
    (found,) = json.loads(ip("-n", namespace, "-json", "link", "show", "dev", interface))
    return str(found["address"])


def prepare() -> None:
    """Raise what is missing to make namespaces here."""
    if shutil.which("ip") is None:
        raise MissingError("ip is not installed", "make setup (Debian: iproute2)")
    capabilities = int(_CAPABILITIES.findall(Path("/proc/self/status").read_text())[0], 16)
    missing = [name for name, bit in _NEEDED.items() if not capabilities >> bit & 1]
    if missing:
        raise MachineError(
            f"network namespaces and interfaces need the capabilities {' and '.join(missing)}",
            "sudo, or --link memif",
        )


def enter(name: str) -> None:
    """Move the calling thread into a namespace; what it starts begins there."""
    with (NAMESPACES / name).open("rb") as namespace:
        if _LIBC.setns(namespace.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """The calling thread in a namespace for a while."""
    with Path("/proc/thread-self/ns/net").open("rb") as home:
        enter(name)
        try:
            yield
        finally:
            if _LIBC.setns(home.fileno(), CLONE_NEWNET):
                # In a foreign namespace nothing that follows would be what it says.
                os._exit(1)


def set_value(namespace: str, path: str, text: str) -> str | None:
    """Set a value below /proc/sys/net, which belongs to the namespace of who opens it.

    Returns what it was; None: this kernel has no such value.
    """
    try:
        with inside(namespace):
            before = Path(path).read_text().strip()
            Path(path).write_text(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LinkError(f"{path}: {error.strerror}") from error
    return before


def set_gro(namespace: str, interface: str, *, on: bool = True) -> None:
    """Let an interface put received segments together (ETHTOOL_SGRO)."""
    _set(namespace, interface, "GRO", _ETHTOOL_SGRO, on=on)


def clear_tso(namespace: str, interface: str) -> None:
    """Let an interface send no segments that others are to cut (ETHTOOL_STSO)."""
    _set(namespace, interface, "TSO", _ETHTOOL_STSO, on=False)


def _set(namespace: str, interface: str, what: str, command: int, *, on: bool) -> None:
    """A feature of an interface, by ioctl SIOCETHTOOL."""
    value = ctypes.create_string_buffer(struct.pack("II", command, on))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    try:
        with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked, _SIOCETHTOOL, request)
    except OSError as error:
        raise LinkError(f"{interface}: {what} cannot be set: {error.strerror}") from error


def remove_stale() -> list[str]:
    """Remove namespaces of labs that no longer run; returns their names."""
    removed = []
    deadline = time.monotonic() + PATIENCE_S
    for path in NAMESPACES.glob(f"{_PREFIX}-*"):
        try:
            pid, started = (int(part) for part in path.name.split("-")[1:3])
        except ValueError:  # not ours
            continue
        # Its owner may be in another container, or remove it at any moment.
        if start_time(pid) == started or (lock := hold_by(deadline, path)) is None:
            continue
        try:
            ip("netns", "del", path.name)
            removed.append(path.name)
        except LinkError:
            pass
        finally:
            os.close(lock)
    return removed


class Namespaces:
    """Some namespaces, by the words that they were asked for with."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self._made: list[str] = []
        self._locks: list[int] = []

    def name(self, word: str) -> str:
        return f"{_PREFIX}-{os.getpid()}-{start_time(os.getpid())}-{word}"

    def __enter__(self) -> Namespaces:
        remove_stale()
        try:
            for word in self._words:
                name = self.name(word)
                if (NAMESPACES / name).exists():
                    raise LinkError(f"netns add {name}: it is there already")
                # Before it is made: an interruption in between must not leave it.
                self._made.append(name)
                ip("netns", "add", name)
                if (lock := hold(NAMESPACES / name)) is None:
                    raise LinkError(f"netns add {name}: it was removed by another lab")
                self._locks.append(lock)
                ip("-n", name, "link", "set", "lo", "up")
                # The kernel's own frames (router solicitations) are none of an experiment's.
                self.write(word, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        except BaseException:
            self.close()
            raise
        return self

    def write(self, word: str, path: str, text: str) -> None:
        """Set a value below /proc/sys/net; a kernel without IPv6 has none to be quiet about."""
        set_value(self.name(word), path, text)

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
