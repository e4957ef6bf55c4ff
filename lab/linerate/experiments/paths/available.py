# SPDX-License-Identifier: BSD-3-Clause
"""Find the paths that this machine has."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.paths.options import PATHS
from linerate.forwarders import FORWARDERS
from linerate.host.errors import LabError, MachineError
from linerate.links import link
from linerate.runs.plans.blocks import takes


def available(links: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths that this machine and links have, and for each of the others a sentence why
    not.
    """
    found, left_out = [], []
    for name in PATHS:
        if unfit := [on for on in links if not takes(name, link(on))]:
            left_out.append(f"{name} is left out: it does not work on link {', '.join(unfit)}")
            continue
        try:
            FORWARDERS[name].prepare()
        except LabError as error:
            left_out.append(f"{name} is left out: {error}")
        else:
            found.append(name)
    if not found:
        raise MachineError("this machine has none of the paths", " ".join(left_out))
    return found, left_out
