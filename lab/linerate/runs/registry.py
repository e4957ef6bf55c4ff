# SPDX-License-Identifier: BSD-3-Clause
"""Which experiments there are: a line for each.

An experiment is imported when it is asked for, because to import one takes a second.
"""

from __future__ import annotations

from importlib import import_module

from linerate.host.errors import RunError
from linerate.runs.experiment import Experiment

# By name: the module and the class in it.
EXPERIMENTS = {
    "overload": "linerate.experiments.overload.runs:OverloadRuns",
    "rfc2544": "linerate.experiments.rfc2544.runs:Rfc2544Runs",
    "paths": "linerate.experiments.paths.runs:PathsRuns",
    "latency": "linerate.experiments.latency.runs:LatencyRuns",
    "graph": "linerate.experiments.graph.runs:GraphRuns",
    "l3fwd": "linerate.experiments.l3fwd.runs:L3fwdRuns",
    "cloud": "linerate.experiments.cloud.runs:CloudRuns",
}


def find(name: str) -> Experiment:
    """Return the experiment of that name; raises `RunError`: runs' directories name them, too."""
    if name not in EXPERIMENTS:
        raise RunError(
            f"experiment {name!r} is unknown to this version of linerate",
            f"it knows: {', '.join(EXPERIMENTS)}",
        )
    module, _, kind = EXPERIMENTS[name].partition(":")
    found: Experiment = getattr(import_module(module), kind)()
    return found
