# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs of experiment `graph` with a program whose figures are drawn."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from simulated import quiet

from linerate.experiments.graph import plan
from linerate.experiments.graph.design import NAME, planned
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.presets import PRESETS
from linerate.experiments.graph.running import programs
from linerate.experiments.graph.running.programs import Programs
from linerate.experiments.graph.runs import Found
from linerate.host.cores import cpus, switches
from linerate.runs import session
from linerate.runs.agreement import as_stored

FAKE = Path(__file__).with_name("fake_graph_bench.py")


class Fake:
    """The fake programs of a test. `lies`: their faults."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch = patch
        for name in ("graph-bench", "graph-bench-native"):
            path = folder / name
            # It needs no package.
            path.write_text(f"#!{sys.executable} -IS\n" + FAKE.read_text(encoding="utf-8"))
            path.chmod(0o755)
        library = folder / "nodes.so"
        library.touch()
        self.programs = Programs(
            folder / "graph-bench",
            folder / "graph-bench-native",
            {"gcc": library, "gcc-native": library},
            ["c-graph/clang is left out: there is no clang here"],
        )
        patch.setattr(programs, "find", lambda: self.programs)
        # A run has hundreds of records, and the disk is not what is tested.
        patch.setattr("os.fsync", lambda _: None)
        patch.setattr(cpus, "await_free", lambda cpu, **_: None)
        # Other users of the tests' CPU do not matter here.
        patch.setattr(switches, "watched", lambda cpus, owns: nullcontext(None))

    def lie(self, **lies: object) -> None:
        self._patch.setenv("LINERATE_FAKE_GRAPH", json.dumps(lies))


def options(**values: Any) -> dict[str, Any]:
    preset = PRESETS[values.pop("preset", "quick")]
    asked = Options(preset=preset, **({"blocks": 14} | values))
    offered, left_out = plan.look(asked)
    asked.plan, asked.left_out = planned(asked, offered), left_out
    return as_stored(asked)


def start(out: Path, **values: Any) -> Found:
    found = session.start(NAME, options(**values), out, quiet(), "linerate run graph")
    assert isinstance(found, Found)
    return found
