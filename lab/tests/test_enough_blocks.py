# SPDX-License-Identifier: BSD-3-Clause
"""Presets have enough blocks to show a difference; a run with too few does not start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import get_type_hints

import pytest
from simulated import install, quiet, start
from simulated_graph import Fake
from simulated_graph import start as start_graph

from linerate.experiments.l3fwd import options as l3fwd_options
from linerate.host.errors import UsageError
from linerate.records.cells import Cell
from linerate.runs import session
from linerate.runs.agreement import as_stored
from linerate.runs.plans.blocks import too_few_blocks
from linerate.runs.registry import EXPERIMENTS, find, options_of

# For graph, `tests/test_graph_bench.py` asks the program for its cells; the presets of cloud are
# designs, whose contrasts have counts of their own (`test_cloud_design.py`).
ELSEWHERE = {"graph", "cloud"}


def presets() -> list[tuple[str, str]]:
    """Return each preset of every other experiment, also of new ones."""
    found = []
    for name in sorted(EXPERIMENTS.keys() - ELSEWHERE):
        (option, *_) = get_type_hints(options_of(name), include_extras=True)["preset"].__metadata__
        found += [(name, preset) for preset in option.choices]
    return found


@pytest.mark.parametrize(("name", "preset"), presets())
def test_every_preset_can_reject(name: str, preset: str) -> None:
    """It needs as many blocks as the verdicts' statistics do."""
    kind = options_of(name)
    (option, *_) = get_type_hints(kind, include_extras=True)["preset"].__metadata__
    experiment = find(name)
    design = experiment.design(as_stored(kind(preset=option.choices[preset])))
    session.refuse_too_few_blocks(design, experiment.judged_in)


@pytest.mark.parametrize(
    ("blocks", "cells", "judged_in", "needed"),
    [(5, 1, 1, 6), (6, 2, 1, 7), (7, 4, 1, 8), (11, 1, 2, 12), (3, 1, 1, 6)],
)
def test_too_few(blocks: int, cells: int, judged_in: int, needed: int) -> None:
    asked = [Cell("memif", 64 + place, blocks) for place in range(cells)]
    (told,) = too_few_blocks(asked, judged_in)
    assert told.startswith("memif: ")
    assert told.endswith(f"cannot show any difference; at least {needed} are needed")
    enough = [Cell("memif", 64 + place, needed) for place in range(cells)]
    assert too_few_blocks(enough, judged_in) == []


def test_a_preset_that_cannot_reject_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    few = l3fwd_options.L3fwdPreset(
        "demo", 4, 0.1, 1, 2, "4", routes=(1,), rules=(100,), sizes=(64,)
    )
    asked = l3fwd_options.Options(preset=few, links=["nearfree1-ip"], probe=False)
    with pytest.raises(UsageError, match="--preset demo: nearfree1-ip: 4 blocks of 2 cells"):
        session.start("l3fwd", asdict(asked), tmp_path / "run", quiet(), "linerate run l3fwd")
    assert not (tmp_path / "run").exists()
    # A number given by the user is accepted, with a note about it.
    found = start(tmp_path / "asked", links=["null"], blocks=2)
    assert "null: 2 blocks of 1 cell cannot show any difference; at least 6 are needed" in (
        found.summary.warnings
    )


def test_too_few_blocks_of_graphs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = Fake(monkeypatch, tmp_path)
    assert fake
    found = start_graph(tmp_path / "run", cells=["chain4/swap/hash5/nostats/*"], blocks=2)
    assert (
        "graph: 2 blocks of 3 cells cannot show any difference; at least 14 are needed"
        in found.summary.warnings
    )
