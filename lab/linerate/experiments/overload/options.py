# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run overload`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from linerate.records.cells import Cell
from linerate.runs.options import (
    FORWARDERS,
    LINK,
    PRESET,
    SIZES,
    BlockOptions,
    Extra,
    Pairing,
    Preset,
)
from linerate.runs.plans.blocks import DEMO_CELLS

PRESETS = {
    preset.name: preset
    for preset in (
        Preset("floods", 6, 0.3, 3, 0, "6 blocks of floods on a link that drops, as published"),
        Preset("demo", 24, 0.3, 3, 6, "a first look: null with 24 blocks, memif with 12"),
        Preset("quick", 20, 0.3, 4, 6, "20 blocks: finds a 5 % difference in three of four runs"),
        Preset("screen", 40, 0.3, 5, 10, "40 blocks: finds a 5 % difference nearly always"),
        Preset("claim", 150, 0.3, 8, 20, "150 blocks: for a claim that others will rely on"),
    )
}
_CELLS = {"demo": DEMO_CELLS}
FLOODS = "floods"
DEFAULT_FORWARDERS = ["c-l2fwd", "rust-l2fwd", "rust-l2fwd-burst"]
DEFAULT_LINKS = ["null", "memif"]
# On memif the generator waits for a slow forwarder. Into a veth it sends at its own rate, and
# frames without room are lost; a veth needs root.
LOSSY = "veth"
DEFAULT_SIZES = [64]


@dataclass(kw_only=True)
class Options(Pairing, BlockOptions):
    """The options given on the command line."""

    summary: ClassVar = "Which forwarder carries more, and what does a packet cost?"
    extras: ClassVar = (Extra("--generator", value=True, hidden=True),)
    own: ClassVar = {
        "links": LINK.but(
            help="null, null2, nearfree2, nearfree1-ip, nearfree2-ip, memif, memif2, veth, veth1, "
            "veth-af-xdp, veth1-af-xdp, tap, tap1, ports; a list, or repeated.",
            default=DEFAULT_LINKS,
            default_help="null and memif, and veth where the lab may make one; floods: veth, or "
            "memif",
        ),
        "sizes": SIZES.but(default=DEFAULT_SIZES),
        "forwarders": FORWARDERS.but(
            help="Names or files (TOML), a list; the first is the baseline. Also: reflect, "
            "testpmd-io, -mac, -macswap, -csum, -5tswap; c-l3fwd-lpm, -em, -acl, -graph.",
            default=DEFAULT_FORWARDERS,
        ),
    }

    preset: Annotated[
        Preset,
        PRESET.but(
            help="floods (6 blocks), demo, quick (20 blocks), screen (40) or claim (150).",
            choices=PRESETS,
        ),
    ]

    @property
    def own_cells(self) -> Sequence[Cell] | None:
        """The cells of the preset, if it has its own, unless links or sizes are named."""
        return None if self.links or self.sizes else _CELLS.get(self.preset.name)
