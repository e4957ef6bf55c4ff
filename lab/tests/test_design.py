# SPDX-License-Identifier: BSD-3-Clause
"""Randomised complete blocks."""

from __future__ import annotations

from collections import Counter

import pytest

from linerate.design import Cell, arms, order, preset
from linerate.errors import UsageError
from linerate.overload import Options, cells


def test_every_block_is_complete_and_the_baseline_runs_twice() -> None:
    chosen = arms(["c-l2fwd", "rust-l2fwd"])
    assert [(arm.label, arm.forwarder) for arm in chosen] == [
        ("c-l2fwd", "c-l2fwd"),
        ("c-l2fwd-again", "c-l2fwd"),
        ("rust-l2fwd", "rust-l2fwd"),
    ]
    blocks = order(chosen, Cell("null", 64, 30), seed=1)
    assert len(blocks) == 30
    assert all(
        sorted(a.label for a in block) == sorted(a.label for a in chosen) for block in blocks
    )


def test_the_seed_decides_the_order() -> None:
    chosen, cell = arms(["a", "b", "c"]), Cell("null", 64, 10)
    assert order(chosen, cell, 1) == order(chosen, cell, 1)
    assert order(chosen, cell, 1) != order(chosen, cell, 2)
    assert order(chosen, cell, 1) != order(chosen, Cell("memif", 64, 10), 1)


def test_positions_are_balanced() -> None:
    chosen = arms(["a", "b", "c"])
    first = Counter(block[0].label for block in order(chosen, Cell("null", 64, 4000), 1))
    assert all(900 < count < 1100 for count in first.values())


def test_presets() -> None:
    assert [preset(name).blocks for name in ("quick", "screen", "claim")] == [20, 40, 150]
    with pytest.raises(UsageError, match="no such preset"):
        preset("huge")


def test_twice_the_same_forwarder_is_an_error() -> None:
    with pytest.raises(UsageError, match="twice"):
        arms(["a", "a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [63]}, "63"),
        ({"sizes": [1519]}, "1519"),
        ({"blocks": 0}, "at least 1"),
        ({"links": ["wire"]}, "no such link"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cells(Options(preset=preset("quick"), **options))  # type: ignore[arg-type]


def test_default_cells_and_sizes_that_do_not_matter() -> None:
    quick = preset("quick")
    assert [(c.link, c.size) for c in cells(Options(quick))] == [("null", 64), ("memif", 64)]
    chosen = cells(Options(quick, links=["null", "memif"], sizes=[64, 512], blocks=3))
    assert [(c.link, c.size, c.blocks) for c in chosen] == [
        ("null", 64, 3),
        ("memif", 64, 3),
        ("memif", 512, 3),
    ]
