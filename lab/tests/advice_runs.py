# SPDX-License-Identifier: BSD-3-Clause
"""Runs for tests of advice: records of a few windows each, in a directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from simulated import MACHINE
from trials import made_trial

from linerate.experiments.overload.options import PRESETS, Options
from linerate.experiments.overload.plan import design_of
from linerate.host.machine import Machine
from linerate.records import run_file
from linerate.records.cells import Arm
from linerate.records.outcome import CpuTime, LatencyFigures
from linerate.records.run_file import RUN, Run, Session
from linerate.records.trial import RECORDS, Process, Trial, dump
from linerate.runs.agreement import as_stored
from linerate.runs.kept.stored import Stored

# Blocks that give an answer.
BLOCKS = 6


def window(arm: str, pps: float, block: int = 0, *, lost: float = 0.0, **fields: Any) -> Trial:
    """Return a paced window with 99th percentile delay `p99_us`, core share `busy` and `cpus`."""
    p99_us, cpus = fields.pop("p99_us", None), fields.pop("cpus", [1])
    busy, count = fields.pop("busy", None), round(pps)
    received = round(count * (1 - lost))
    ordinary: dict[str, Any] = {
        "load": "paced", "pps": pps, "seconds": 1.0, "role": "lower-load", "test": "core-use",
        "duration_s": 1.0, "attempted": count, "accepted": count, "received": received,
        "processes": [
            Process(role="forwarder", argv=["prog"], cpus=cpus),
            Process(role="generator", argv=["generator"], cpus=[0]),
        ],
    }  # fmt: skip
    if busy is not None:
        ordinary["cpu_time"] = [CpuTime(of="process", cpus=cpus, seconds=busy)]
    if p99_us is not None:
        ordinary["latency"] = LatencyFigures(
            count=count, minimum_ns=1.0, mean_ns=p99_us * 500, maximum_ns=p99_us * 2000,
            quantiles_ns={"0.5": p99_us * 500, "0.99": p99_us * 1000},
        )  # fmt: skip
    return made_trial(arm=arm, block=block, **(ordinary | fields))


def flood(arm: str, accepted: float, block: int = 0, *, lost: float, refused: int = 0) -> Trial:
    """Return a flood: the rate that the link took, and the share that did not come back."""
    count = round(accepted)
    return made_trial(
        arm=arm, block=block, load="flood", duration_s=1.0, accepted=count,
        attempted=count + refused, refused=refused, received=round(count * (1 - lost)),
    )  # fmt: skip


def each_block(arm: str, pps: float, *, blocks: int = BLOCKS, **fields: Any) -> list[Trial]:
    """Return the same window in this many blocks."""
    return [window(arm, pps, block, **fields) for block in range(blocks)]


def run_of(
    trials: list[Trial],
    directory: str = "run",
    *,
    here: Machine = MACHINE,
    memory: Any = "no-huge",
    programs: dict[str, str] | None = None,
) -> Stored:
    """Return a whole run of experiment overload with these trials, in this order."""
    for position, trial in enumerate(trials):
        trial.identity.position = position
    options = Options(preset=PRESETS["quick"], links=["memif"], sizes=[64])
    session = Session(
        session=1, command="linerate run overload", started_at="2026-01-01T00:00:00+00:00",
        machine=here, versions={"linerate": "0"}, programs=programs or {}, memory=memory,
        trials=len(trials), end="complete",
    )  # fmt: skip
    names = dict.fromkeys(trial.forwarder for trial in trials)
    design = replace(design_of(options), arms=[Arm(name, name) for name in names])
    run = Run(
        experiment="overload",
        options=as_stored(options),
        design=as_stored(design),
        sessions=[session],
    )
    return Stored(Path(directory), run, trials)


def written(found: Stored, directory: Path) -> Path:
    """Write the run into a directory."""
    directory.mkdir(parents=True)
    (directory / RUN).write_text(run_file.dump(found.run))
    (directory / RECORDS).write_text("".join(f"{dump(trial)}\n" for trial in found.trials))
    return directory
