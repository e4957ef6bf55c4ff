# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run graph`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from linerate.experiments.graph.cells import FAMILIES
from linerate.experiments.graph.presets import PRESETS, GraphPreset
from linerate.experiments.graph.running.conversation import CellOffer
from linerate.runs import options as common
from linerate.runs.options import BLOCKS, FOUND_AT_START, PRESET, Option


@dataclass(kw_only=True)
class Options(common.Options):
    """The options given on the command line. `plan`: the cells that were found, each with
    its arms.
    """

    summary: ClassVar = "What does a node of a graph cost, in C, in Rust and fused?"
    unused: ClassVar = (
        "links", "sizes", "forwarders", "line_rate", "generator_ports", "forwarder_ports",
    )  # fmt: skip
    own: ClassVar = {
        "blocks": BLOCKS.but(
            help="Number of program starts; half select the best C build, half judge."
        ),
    }

    preset: Annotated[
        GraphPreset,
        PRESET.but(help="demo (a minute), quick (minutes) or full (every cell).", choices=PRESETS),
    ]
    cells: Annotated[
        list[str],
        Option(
            "--cells",
            help="Cells or patterns, a list, such as 'chain4/*/hash5/nostats/256'.",
            default_help="the preset's",
        ),
    ] = field(default_factory=list)
    arms: Annotated[
        list[str],
        Option(
            "--arms",
            help="c-graph, rust-graph, fused, one-loop; a list. The first that a machine has, in "
            "this order, is the baseline.",
            default_help="all",
            choices={name: name for name in FAMILIES},
            noun="arm",
        ),
    ] = field(default_factory=list)
    plan: Annotated[list[CellOffer], FOUND_AT_START] = field(default_factory=list)
    left_out: Annotated[list[str], FOUND_AT_START] = field(default_factory=list)
