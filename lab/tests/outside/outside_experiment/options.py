# SPDX-License-Identifier: BSD-3-Clause
"""What `linerate run floods` can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from linerate.runs.options import FORWARDERS, LINK, PRESET, SIZES, BlockOptions, Preset

PRESETS = {"quick": Preset("quick", 8, 0.3, 2, 0, "8 blocks: finds large differences")}


@dataclass(kw_only=True)
class Options(BlockOptions):
    """What the command line asked for."""

    summary: ClassVar = "Flood forwarders with frames of several sizes: which carries more?"
    own: ClassVar = {
        "links": LINK.but(default=["null"]),
        "sizes": SIZES.but(default=[64]),
        "forwarders": FORWARDERS.but(default=["c-l2fwd", "rust-l2fwd"]),
    }

    preset: Annotated[Preset, PRESET.but(help="quick (8 blocks).", choices=PRESETS)]
