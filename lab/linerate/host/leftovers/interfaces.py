# SPDX-License-Identifier: BSD-3-Clause
"""Restore the changes that programs make to interfaces that the lab does not own.

DPDK's net_af_packet and net_af_xdp make an interface promiscuous by a flag that stays when they end
(PROMISC); programs can set its MTU; and net_af_xdp's XDP program stays when its process is killed.

Lifecycle: `kept` saves the state of the interfaces in a file beside the run directories, which the
lab locks, and restores them when its context ends. If the lab is killed, the next one does it
(`remove_stale`): it reads only files of its own user, and changes only interfaces of the network
namespace and the boot of the machine recorded in the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linerate.host.errors import LinkError
from linerate.host.host import LOCAL
from linerate.host.locks import hold
from linerate.host.netns import ip
from linerate.host.process import base_directory, start_time

_PREFIX = "linerate-interfaces"
# Pid and start time of the lab, and the number of an interface.
_NAME = re.compile(r"-(\d+)-(\d+)-\d+")
_BOOT = "/proc/sys/kernel/random/boot_id"
# A larger file is not ours.
_MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class _State:
    """The state of an interface. `promiscuous`: its flag. `mtu`: in bytes. `xdp`: it has an XDP
    program.
    """

    index: int
    name: str
    promiscuous: bool
    mtu: int
    xdp: bool

    @classmethod
    def of(cls, shown: dict[str, Any]) -> _State:
        """Return the state from one entry of `ip -json link show`."""
        return cls(
            int(shown["ifindex"]), str(shown["ifname"]), "PROMISC" in shown["flags"],
            int(shown["mtu"]), "xdp" in shown,
        )  # fmt: skip

    def restore(self, now: _State) -> None:
        """Undo the differences between `now` and this state."""
        wanted: list[tuple[bool, str, str]] = [
            (self.promiscuous != now.promiscuous, "promisc", "on" if self.promiscuous else "off"),
            (self.mtu != now.mtu, "mtu", str(self.mtu)),
            # A program that was there before is not ours to remove.
            (now.xdp and not self.xdp, "xdp", "off"),
        ]
        for differs, what, value in wanted:
            if differs:
                # A user that may not change it cannot have changed it.
                with suppress(LinkError):
                    ip("link", "set", "dev", self.name, what, value)


@contextmanager
def kept(names: Sequence[str]) -> Iterator[None]:
    """Restore interfaces of this network namespace when the context ends, even after a kill."""
    asked = names and LOCAL.which("ip") is not None
    before = [each for each in _now() if each.name in names] if asked else []
    if not before:
        yield
        return
    path = base_directory() / f"{_stem()}-{os.getpid()}-{start_time(os.getpid())}-{before[0].index}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with contextlib.ExitStack() as opened:
        file = opened.enter_context(os.fdopen(os.open(path, flags, 0o600), "w"))
        opened.callback(path.unlink, missing_ok=True)
        # There is nothing to undo before the file is locked.
        lock = hold(path)
        if lock is not None:
            opened.callback(os.close, lock)
        file.write(json.dumps({**_here(), "interfaces": [asdict(each) for each in before]}))
        file.flush()
        opened.callback(_restore, before)
        yield


def stale() -> list[str]:
    """The names of interfaces that labs which no longer run left changed, as they are."""
    found: list[str] = []
    for path in _without_process():
        with suppress(OSError, LinkError):
            if (lock := hold(path, os.O_NONBLOCK, shared=True)) is not None:
                try:
                    found += [each.name for each, _ in _changed(_kept_in(lock) or ())]
                finally:
                    os.close(lock)
    return found


def remove_stale() -> list[str]:
    """Restore the interfaces that killed labs left changed; return their names."""
    restored: list[str] = []
    for path in _without_process():
        # Its owner may be in another container, or remove it at any moment.
        with suppress(OSError):
            if (lock := hold(path, os.O_NONBLOCK)) is not None:
                try:
                    before = _kept_in(lock)
                    if before is not None:
                        restored += _restore(before)
                        path.unlink()
                finally:
                    os.close(lock)
    return restored


def _without_process() -> Iterator[Path]:
    """The files of this user's labs whose process is not seen here."""
    for path in base_directory().glob(f"{_stem()}-*"):
        named = _NAME.fullmatch(path.name.removeprefix(_stem()))
        if named and start_time(int(named[1])) != int(named[2]):
            yield path


def _kept_in(lock: int) -> list[_State] | None:
    """The interfaces in the file that is open as `lock`; none where nothing of it is to be undone.
    None: it is another's, or of another network namespace.
    """
    found = os.fstat(lock)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        return None
    # Half a file is of a lab that was killed before it changed anything.
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(os.pread(lock, _MOST_BYTES, 0))
        here = _here()
        # Nothing outlives a start of the machine.
        if told["boot"] == here["boot"]:
            if told["namespace"] != here["namespace"]:
                return None
            return [_State(**each) for each in told["interfaces"]]
    return []


def _changed(before: Sequence[_State]) -> list[tuple[_State, _State]]:
    """Those that are not as they were, with how they are now."""
    now = {(each.index, each.name): each for each in _now()} if before else {}
    pairs = [(each, now.get((each.index, each.name))) for each in before]
    return [(each, found) for each, found in pairs if found is not None and found != each]


def _restore(before: Sequence[_State]) -> list[str]:
    """Restore interfaces; return the names of those that had been changed."""
    try:
        changed = _changed(before)
    except LinkError:
        return []
    for each, found in changed:
        each.restore(found)
    return [each.name for each, _ in changed]


def _now() -> list[_State]:
    shown = json.loads(ip("-json", "link", "show"))
    return [_State.of(each) for each in shown]


def _stem() -> str:
    return f"{_PREFIX}-{os.getuid()}"


def _here() -> dict[str, str]:
    """Identify this boot of the machine and this network namespace."""
    return {
        "boot": LOCAL.read_text(_BOOT).strip(),
        "namespace": str(Path("/proc/thread-self/ns/net").stat().st_ino),
    }
