# SPDX-License-Identifier: BSD-3-Clause
"""Presets have blocks enough to show a difference; a run that has not does not start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from simulated import install, quiet, start
from simulated_graph import Fake
from simulated_graph import start as start_graph

from linerate.experiments.graph.choice import CHOSEN_IN
from linerate.experiments.graph.presets import PRESETS as GRAPH_PRESETS
from linerate.experiments.l3fwd import design as l3fwd
from linerate.experiments.l3fwd import options as l3fwd_options
from linerate.experiments.latency import design as latency
from linerate.experiments.latency import loads
from linerate.experiments.latency import options as latency_options
from linerate.experiments.overload import plan as overload
from linerate.experiments.overload.options import PRESETS, Options
from linerate.experiments.paths import options as paths_options
from linerate.experiments.paths import plan as paths
from linerate.experiments.rfc2544 import options as rfc2544_options
from linerate.experiments.rfc2544 import plan as rfc2544
from linerate.experiments.rfc2544 import presets as rfc2544_presets
from linerate.host.errors import UsageError
from linerate.records.cells import Cell
from linerate.runs import session
from linerate.runs.plans.blocks import too_few_blocks


@pytest.mark.parametrize("name", PRESETS)
def test_presets_of_overload(name: str) -> None:
    assert too_few_blocks(overload.cells(Options(preset=PRESETS[name]))) == []


@pytest.mark.parametrize("name", l3fwd_options.PRESETS)
def test_presets_of_l3fwd(name: str) -> None:
    assert (
        too_few_blocks(l3fwd.cells(l3fwd_options.Options(preset=l3fwd_options.PRESETS[name]))) == []
    )


@pytest.mark.parametrize("name", paths_options.PRESETS)
def test_presets_of_paths(name: str) -> None:
    assert (
        too_few_blocks(paths.cells(paths_options.Options(preset=paths_options.PRESETS[name]))) == []
    )


@pytest.mark.parametrize("name", rfc2544_presets.PRESETS)
def test_presets_of_rfc2544(name: str) -> None:
    every = rfc2544_presets.tests_of([])
    asked = rfc2544_options.Options(preset=rfc2544_presets.PRESETS[name], tests=every)
    assert too_few_blocks(rfc2544.design_of(asked).cells) == []


@pytest.mark.parametrize("name", loads.PRESETS)
def test_presets_of_latency(name: str) -> None:
    assert (
        too_few_blocks(latency.design_of(latency_options.Options(preset=loads.PRESETS[name])).cells)
        == []
    )


# Of graph-bench, by preset: of experiment graph the program says which cells there are.
GRAPH_CELLS = {"demo": 9, "quick": 41, "full": 154}


@pytest.mark.parametrize("name", GRAPH_PRESETS)
def test_presets_of_graph(name: str) -> None:
    cells = [
        Cell(f"chain4/swap/hash5/nostats/{place}", 256, GRAPH_PRESETS[name].blocks)
        for place in range(GRAPH_CELLS[name])
    ]
    assert too_few_blocks(cells, CHOSEN_IN) == []


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
    # Whoever names a number gets it, with a word about it.
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
