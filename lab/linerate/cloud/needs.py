# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a design needs of the machine, looked for before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from linerate import netns
from linerate.cloud.levels import Place
from linerate.errors import LabError, MissingError
from linerate.tenants import cgroups, container, vm
from linerate.tenants.base import Kind, Load


def missing(places: Sequence[Place]) -> list[str]:
    """Every reason why this machine cannot run these cells, each once; none: it can."""
    reasons = list(cgroups.missing())
    try:
        netns.prepare()
    except LabError as error:
        reasons.append(error.message)
    asked = {(place.cell.kind, place.cell.load) for place in places if place.cell.tenants}
    for kind, load in sorted(asked):
        of = vm.missing if Kind(kind) == Kind.VM else container.missing
        reasons += of(Load(load))
    return list(dict.fromkeys(reasons))


def check(places: Sequence[Place]) -> None:
    if reasons := missing(places):
        told = "".join(f"\n  - {reason}" for reason in reasons)
        raise MissingError(
            f"this machine cannot run the tenants of this design:{told}",
            "as root: scripts/setup-packages cloud installs the programs (make demo-cloud does)",
        )
