# SPDX-License-Identifier: BSD-3-Clause
"""Which forwarders are limited by link or generator instead of by themselves."""

from __future__ import annotations

import pytest

from linerate.records.summary import ArmSummary, Ceiling, CellSummary
from linerate.records.summary_figures import Quartiles
from linerate.verdict.ceiling import LINE_RATE, UNPROVEN_SHARE, place, unproven


def of(value: float) -> Quartiles:
    return Quartiles(n=9, median=value, q1=value, q3=value)


@pytest.mark.parametrize(
    ("mpps", "busy", "by"),
    [
        (9.6, None, "link"),
        (9.6, 1.0, "link"),
        (9.4, None, None),
        (9.4, 0.9, None),
        # It waits for packets, so something else limits it, however far below the peers it is.
        (9.4, 0.4, "link"),
        (5.0, 0.1, "link"),
    ],
)
def test_who_waits_for_packets_is_not_the_limit(
    mpps: float, busy: float | None, by: str | None
) -> None:
    arm = ArmSummary(
        arm="a", forwarder="a", language="C", trials=9, invalid=0,
        received_mpps=of(mpps), refused_share=0.2,
    )  # fmt: skip
    place(arm, [], [], Ceiling(pps=10e6, peer=LINE_RATE), busy)
    assert arm.limited_by == by


@pytest.mark.parametrize(
    ("refused", "lost_before", "by"),
    [
        (0.0, 0.0, "generator"),
        (0.2, 0.0, "link"),
        # A veth accepts all frames, and drops those that its receiver has no room for.
        (0.0, 0.5, "link"),
        (0.0, None, "generator"),
    ],
)
def test_a_generator_that_offers_more_than_arrives_is_not_the_limit(
    refused: float, lost_before: float | None, by: str
) -> None:
    arm = ArmSummary(
        arm="a", forwarder="a", language="C", trials=9, invalid=0, received_mpps=of(9.8),
        refused_share=refused, lost_before_share=lost_before,
    )  # fmt: skip
    place(arm, [], [], Ceiling(pps=10e6, peer=LINE_RATE))
    assert arm.limited_by == by


def test_one_warning_has_all_sizes_of_a_forwarder_that_did_more_than_the_peers() -> None:
    def cell(size: int, *shares: float) -> CellSummary:
        arms = [
            ArmSummary(
                arm=name, forwarder=name, language="C", trials=9, invalid=0,
                ceiling_share=share, ceiling_unproven=share > UNPROVEN_SHARE,
            )
            for name, share in zip(["a", "b"], shares, strict=True)
        ]  # fmt: skip
        return CellSummary(
            link="memif", size=size, blocks=9, arms=arms, references=[], lower_load=[]
        )

    cells = [cell(64, 1.2, 1.0), *(cell(size, 2.0, 1.0) for size in (128, 256, 512))]
    (few,) = unproven(cells[:3])
    assert few.startswith("memif 64, 128, 256 B: a carried up to 2.00 times what the best")
    (many,) = unproven([*cells, cell(1518, 1.5, 1.0)])
    assert many.startswith("memif 5 sizes from 64 to 1518 B: a carried up to 2.00 times")
    (one, other) = unproven([cell(64, 1.2, 1.3)])
    assert one.startswith("memif 64 B: a carried 1.20 times")
    assert other.startswith("memif 64 B: b carried 1.30 times")
    assert unproven([cell(64, 1.0, 1.05)]) == []
