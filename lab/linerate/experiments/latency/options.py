# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run latency`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from linerate.experiments.latency.loads import PRESETS, PROTOCOLS, Preset, protocols_of
from linerate.records.trial import Protocol
from linerate.runs import options as common
from linerate.runs.options import (
    BLOCKS,
    FORWARDERS,
    FROM_PRESET,
    LINK,
    PRESET,
    SIZES,
    Option,
    words_of,
)

DEFAULT_FORWARDERS = [
    "reflect", "c-l2fwd", "rust-l2fwd-burst", "testpmd-io",
    "af-packet-read-write", "af-packet-mmsg", "af-packet-mmap", "c-rxtx-callbacks",
]  # fmt: skip
# The default links. The last one is for programs that need pairs of ports, such as the one of the
# published cycles: others are measured on links with one port.
PAIRS = "memif2"
DEFAULT_LINKS = ["memif", "veth1", PAIRS]
DEFAULT_SIZES = [64]


def _protocols(option: str, values: list[str] | None) -> tuple[Protocol, ...]:
    return protocols_of(words_of(option, values))


@dataclass(kw_only=True)
class Measured:
    """A field of options and designs: the measurements of each frame."""

    protocols: Annotated[
        tuple[Protocol, ...],
        Option(
            "--frames",
            help="udp, arp (requests); a list.",
            default_help="both",
            parse=_protocols,
        ),
    ] = PROTOCOLS
    inside: Annotated[
        bool,
        Option("--inside", help="Measure inside the forwarders, too: the first published test."),
    ] = True


@dataclass(kw_only=True)
class Options(common.Pairing, Measured, common.Options):
    """The options given on the command line. `packets`: None for the preset's."""

    summary: ClassVar = "How long does a frame take, inside and there and back?"
    own: ClassVar = {
        "links": LINK.but(
            help="memif, veth1, memif2, veth, veth-af-xdp, veth1-af-xdp, tap, tap1, ports; a list, "
            "or repeated.",
            default=DEFAULT_LINKS,
            default_help="memif,veth1, and memif2 for programs that need pairs of ports",
        ),
        "sizes": SIZES.but(default=DEFAULT_SIZES),
        "forwarders": FORWARDERS.but(
            help="Names or files (TOML); the first is the baseline; a link leaves out those that "
            "it has no interfaces for.",
            default=DEFAULT_FORWARDERS,
        ),
        "blocks": BLOCKS.but(
            help="Starts of each forwarder.",
            default=None,
            default_help="at least 9; full: at least 20",
        ),
    }

    preset: Annotated[
        Preset,
        PRESET.but(
            help="quick (10^5 frames of each kind and load) or full (10^6).",
            choices=PRESETS,
            merge="same",
            compare="same",
        ),
    ]
    packets: Annotated[
        int | None,
        Option(
            "--packets",
            help="Frames of each kind and load over all blocks.",
            default=FROM_PRESET,
            compare="same",
        ),
    ] = None
