# SPDX-License-Identifier: BSD-3-Clause
"""Runs of experiment `cloud` on a simulated machine: all of the lab, but no processes.

The records of `cloud_data` replace windows of frames. `--line-rate` is given, so that no rates are
searched for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulated
from cloud_data import CALM, PART, trial_of
from rich.console import Console

from linerate.experiments.cloud.design import needs
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session import plan
from linerate.experiments.cloud.session.cell_run import CellRun
from linerate.experiments.cloud.session.plan import Cloud
from linerate.records.trial import Trial
from linerate.runs import session
from linerate.runs.experiment import Findings
from linerate.runs.options import Preset

RATE_PPS = 400e3
_NOTHING: Any = None


class Windows:
    """Replaces `CellRun`. `ran`: what it was asked for."""

    def __init__(self) -> None:
        self.ran: list[Trial] = []
        # Called before each window.
        self.before: Callable[[object], None] = lambda _: None

    def go(self, cell: Any, first: int, last: int, record: Callable[[Trial], None]) -> Trial:
        del last
        self.before(cell)
        site, place = cell._site, cell._place
        source = np.random.default_rng(random.Random(f"{place}:{cell._block}").randrange(1 << 30))
        found = trial_of(site.bench.seed, CALM, place, (cell._block, 0), 0.0, source)
        found.identity.session, found.request.attempt = site.bench.session, first
        if cell._full_pps is not None:
            found.request.maximum_pps = cell._full_pps
        self.ran.append(found)
        record(found)
        return found


def install(monkeypatch: pytest.MonkeyPatch) -> Windows:
    found = Windows()
    simulated.install_machine(monkeypatch, _NOTHING, _NOTHING)
    for name in ("Groups", "bridge"):
        monkeypatch.setattr(plan, name, lambda **_: nullcontext())
    monkeypatch.setattr(plan, "Exclusive", nullcontext)
    monkeypatch.setattr(needs, "check", lambda _: None)
    monkeypatch.setattr(Cloud, "room", Room(forwarder=1, spare=None))

    def go(cell: CellRun, first: int, last: int, record: Callable[[Trial], None]) -> Trial:
        return found.go(cell, first, last, record)

    monkeypatch.setattr(CellRun, "go", go)
    return found


def options(blocks: int) -> dict[str, Any]:
    """Return a few cells; each factor has two levels."""
    part = replace(PART, loads=("cpu", "network"))
    return asdict(
        Options(
            preset=Preset("quick", blocks, 1.0, 0, 0, ""),
            links=["veth"],
            hugepages="off",
            line_rate=RATE_PPS,
            parts=[part],
        )
    )


def start(out: Path, blocks: int = 3) -> Findings:
    return session.start("cloud", options(blocks), out, simulated.quiet(), "linerate run cloud")


def resume(out: Path, console: Console | None = None) -> Findings:
    return session.resume("cloud", out, {}, console or simulated.quiet(), "linerate --resume")
