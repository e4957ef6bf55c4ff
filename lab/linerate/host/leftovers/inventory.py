# SPDX-License-Identifier: BSD-3-Clause
"""The inventory of everything that a lab makes or changes outside its processes.

A lab undoes all of it when it ends, in whatever way; after a SIGKILL the next lab does, whatever
its experiment. Each kind of object names its lab (by pid and start time) and is locked while that
lab runs, so that objects of a lab in another container are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module

from linerate.host.errors import LabError


@dataclass(frozen=True)
class Kind:
    """`module` is imported when it is asked: it may be an experiment's. `left`: the function in it
    that lists what labs that no longer run left, and `remove` the one that undoes it, and tells
    what that was.
    """

    name: str
    module: str
    left: str = "stale"
    remove: str = "remove_stale"

    def call(self, function: str) -> list[str]:
        """What it lists, in words."""
        return [str(each) for each in getattr(import_module(self.module), function)()]


# Kinds that may hold processes come first, because these use the others.
KINDS = (
    Kind(
        "control groups of tenants",
        "linerate.experiments.cloud.tenants.cgroups.cgroups",
        "all_stale",
        "remove_all_stale",
    ),
    Kind("control groups of labs", "linerate.host.cores.weight"),
    Kind("run directories", "linerate.host.process"),
    Kind("network namespaces", "linerate.host.netns"),
    Kind("changed interfaces", "linerate.host.leftovers.interfaces"),
)


def sentence(removed: Mapping[str, Sequence[str]]) -> str:
    """Describe removed leftovers: `undone what labs that were killed had left: network namespaces
    a, b`.
    """
    told = "; ".join(f"{name} {', '.join(found)}" for name, found in removed.items())
    return f"undone what labs that were killed had left: {told}"


def left() -> dict[str, list[str]]:
    """What labs that were killed left, by kind; changes nothing."""
    return _by_kind(lambda kind: kind.call(kind.left))


def remove() -> dict[str, list[str]]:
    """Undo what labs that were killed left; returns it by kind. What this user may not stays."""
    return _by_kind(lambda kind: kind.call(kind.remove))


def _by_kind(ask: Callable[[Kind], list[str]]) -> dict[str, list[str]]:
    told = {}
    for kind in KINDS:
        with suppress(LabError, OSError):
            if found := ask(kind):
                told[kind.name] = found
    return told
