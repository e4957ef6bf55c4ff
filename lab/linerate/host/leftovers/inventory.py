# SPDX-License-Identifier: BSD-3-Clause
"""The inventory of what a lab makes or changes outside its processes.

A lab undoes all of it when it ends, however it ends; after a SIGKILL the next lab does, whatever
that one is for. Each kind tells by itself which lab it is of (by pid and start time) and is held by
a lock for as long as that lab runs, so that nothing of a lab in another container is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from linerate.host.errors import LabError


@dataclass(frozen=True)
class Kind:
    """`remove`: the module and the function in it that undoes what labs that no longer run left,
    and tells what that was. It is imported when it is called: it may be an experiment's.
    """

    name: str
    remove: str


# First what may hold processes that use the rest.
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
    """`undone what labs that were killed had left: network namespaces a, b`."""
    told = "; ".join(f"{name} {', '.join(found)}" for name, found in removed.items())
    return f"undone what labs that were killed had left: {told}"


def remove() -> dict[str, list[str]]:
    """Undo what labs that were killed left; returns it by kind. What this user may not stays."""
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
