# SPDX-License-Identifier: BSD-3-Clause
"""The inventory of everything that a lab makes or changes outside its processes.

A lab undoes all of it when it ends, in whatever way; after a SIGKILL the next lab does, whatever
its experiment. Each kind of object names its lab (by pid and start time) and is locked while that
lab runs, so that objects of a lab in another container are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from linerate.host.errors import LabError


@dataclass(frozen=True)
class Kind:
    """A kind of leftover. `remove`: the module and the function in it that removes leftovers of
    labs that no longer run, and returns their names. Imported when called, because it may be an
    experiment's.
    """

    name: str
    remove: str


# Kinds that may hold processes come first, because these use the others.
KINDS = (
    Kind(
        "control groups of tenants",
        "linerate.experiments.cloud.tenants.cgroups.cgroups:remove_all_stale",
    ),
    Kind("control groups of labs", "linerate.host.cores.weight:remove_stale"),
    Kind("run directories", "linerate.host.process:remove_stale"),
    Kind("network namespaces", "linerate.host.netns:remove_stale"),
    Kind("changed interfaces", "linerate.host.leftovers.interfaces:remove_stale"),
)


def sentence(removed: Mapping[str, Sequence[str]]) -> str:
    """Describe removed leftovers: `undone what labs that were killed had left: network namespaces
    a, b`.
    """
    told = "; ".join(f"{name} {', '.join(found)}" for name, found in removed.items())
    return f"undone what labs that were killed had left: {told}"


def remove() -> dict[str, list[str]]:
    """Remove the leftovers of killed labs; return them by kind. Leaves those that this user may not
    remove.
    """
    removed = {}
    for kind in KINDS:
        module, _, function = kind.remove.partition(":")
        try:
            found = [str(each) for each in getattr(import_module(module), function)()]
        except (LabError, OSError):
            continue
        if found:
            removed[kind.name] = found
    return removed
