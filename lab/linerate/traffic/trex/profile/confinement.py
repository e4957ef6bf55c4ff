# SPDX-License-Identifier: BSD-3-Clause
"""What a profile may do: read Python's files and those beside it, and compute.

Two steps. `leave_namespaces` moves a process that is about to fork: what it forks has no network
and sees no other process. `confine` takes the rest from the forked one: it cannot write files,
open connections, start processes, or use more time and memory than given here. As root it becomes
nobody. Each step that this system does not have is named, and the others hold all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
import sys
from pathlib import Path

CPU_S = 30
MEMORY = 1 << 30
OPEN_FILES = 64
NOBODY = 65534

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWIPC, _CLONE_NEWUSER = 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
# Numbers of system calls, which these two architectures share.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_CAPABILITY_VERSION_3 = 0x20080522
# linux/landlock.h: rights to execute, read a file and list a directory; the number of rights that
# each version of the interface has.
_EXECUTE, _READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 0, 1 << 2, 1 << 3, 1 << 1
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_LATEST_RIGHTS = 16
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
_RULE_PATH_BENEATH = 1


def leave_namespaces() -> list[str]:
    """Give what is forked next namespaces of its own; returns what this system does not allow."""
    own = _CLONE_NEWNET | _CLONE_NEWPID | _CLONE_NEWIPC
    if os.geteuid() == 0 and not _LIBC.unshare(own):
        return []
    # A user without privileges may have them in a user namespace.
    if not _LIBC.unshare(_CLONE_NEWUSER | own):
        return []
    return ["namespaces without network and other processes"]


def restrict_files(readable: list[Path]) -> list[str]:
    """By Landlock: reading below these paths, and nothing else. Returns what is not possible."""
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    version = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return ["limits on reading files (Landlock)"]
    rights = (1 << _RIGHTS.get(version, _LATEST_RIGHTS)) - 1
    attributes = struct.pack(
        "=QQQ",
        rights,
        _BIND_TCP | _CONNECT_TCP if version >= 4 else 0,
        _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0,
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, attributes, size, 0)
    if rules < 0:
        return ["limits on reading files (Landlock)"]
    try:
        _allow(rules, Path("/dev/null"), _READ_FILE | _WRITE_FILE)
        for path in readable:
            _allow(rules, path, _EXECUTE | _READ_FILE | _READ_DIR)
        if _LIBC.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0):
            return ["limits on reading files (Landlock)"]
    finally:
        os.close(rules)
    return []


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= ~_READ_DIR
        rule = struct.pack("=Qi", rights, number)
        _LIBC.syscall(_LANDLOCK_ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(number)


def python_files() -> list[Path]:
    """Where Python and its packages are."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(None, sys.path)}
    return [Path(each) for each in sorted(found)] + [
        Path(each) for each in ("/usr", "/lib", "/lib64", "/etc", "/dev/urandom", "/proc/net")
    ]


def keep_reachable() -> None:
    """Let Python's files be imported by nobody, too, where they lie in a directory of root's.

    They are reached by descriptors that are opened now. For whoever is not root nothing changes.
    """
    if os.geteuid() != 0:
        return
    moved: dict[str, str] = {}
    for path in dict.fromkeys(sys.path):
        with contextlib.suppress(OSError):
            moved[path] = f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY)}"
    # Packages that are imported already look for their modules where they were found.
    ordered = sorted(moved, key=len, reverse=True)
    for module in list(sys.modules.values()):
        found = getattr(module, "__path__", None)
        if isinstance(found, list):
            module.__path__ = [_moved(each, ordered, moved) for each in found]
    sys.path[:] = [moved.get(path, path) for path in sys.path]
    sys.path_importer_cache.clear()


def _moved(path: str, ordered: list[str], moved: dict[str, str]) -> str:
    for each in ordered:
        if each and (path == each or path.startswith(f"{each}/")):
            return moved[each] + path[len(each) :]
    return path


def confine() -> bool:
    """Take what is left; returns whether the process has become nobody.

    Raises `OSError` or `ValueError` where the system refuses.
    """
    for what, most in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(what)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (allowed, allowed))
    is_root = os.geteuid() == 0
    if is_root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    # In a user namespace of its own it has all capabilities there.
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if _LIBC.capset(header, struct.pack("=6I", *[0] * 6)):
        raise OSError(ctypes.get_errno(), "capset")
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    # A change of user cleared it.
    _LIBC.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    return is_root
