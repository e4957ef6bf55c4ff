# SPDX-License-Identifier: BSD-3-Clause
"""Order and repetition: randomised complete blocks (measuring.md 7 to 9).

Each block runs every arm of a cell once, in an order drawn from the seed. The baseline appears
twice under two labels: the A/A arm. The unit is the trial: the forwarder is started anew.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from linerate.errors import UsageError

AA_SUFFIX = "-again"


@dataclass(frozen=True)
class Arm:
    """A label in the comparison and the forwarder behind it."""

    label: str
    forwarder: str


@dataclass(frozen=True)
class Cell:
    """One link and one frame size: what a comparison is about."""

    link: str
    size: int
    blocks: int


@dataclass(frozen=True)
class Preset:
    """How much to measure. `cells` names (links, sizes, blocks) when the preset chooses them."""

    name: str
    blocks: int
    window_s: float
    self_test: int
    lower_load: int
    note: str


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("demo", 30, 0.3, 3, 4, "a first look: null with 30 blocks, memif with 12"),
        Preset("quick", 20, 0.3, 4, 6, "20 blocks: finds a 5 % difference in three of four runs"),
        Preset("screen", 40, 0.3, 5, 10, "40 blocks: finds a 5 % difference nearly always"),
        Preset("claim", 150, 0.3, 8, 20, "150 blocks: for a claim that others will rely on"),
    )
}

# The demo stays under five minutes on two cores.
DEMO_CELLS = (Cell("null", 64, 30), Cell("memif", 64, 12), Cell("memif", 1518, 12))


def preset(name: str) -> Preset:
    try:
        return PRESETS[name]
    except KeyError:
        raise UsageError(
            f"--preset {name}: no such preset", f"choose from: {', '.join(PRESETS)}"
        ) from None


def arms(forwarders: list[str]) -> list[Arm]:
    """One arm per forwarder, and the first one, the baseline, once more."""
    if not forwarders:
        raise UsageError("--forwarders: name at least one forwarder")
    repeated = {name for name in forwarders if forwarders.count(name) > 1}
    if repeated:
        raise UsageError(f"--forwarders: {', '.join(sorted(repeated))} appears twice")
    baseline = forwarders[0]
    return [
        Arm(baseline, baseline),
        Arm(baseline + AA_SUFFIX, baseline),
        *(Arm(name, name) for name in forwarders[1:]),
    ]


def order(arms_of_cell: list[Arm], cell: Cell, seed: int) -> list[list[Arm]]:
    """The arms of each block, shuffled. The same seed gives the same order on every machine."""
    source = random.Random(f"linerate:{seed}:{cell.link}:{cell.size}")
    blocks = []
    for _ in range(cell.blocks):
        block = list(arms_of_cell)
        source.shuffle(block)
        blocks.append(block)
    return blocks
