# SPDX-License-Identifier: BSD-3-Clause
"""The known experiments: a line for each of the lab's own, and those of installed packages.

Other packages name their experiments as entry points of the group `linerate.experiments`
(docs/write-an-experiment.md). An experiment is imported on first use, because the import takes a
second.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linerate.host.errors import LabError, RunError
from linerate.records import run_file
from linerate.records.run_file import RUN, Run, made_of
from linerate.runs.options import Options

if TYPE_CHECKING:
    from linerate.runs.experiment import Experiment

# The module and the class, by name. The module `options` beside it has the options.
EXPERIMENTS = {
    "overload": "linerate.experiments.overload.runs:OverloadRuns",
    "paths": "linerate.experiments.paths.runs:PathsRuns",
    "rfc2544": "linerate.experiments.rfc2544.runs:Rfc2544Runs",
    "latency": "linerate.experiments.latency.runs:LatencyRuns",
    "graph": "linerate.experiments.graph.runs:GraphRuns",
    "l3fwd": "linerate.experiments.l3fwd.runs:L3fwdRuns",
    "cloud": "linerate.experiments.cloud.runs:CloudRuns",
}


GROUP = "linerate.experiments"


def experiments() -> dict[str, str]:
    """Return all experiments by name; the lab's own keep their names whatever else is installed."""
    return {point.name: point.value for point in entry_points(group=GROUP)} | EXPERIMENTS


def find(name: str) -> Experiment[Any, Any]:
    """Return the experiment of that name; raises `RunError`, because runs' directories name them,
    too.
    """
    module, _, kind = _known(name).partition(":")
    found: Experiment[Any, Any] = getattr(import_module(module), kind)()
    return found


def load(directory: Path) -> Run:
    """The run of a directory, of a known experiment, with a design that is one of it: whatever may
    be left out is put in. Raises `RunError` that names the file.
    """
    run = run_file.load(directory)
    place = directory / RUN
    try:
        with made_of(directory, RUN):
            run.design = find(run.experiment).stored(run.design)
    except LabError as error:
        why = error.message.removeprefix(f"{RUN}: ")
        named = why if str(directory) in why else f"{place}: {why}"
        raise RunError(named, error.hint) from error
    return run


def options_of(name: str) -> type[Options]:
    """Return the options of an experiment, without importing its measurement code."""
    package = _known(name).rpartition(".")[0]
    found: type[Options] = import_module(f"{package}.options").Options
    return found


def _known(name: str) -> str:
    # Searching installed packages takes longer than reading a small run.
    known = EXPERIMENTS if name in EXPERIMENTS else experiments()
    if name not in known:
        raise RunError(
            f"experiment {name!r} is unknown to this version of linerate",
            f"it knows: {', '.join(known)}",
        )
    return known[name]
