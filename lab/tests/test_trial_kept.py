# SPDX-License-Identifier: BSD-3-Clause
"""Which differences between received and sent are a forwarder's doing."""

from __future__ import annotations

from linerate.telemetry.client import Reading
from linerate.trial.trial import UNDER_WAY, _kept

MS = 1_000_000


def readings(at_ms: float, *ports: tuple[int, int], apart_ms: float = 1.0) -> list[Reading]:
    """Ports' counters (received, sent), read one after the other."""
    return [
        Reading(
            {"ipackets": received, "opackets": sent},
            round((at_ms + place * apart_ms) * MS),
            round((at_ms + place * apart_ms + 0.1) * MS),
        )
        for place, (received, sent) in enumerate(ports)
    ]


def verdict(first: list[Reading], last: list[Reading]) -> bool:
    kept, allowed = _kept(first, last)
    return kept > allowed


def test_what_is_under_way_is_not_kept() -> None:
    first = readings(0, (0, 0), (0, 0))
    assert not verdict(first, readings(300, (10_000_000, 9_999_800), (10_000_000, 9_999_800)))
    assert verdict(readings(0, (0, 0)), readings(300, (10_000_000, 9_999_000)))


def test_each_port_s_own_balance_leaves_no_room() -> None:
    first = readings(0, (0, 0), (0, 0), apart_ms=50)
    last = readings(300, (10_000, 10_000 - UNDER_WAY), (10_000, 10_000 - UNDER_WAY), apart_ms=50)
    assert _kept(first, last) == (2 * UNDER_WAY, 2 * UNDER_WAY)


def test_a_router_s_ports_are_read_one_after_the_other() -> None:
    """All goes out of the second port, 20 Mpps, and it is read 1 ms later."""
    first = readings(0, (0, 0), (0, 0))
    last = readings(300, (3_000_000, 0), (3_010_000, 6_020_000))
    kept, allowed = _kept(first, last)
    assert kept == 10_000
    assert kept < allowed < 60_000


def test_a_router_that_drops_a_twentieth_is_found() -> None:
    first = readings(0, (0, 0), (0, 0))
    assert verdict(first, readings(300, (3_000_000, 0), (3_000_000, 5_700_000)))
    assert verdict(first, readings(300, (3_000_000, 0), (3_000_000, 0)))
