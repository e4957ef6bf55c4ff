# SPDX-License-Identifier: BSD-3-Clause
"""The number of blocks that a design needs so that its questions can be answered at all.

If all blocks agree, a signed-rank test of n pairs has a p of 2 / 2^n, and Holm's correction
multiplies it by the number of comparisons. The families here are those of `analysis.statements` and
`analysis.tenants_side`; permutations and trends need no more blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.design.levels import WORK_OF
from linerate.experiments.cloud.design.parts import Part
from linerate.verdict.stats import fewest_pairs


def fewest_blocks(parts: Sequence[Part]) -> int:
    """Return the fewest blocks with which every family of the design's comparisons can reject."""
    return max(fewest_pairs(family) for family in _families(parts))


def _families(parts: Sequence[Part]) -> list[int]:
    """Return the number of comparisons corrected together, for each kind; 1 stands for single
    tests.
    """
    found = [1]
    works: dict[str, set[str]] = {}
    for part in parts:
        frameworks = len(part.frameworks)
        if not any(part.tenants):
            continue
        found.append(frameworks * len([load for load in part.loads if load != "idle"]))
        if len(part.kinds) > 1:
            found.append(frameworks)
        for load in part.loads:
            works.setdefault(load, set()).update(part.frameworks)
    found.append(sum(len(WORK_OF.get(load, ())) * len(names) for load, names in works.items()))
    return [each for each in found if each]
