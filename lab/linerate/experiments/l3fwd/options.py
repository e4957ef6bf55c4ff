# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run l3fwd`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from linerate.runs.options import (
    FORWARDERS,
    FROM_PRESET,
    LINK,
    PRESET,
    SIZES,
    BlockOptions,
    Option,
    Pairing,
    Preset,
)

DEFAULT_FORWARDERS = [
    "c-l3fwd-graph", "c-l3fwd-lpm", "c-l3fwd-graph-acl", "c-l3fwd-acl", "rust-l3fwd-graph",
    "rust-l3fwd-graph-fused",
]  # fmt: skip
DEFAULT_LINKS = ["nearfree1-ip", "memif"]


@dataclass(frozen=True)
class L3fwdPreset(Preset):
    """A preset. `routes`, `rules`, `sizes`: the levels of each factor."""

    routes: tuple[int, ...] = ()
    rules: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()


PRESETS = {
    preset.name: preset
    for preset in (
        L3fwdPreset(
            "demo", 16, 0.1, 1, 15, "16 blocks of a few tables: minutes",
            routes=(1, 1000), rules=(100,), sizes=(64,),
        ),
        L3fwdPreset(
            "quick", 12, 0.3, 2, 6, "12 blocks of few levels: a first look",
            routes=(1, 1000, 100_000), rules=(100, 10_000), sizes=(64,),
        ),
        L3fwdPreset(
            "full", 30, 0.3, 3, 10, "30 blocks of every decade of routes and rules, three sizes",
            routes=(1, 10, 100, 1000, 10_000, 100_000), rules=(10, 100, 1000, 10_000),
            sizes=(64, 512, 1518),
        ),
    )
}  # fmt: skip


@dataclass(kw_only=True)
class Options(Pairing, BlockOptions):
    """The options given on the command line; None: the preset's levels. No rules: 0."""

    summary: ClassVar = "What does routing cost, by the size of the tables?"
    unused: ClassVar = ("generator_ports", "forwarder_ports")
    own: ClassVar = {
        "links": LINK.but(
            help="nearfree1-ip, nearfree2-ip: by tables of these sizes; memif, memif2, veth, "
            "veth1, tap, tap1: by the lab's routes, at each frame size. A list, or repeated.",
            default=DEFAULT_LINKS,
        ),
        "sizes": SIZES.but(default=FROM_PRESET),
        "forwarders": FORWARDERS.but(
            help="Names or files (TOML), a list; in each cell the first that knows its tables is "
            "the baseline. Also: the C ones with -native.",
            default=DEFAULT_FORWARDERS,
        ),
    }

    preset: Annotated[
        L3fwdPreset,
        PRESET.but(
            help="demo (a look, minutes), quick (few levels, 12 blocks) or full (every decade, "
            "30).",
            choices=PRESETS,
        ),
    ]
    routes: Annotated[
        list[int] | None,
        Option(
            "--routes",
            help="Routes in the table, a list, 1 to 100000.",
            default=FROM_PRESET,
            example="1,1000",
        ),
    ] = None
    rules: Annotated[
        list[int] | None,
        Option(
            "--rules",
            help="Rules that packets are checked against (with 1,000 routes), a list, to 100000; "
            "0: none.",
            default=FROM_PRESET,
            example="100,1000",
        ),
    ] = None
