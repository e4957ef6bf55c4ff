# SPDX-License-Identifier: BSD-3-Clause
"""Mounted control groups, and the group of this process. Reads only; any thread."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from linerate.host.cores import cgroup_files as files
from linerate.host.host import LOCAL, Host

_TYPES = {"cgroup": 1, "cgroup2": 2}
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mount of control groups. `path`: the mount point. `root`: the group visible there.
    `options`: the controllers of version 1.
    """

    version: int
    path: Path
    root: str
    options: frozenset[str]


def mounts(host: Host = LOCAL) -> list[Mount]:
    """Return all mounts of control groups, in the order of /proc/self/mountinfo."""
    found = []
    for line in host.read_text("/proc/self/mountinfo").splitlines():
        mount, _, rest = line.partition(" - ")
        fields, kinds = mount.split(), rest.split()
        if len(fields) < 6 or not kinds or kinds[0] not in _TYPES:
            continue
        path = Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields[4]))
        options = frozenset(kinds[2].split(",")) if len(kinds) > 2 else frozenset()
        found.append(Mount(_TYPES[kinds[0]], path, fields[3], options))
    return found


def has_cpu(mount: Mount, host: Host = LOCAL) -> bool:
    """Return True if this mount can limit CPU time. Version 2 has the controllers version 1 does
    not use.
    """
    if mount.version == 1:
        return "cpu" in mount.options
    return "cpu" in files.words(mount.path / "cgroup.controllers", host)


def own_directory(mount: Mount, host: Host = LOCAL) -> Path:
    """Return the directory of this process's own group, or the mount point if it is not below it.

    In a container without a cgroup namespace, a mount shows a part of the groups only.
    """
    for line in host.read_text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        named = set(filter(None, controllers.split(",")))
        # The line of version 2's single tree names no controllers.
        if (mount.version == 1) == bool(named) and named <= mount.options:
            inside = _relative(path, mount.root)
            directory = mount.path / inside if inside is not None else mount.path
            return directory if host.exists(directory) else mount.path
    return mount.path


def _relative(path: str, root: str) -> str | None:
    """Return the path of a group relative to another, or None if it is not below it."""
    parts, above = Path(path).parts, Path(root).parts
    if parts[: len(above)] != above or ".." in parts:
        return None
    return "/".join(parts[len(above) :])
