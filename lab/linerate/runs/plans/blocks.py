# SPDX-License-Identifier: BSD-3-Clause
"""Order and repetition: randomised complete blocks (docs/how-it-measures.md#randomised-blocks).

Each block runs every arm of a cell once, in an order drawn from the seed. The baseline appears
twice under two labels: the A/A arm. On a link with a generator the reference peers that show its
ceiling take part in every block too. The unit is the trial: the forwarder is started anew.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from linerate.forwarders import forwarder
from linerate.host.errors import UsageError
from linerate.host.text import counted
from linerate.links import Link, Ports, base_name, link
from linerate.records.cells import AA_SUFFIX, MAX_BLOCKS, Arm, Cell, is_graph
from linerate.records.trial import Method, Role
from linerate.verdict.stats import fewest_pairs

PEERS = ("reflect", "testpmd-io")
# The probe runs in one block of so many.
PROBED_EVERY = 6
# Blocks beyond those that a verdict needs: one search or trial may fail.
SPARE_BLOCKS = 1

T = TypeVar("T")


# The demo stays under five minutes on two cores.
DEMO_CELLS = (Cell("null", 64, 24), Cell("memif", 64, 12), Cell("memif", 1518, 12))


def takes(name: str, on: Link) -> bool:
    """Return True if this forwarder works on this link."""
    return forwarder(name).misfit(on) is None


def check_fit(
    forwarders: Sequence[str], links: Sequence[Link], named: str = "--forwarders"
) -> None:
    """Raise for forwarders that do not work on one of these links. `named`: where they are
    named.
    """
    for name in forwarders:
        for on in links:
            if misfit := forwarder(name).misfit(on):
                raise UsageError(f"{named} {name}: {misfit}", "leave it out, or --link veth")


def arms(forwarders: list[str]) -> list[Arm]:
    """Return one arm per forwarder, and the first one, the baseline, once more."""
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


def blocks_for(family: int) -> int:
    """Return the number of blocks that lets a single difference pass Holm's correction over a
    family.
    """
    return fewest_pairs(family) + SPARE_BLOCKS


def too_few_blocks(cells: Sequence[Cell], judged_in: int = 1) -> list[str]:
    """Return a warning for each link on which no test of this run could reject.

    A verdict needs enough blocks to pass Holm's correction over all cells of the link; the cells of
    experiment `graph` are those of one. `judged_in`: only one block of so many is judged.
    """
    links: dict[str, list[Cell]] = {}
    for cell in cells:
        name = "graph" if is_graph(cell.link) else base_name(cell.link)
        links.setdefault(name, []).append(cell)
    found = []
    for name, mine in links.items():
        blocks, needed = min(cell.blocks for cell in mine), fewest_pairs(len(mine)) * judged_in
        if blocks < needed:
            cells_there = counted(len(mine), "cell")
            found.append(
                f"{name}: {counted(blocks, 'block')} of {cells_there} cannot show any difference; "
                f"at least {needed} are needed"
            )
    return found


def check_blocks(blocks: int | None) -> None:
    """Raise `UsageError` for an impossible number of blocks. None: the experiment's own."""
    if blocks is not None and not 1 <= blocks <= MAX_BLOCKS:
        raise UsageError(f"--blocks {blocks}: at least 1 and at most {MAX_BLOCKS}")


def order(items: Sequence[T], cell: Cell, seed: int) -> list[list[T]]:
    """Return blocks with every item, shuffled. The same seed gives the same order on every
    machine.
    """
    source = random.Random(f"linerate:{seed}:{cell.link}:{cell.size}")
    blocks = []
    for _ in range(cell.blocks):
        block = list(items)
        source.shuffle(block)
        blocks.append(block)
    return blocks


def turned(items: Sequence[T], seed: int, *what: object) -> list[T]:
    """Return the order in which forwarders of a block take turns, drawn anew for each load: `what`
    identifies block and load.
    """
    found = list(items)
    random.Random(":".join(map(str, ("linerate", seed, *what)))).shuffle(found)
    return found


def turns_or_fresh(asked: str, on: Link) -> Method:
    """Choose how forwarders share time on a link with a generator. `asked`: by --method. The user's
    own ports exist only once.
    """
    return "fresh" if asked == "fresh" or on.name == Ports.name else "turns"


def shown(arms_of_cell: list[Arm]) -> list[Arm]:
    """Return the arms without the A/A arm, if that adds nothing."""
    return [arm for arm in arms_of_cell if not arm.label.endswith(AA_SUFFIX)]


def schedule(
    arms_of_cell: list[Arm], cell: Cell, seed: int, self_test: int, *, probe: bool = True
) -> list[list[tuple[Role, Arm]]]:
    """Return the blocks of a cell: all arms, and the reference peers in the same shuffle.

    The peers are in every block of a link with a generator, where the arms are compared with them;
    elsewhere they are only shown, and the first `self_test` blocks are enough. In some blocks each
    program runs once more with the probe in it, for its poll figures: the probe costs a little, and
    must not slow the compared trials.
    """
    peers = [Arm(name, name) for name in PEERS]
    items: list[tuple[Role, Arm]] = [("measure", arm) for arm in arms_of_cell]
    items += [("self-test", arm) for arm in peers]
    if probe:
        probed = {arm.label: arm for arm in [*shown(arms_of_cell), *peers]}
        items += [("probed", arm) for arm in probed.values()]
    tested = cell.blocks if link(cell.link).has_generator else self_test

    def due(role: Role, place: int) -> bool:
        if role == "probed":
            return place % PROBED_EVERY == 0
        return role == "measure" or place < tested

    return [
        [(role, arm) for role, arm in block if due(role, place)]
        for place, block in enumerate(order(items, cell, seed))
    ]
