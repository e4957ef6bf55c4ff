# SPDX-License-Identifier: BSD-3-Clause
"""Windows on links that fill themselves: reading counters, and packets inside a forwarder."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from linerate.telemetry.client import Reading
from linerate.trial.trial import LONGEST, UNDER_WAY, _kept, read_window

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
    """All packets leave by the second port at 20 Mpps, and it is read 1 ms later."""
    first = readings(0, (0, 0), (0, 0))
    last = readings(300, (3_000_000, 0), (3_010_000, 6_020_000))
    kept, allowed = _kept(first, last)
    assert kept == 10_000
    assert kept < allowed < 60_000


def test_a_router_that_drops_a_twentieth_is_found() -> None:
    first = readings(0, (0, 0), (0, 0))
    assert verdict(first, readings(300, (3_000_000, 0), (3_000_000, 5_700_000)))
    assert verdict(first, readings(300, (3_000_000, 0), (3_000_000, 0)))


@pytest.mark.parametrize(
    ("answer_ms", "windows"), [(0.1, 1), (0.4, 1), (0.9, 2), (2.8, 6), (40, LONGEST)]
)
def test_a_window_lasts_until_its_length_is_known(
    monkeypatch: pytest.MonkeyPatch, answer_ms: float, windows: int
) -> None:
    """Beside other work answers take milliseconds, and 40 of 88 windows of 0.1 s were void."""
    now_ms = 0.0
    checks: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now_ms
        now_ms += seconds * 1e3

    def port_stats_tight(_: int) -> Reading:
        nonlocal now_ms
        began, now_ms = now_ms, now_ms + answer_ms
        return Reading({}, round(began * MS), round(now_ms * MS))

    monkeypatch.setattr("linerate.trial.trial.time.sleep", sleep)
    running = cast(Any, SimpleNamespace(check=lambda: checks.append(now_ms)))
    telemetry = cast(Any, SimpleNamespace(port_stats_tight=port_stats_tight))
    first, last = read_window(running, telemetry, 1, 0.1)
    assert len(checks) == windows
    assert last[0].before_ns - first[0].after_ns >= windows * 100 * MS
