# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run paths`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from linerate.records.types import LOW_LOAD
from linerate.runs.options import (
    FORWARDERS,
    FOUND_AT_START,
    FROM_PRESET,
    LINE_RATE,
    LINK,
    PRESET,
    SIZES,
    BlockOptions,
    Pairing,
    Preset,
)


@dataclass(frozen=True)
class PathsPreset(Preset):
    """A preset. `loads`: shares of the rate that every path of a cell carries; the low load is
    among them.
    """

    loads: tuple[float, ...] = (LOW_LOAD, 0.5, 0.75)
    sizes: tuple[int, ...] = (64,)


PRESETS = {
    preset.name: preset
    for preset in (
        PathsPreset("quick", 10, 0.3, 0, 10, "10 blocks of one frame size: a first look"),
        PathsPreset(
            "full", 20, 0.3, 0, 20, "20 blocks of three frame sizes and five loads",
            loads=(0.1, LOW_LOAD, 0.5, 0.75, 0.9), sizes=(64, 512, 1518),
        ),
    )
}  # fmt: skip

# The first that there is is the reference: DPDK on its af_packet driver.
PATHS = (
    "c-l2fwd", "rust-l2fwd", "testpmd-mac", "testpmd-af-xdp",
    "af-packet-read-write", "af-packet-mmsg", "af-packet-mmap",
    "af-xdp", "xdp-tx", "xdp-redirect", "xdp-fib", "xdp-redirect-generic",
    "kernel-bridge", "kernel-route",
)  # fmt: skip
# The default forwarders.
DEFAULT_FORWARDERS = list(PATHS[:2])
DEFAULT_LINKS = ["veth"]


@dataclass(kw_only=True)
class Options(Pairing, BlockOptions):
    """The options given on the command line. `left_out`: why paths are not among the default
    ones.
    """

    summary: ClassVar = "What does each path to packets carry, and at what cost?"
    unused: ClassVar = ("generator_ports", "forwarder_ports")
    own: ClassVar = {
        "links": LINK.but(
            help="veth, veth1, veth-af-xdp or veth1-af-xdp; a list, or repeated.",
            default=DEFAULT_LINKS,
        ),
        "sizes": SIZES.but(default=FROM_PRESET),
        "forwarders": FORWARDERS.but(
            help="Names or files (TOML), a list; the first is the reference.",
            default=DEFAULT_FORWARDERS,
            default_help="every path that works on this machine, DPDK first",
        ),
        "line_rate": LINE_RATE.but(
            help="Frames per second of which the fixed loads are shares, instead of what the "
            "slowest path carries."
        ),
    }

    preset: Annotated[
        PathsPreset,
        PRESET.but(
            help="quick (one frame size) or full (three sizes, five loads).",
            choices=PRESETS,
            merge="same",
        ),
    ]
    left_out: Annotated[list[str], FOUND_AT_START] = field(default_factory=list)
