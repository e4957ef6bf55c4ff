# SPDX-License-Identifier: BSD-3-Clause
"""Randomised complete blocks."""

from __future__ import annotations

from collections import Counter

import pytest

from linerate.experiments.overload.options import PRESETS, Options
from linerate.experiments.overload.plan import cells
from linerate.host.errors import UsageError
from linerate.records.cells import Cell
from linerate.runs.plans.blocks import (
    DEMO_CELLS,
    PEERS,
    PROBED_EVERY,
    arms,
    blocks_for,
    order,
    schedule,
)
from linerate.verdict.stats import ALPHA, MIN_COUNT


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


@pytest.mark.parametrize(("link", "tested"), [("memif", 10), ("null", 3)])
def test_the_reference_peers_are_in_the_blocks(link: str, tested: int) -> None:
    chosen = arms(["c-l2fwd", "rust-l2fwd"])
    blocks = schedule(chosen, Cell(link, 64, 10), seed=1, self_test=3)
    assert len(blocks) == 10
    for place, block in enumerate(blocks):
        assert sorted(a.label for role, a in block if role == "measure") == sorted(
            a.label for a in chosen
        )
        peers = sorted(arm.label for role, arm in block if role == "self-test")
        assert peers == (sorted(PEERS) if place < tested else [])
        probed = sorted(arm.label for role, arm in block if role == "probed")
        every = sorted(["c-l2fwd", "rust-l2fwd", *PEERS])
        assert probed == (every if place % PROBED_EVERY == 0 else [])


def test_without_the_probe_nothing_is_probed() -> None:
    blocks = schedule(arms(["a", "b"]), Cell("null", 64, 10), 1, 3, probe=False)
    assert {role for block in blocks for role, _ in block} == {"measure", "self-test"}


def test_the_peers_share_the_shuffle_of_the_arms() -> None:
    blocks = schedule(arms(["a", "b"]), Cell("memif", 64, 4000), 1, 3, probe=False)
    first = Counter((role, arm.label) for role, arm in (block[0] for block in blocks))
    assert len(first) == 5
    assert all(700 < count < 900 for count in first.values())


def test_a_peer_may_be_an_arm_too() -> None:
    block = schedule(arms(["c-l2fwd", "reflect"]), Cell("memif", 64, 1), seed=1, self_test=1)[0]
    assert Counter(role for role, arm in block if arm.label == "reflect") == {
        "measure": 1,
        "self-test": 1,
        "probed": 1,
    }


def test_the_demo_is_short() -> None:
    """At about 0.9 s a trial, five minutes are 333."""
    demo = PRESETS["demo"]
    chosen = arms(["c-l2fwd", "rust-l2fwd", "rust-l2fwd-burst"])
    trials = sum(
        len(block) for cell in DEMO_CELLS for block in schedule(chosen, cell, 1, demo.self_test)
    )
    carried = sum(cell.link == "memif" for cell in DEMO_CELLS)
    # Each forwarder is started once for both loads.
    lower = blocks_for(2 * carried) * len(chosen) * carried
    assert trials + lower < 400


def test_presets() -> None:
    assert [PRESETS[name].blocks for name in ("quick", "screen", "claim")] == [20, 40, 150]


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
        cells(Options(preset=PRESETS["quick"], **options))  # type: ignore[arg-type]


def test_default_cells_and_sizes_that_do_not_matter() -> None:
    quick = PRESETS["quick"]
    assert [(c.link, c.size) for c in cells(Options(preset=quick))] == [("null", 64), ("memif", 64)]
    chosen = cells(Options(preset=quick, links=["null", "memif"], sizes=[64, 512], blocks=3))
    assert [(c.link, c.size, c.blocks) for c in chosen] == [
        ("null", 64, 3),
        ("memif", 64, 3),
        ("memif", 512, 3),
    ]


def test_one_failed_trial_at_lower_loads_leaves_enough_for_a_verdict() -> None:
    """The loads and sizes of a link are corrected together; 2 / 2^n is the least p of n blocks."""
    for family in (1, 2, 4, 14, 52):
        left = blocks_for(family) - 1
        assert left >= MIN_COUNT
        assert 2 * family / 2**left < ALPHA
