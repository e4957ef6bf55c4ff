# SPDX-License-Identifier: BSD-3-Clause
"""100 % of a link without a physical rate, and the forwarders that it limits.

The rules: docs/how-it-measures.md#100-percent and
docs/how-it-measures.md#limited-by-generator-or-link.

The reference peers run in the same blocks as the arms: an arm is compared with the best peer of its
own block, never with a rate of another time.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import ArmSummary, Ceiling, CellSummary
from linerate.records.trial import Trial
from linerate.records.types import Limiter
from linerate.verdict.arms import median_of

LINE_RATE = "--line-rate"
# A forwarder this near to the ceiling is not the limit.
CEILING_SHARE = 0.95
# Nor is one that is busy for less than this share of its time.
MOSTLY_BUSY = 0.5
# One this far above it shows that the peers did not reach the ceiling.
UNPROVEN_SHARE = 1.05
# A flood of which less is refused, or lost before the forwarder, is limited by the sender.
REFUSED_SHARE = 0.01
# A warning lists up to so many frame sizes.
_LISTED = 4


def ceiling_of(tests: list[Trial], line_rate: float | None) -> Ceiling | None:
    """Return the best reference peer of the cell, or the user's line rate."""
    measured = {
        name: value
        for name in sorted({trial.forwarder for trial in tests})
        if (
            value := median_of(
                t.frames.received_pps for t in tests if t.valid and t.forwarder == name
            )
        )
    }
    mega = {name: value / 1e6 for name, value in measured.items()}
    if line_rate:
        return Ceiling(pps=line_rate, peer=LINE_RATE, measured_mpps=mega)
    if not measured:
        return None
    peer = max(measured, key=lambda name: measured[name])
    return Ceiling(pps=measured[peer], peer=peer, measured_mpps=mega)


def share_of_peer(own: list[Trial], tests: list[Trial], peer: str) -> float | None:
    """Return the median over blocks of an arm's received_pps over the peer's on the same setup."""
    reached = {
        trial.pairing: rate
        for trial in tests
        if trial.valid and trial.forwarder == peer and (rate := trial.frames.received_pps)
    }
    ratios = [
        rate / reached[trial.pairing]
        for trial in own
        if trial.valid
        and trial.pairing in reached
        and (rate := trial.frames.received_pps) is not None
    ]
    return statistics.median(ratios) if ratios else None


def place(
    arm: ArmSummary,
    own: list[Trial],
    tests: list[Trial],
    ceiling: Ceiling | None,
    busy_share: float | None = None,
) -> None:
    """Set in `arm` how near to the ceiling it came and what limits it, if not the forwarder.

    `busy_share`: the share of time for which the forwarder was busy with packets, if known.
    """
    if ceiling is None or arm.received_mpps is None:
        return
    if ceiling.peer == LINE_RATE:
        arm.ceiling_share = arm.received_mpps.median * 1e6 / ceiling.pps
    else:
        arm.ceiling_share = share_of_peer(own, tests, ceiling.peer)
        arm.ceiling_unproven = arm.ceiling_share is not None and arm.ceiling_share > UNPROVEN_SHARE
    if arm.ceiling_share is None or arm.ceiling_unproven:
        return
    # A forwarder that mostly waits for packets could carry more of them.
    idle = busy_share is not None and busy_share < MOSTLY_BUSY
    if arm.ceiling_share < CEILING_SHARE and not idle:
        return
    arm.limited_by = _limiter(arm)


def limits(cell: CellSummary) -> dict[Limiter, list[str]]:
    """Return the arms that something other than the forwarder limited, by the limiter.

    The A/A arm alone limits no cell: it is the baseline again, and the baseline was not limited.
    """
    found: dict[Limiter, list[str]] = {}
    for arm in cell.arms:
        if arm.limited_by:
            found.setdefault(arm.limited_by, []).append(arm.arm)
    names = [name for held in found.values() for name in held]
    return {} if all(name.endswith(AA_SUFFIX) for name in names) else found


def cost_loads(cell: CellSummary) -> list[float]:
    """Return the loads at which the cost of a packet is known, rising."""
    return sorted({each.load_share for each in cell.lower_load if each.busy_cycles_per_packet})


def cost_leads(cell: CellSummary) -> bool:
    """Return True if the cost of a packet at lower loads decides instead of the rates: some
    forwarder was not the limit, and that cost is known.
    """
    return bool(limits(cell)) and bool(cost_loads(cell))


def _limiter(arm: ArmSummary) -> Limiter:
    """Return the limiter: the generator, unless it offered more than the link took or delivered to
    the forwarder.
    """
    lost = arm.lost_before_share or 0.0
    offered_all = arm.refused_share is not None and arm.refused_share < REFUSED_SHARE
    return "generator" if offered_all and lost < REFUSED_SHARE else "link"


def unproven(cells: Sequence[CellSummary]) -> list[str]:
    """Return a warning for each forwarder and link where it carried more than the reference
    peers.
    """
    found: dict[tuple[str, str], list[tuple[CellSummary, float]]] = {}
    for cell in cells:
        for arm in cell.arms:
            if arm.ceiling_unproven and arm.ceiling_share:
                found.setdefault((cell.link, arm.arm), []).append((cell, arm.ceiling_share))
    warnings = []
    for (link, name), shares in found.items():
        most = max(share for _, share in shares)
        peers = {cell.ceiling.peer for cell, _ in shares if cell.ceiling}
        peer = f"peer, {peers.pop()}," if len(peers) == 1 else "peer"
        warnings.append(
            f"{link} {_sizes([cell.size for cell, _ in shares])}: {name} carried "
            f"{'up to ' if len(shares) > 1 else ''}{most:.2f} times what the best reference {peer} "
            "carried in the same block: the ceiling is unproven for it, and whether generator or "
            "link limit it is unknown"
        )
    return warnings


def _sizes(sizes: Sequence[int]) -> str:
    listed = ", ".join(map(str, sizes)) if len(sizes) <= _LISTED else ""
    return f"{listed or f'{len(sizes)} sizes from {min(sizes)} to {max(sizes)}'} B"
