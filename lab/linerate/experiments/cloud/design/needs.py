# SPDX-License-Identifier: BSD-3-Clause
"""Check everything that a design needs of the machine, before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.design.levels import Place
from linerate.experiments.cloud.tenants import container
from linerate.experiments.cloud.tenants.base import Kind, Load
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.vm import vm
from linerate.host import netns
from linerate.host.errors import LabError, MissingError


def missing(places: Sequence[Place]) -> list[str]:
    """Return every reason why this machine cannot run these cells, each once; empty if it can."""
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
