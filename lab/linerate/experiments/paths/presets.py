# SPDX-License-Identifier: BSD-3-Clause
"""How much is measured, and which forwarders stand for which path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.forwarders import FORWARDERS
from linerate.host.errors import LabError, UsageError, look_up
from linerate.records.types import LOW_LOAD
from linerate.runs.blocks import Preset, takes


@dataclass(frozen=True)
class PathsPreset(Preset):
    """`loads`: shares of the rate that every path of a cell carries; the low load is among them."""

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


def preset(name: str) -> PathsPreset:
    return look_up(PRESETS, name, "--preset", "preset")


def available(links: Sequence[str]) -> tuple[list[str], list[str]]:
    """The paths that this machine and links have, and of the others why not, each in a sentence."""
    found, left_out = [], []
    for name in PATHS:
        if unfit := [on for on in links if not takes(name, on)]:
            left_out.append(f"{name} is left out: it does not work on link {', '.join(unfit)}")
            continue
        try:
            FORWARDERS[name].prepare()
        except LabError as error:
            left_out.append(f"{name} is left out: {error}")
        else:
            found.append(name)
    if not found:
        raise UsageError("--forwarders: this machine has none of the paths", " ".join(left_out))
    return found, left_out
