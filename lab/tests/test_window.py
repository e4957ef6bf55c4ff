# SPDX-License-Identifier: BSD-3-Clause
"""Results of polls: when the probe measures, and which polls belong to a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import TelemetryServer
from simulated_lab import blank

from linerate.forwarders import forwarder
from linerate.records.cells import Arm, Cell
from linerate.records.outcome import Polling
from linerate.records.trial import Trial
from linerate.telemetry.client import Telemetry
from linerate.traffic.books import Forwarded, unattributed
from linerate.traffic.sender import Sent
from linerate.trial.link_drops import Passed
from linerate.trial.running import ToldPorts
from linerate.trial.window import Polls, Settled, difference, inside, missed

Serve = Callable[[dict[str, Any]], TelemetryServer]


def polling(polls: int, full: int, cycles: int, *, lcore: int = 1, port: int = 0) -> Polling:
    """Polls of which this many return 4 packets, at 100 cycles each, and the others none."""
    return Polling(
        lcore=lcore, port=port, queue=0, polls=polls, empty_polls=polls - full, packets=4 * full,
        burst_limit=4, burst_histogram=[polls - full, 0, 0, 0, full], busy_tsc=400 * full,
        total_tsc=cycles,
    )  # fmt: skip


def trial_of(found: list[Polling] | None) -> Trial:
    trial = blank(Cell("memif", 64, 1), Arm("reflect", "reflect"), 0, "search", "paced", 1)
    trial.frames.polling = found
    return trial


def test_idle_polls_beside_the_window_are_left_out() -> None:
    # An empty poll takes 50 cycles; the window has 10,000 of them, 6,000 busy with 15 bursts.
    before, around = polling(1000, 0, 50_000), polling(1000 + 15 + 480, 15, 50_000 + 30_000)
    counted = difference([before], [around])
    found = inside(counted, [before], 10_000)
    assert found == [polling(15 + 80, 15, 10_000)]
    trial = trial_of(found)
    assert trial.frames.busy_share == pytest.approx(0.6)
    assert trial.frames.full_share == pytest.approx(15 / 95)
    assert trial.frames.rx_spin == pytest.approx(80 / 95)
    assert trial.frames.busy_cycles_per_packet == 100


def test_without_an_idle_time_before_polls_stay_as_they_were_counted() -> None:
    counted = [polling(500, 15, 30_000)]
    assert inside(counted, None, 10_000) == counted
    assert inside(counted, [polling(1000, 1, 50_000)], 10_000) == counted
    assert inside(None, [polling(1000, 0, 50_000)], 10_000) is None
    # A window as long as what was counted.
    assert inside(counted, [polling(1000, 0, 50_000)], 30_000) == counted


def test_an_lcore_s_time_is_counted_once_for_all_its_queues() -> None:
    both = [polling(10, 5, 8000), polling(10, 5, 8001, port=1)]
    trial = trial_of(both)
    assert trial.frames.busy_share == pytest.approx(4000 / 8001)
    trial.frames.polling = [*both, polling(10, 0, 8000, lcore=2)]
    assert trial.frames.busy_share == pytest.approx(4000 / 16_001)
    trial.frames.polling = []
    assert (trial.frames.busy_share, trial.frames.full_share, trial.frames.rx_spin) == (
        None,
        None,
        None,
    )


def test_a_full_burst_may_be_longer_than_the_last_limit() -> None:
    entry = polling(10, 5, 8000).model_copy(update={"burst_limit": 2})
    assert trial_of([entry]).frames.full_share == 0.5


def test_the_probe_looks_when_it_is_asked_to(telemetry_server: Serve) -> None:
    state = {"now": "off"}

    def switch(to: str) -> Callable[[], dict[str, str]]:
        def answer() -> dict[str, str]:
            state["now"] = to
            return {"polling": to}

        return answer

    entries = [polling(10, 5, 8000).model_dump()]
    server = telemetry_server(
        {
            "/linerate/probe,polling=on": switch("on"),
            "/linerate/probe,polling=off": switch("off"),
            "/linerate/probe/polling": entries,
        }
    )
    with Telemetry(server.path) as telemetry:
        polls = Polls(forwarder("c-l2fwd"), telemetry, probed=False)
        assert polls.read() is None
        polls.look(True)
        assert state["now"] == "on"
        assert polls.read() == [Polling.model_validate(entries[0])]
        polls.look(False)
        assert state["now"] == "off"
        assert polls.read() is None


def test_a_program_without_the_probe_has_no_figures(telemetry_server: Serve) -> None:
    server = telemetry_server({})
    with Telemetry(server.path) as telemetry:
        polls = Polls(forwarder("c-l2fwd"), telemetry, probed=False)
        polls.look(True)
        assert not polls.probed
        assert polls.read() is None


def test_each_lost_frame_is_named_once() -> None:
    """Of an interface's refusals, those that their sender does not know of."""
    at_start = Settled(
        Sent(accepted=500, received=500),
        Forwarded(rx=1000, tx=1000),
        {"forwarder port 0 imissed": 1},
        {"generator": Passed(500, 500), "forwarder": Passed(1000, 1000)},
    )
    # 3 of 100 are lost by the sender's interface and 4 by the forwarder's socket; the forwarder
    # knows of 5 of the 7 that its interface refused; the sender has no room for 10.
    at_end = Settled(
        Sent(accepted=100, received=76),
        Forwarded(rx=1093, tx=1088),
        {"forwarder port 0 imissed": 5},
        {"generator": Passed(586, 597), "forwarder": Passed(1097, 1086)},
    )
    lost = at_end.lost_since(at_start)
    assert {place: count for place, count in lost.items() if count} == {
        "forwarder port 0 imissed": 4,
        "generator not sent": 3,
        "forwarder not sent": 2,
        "generator not received": 10,
    }
    since = at_end.forwarded.since(at_start.forwarded)
    assert unattributed(at_end.sent, since, sum(lost.values())) == 0


def test_what_the_forwarder_s_ports_missed_is_told_by_port(telemetry_server: Serve) -> None:
    server = telemetry_server(
        {
            "/ethdev/stats,0": {"ipackets": 0, "opackets": 0, "imissed": 5},
            "/ethdev/stats,1": {"ipackets": 1, "opackets": 0},
        }
    )
    with Telemetry(server.path) as telemetry:
        assert missed(ToldPorts(telemetry, 2).readings()) == {
            "forwarder port 0 imissed": 5,
            "forwarder port 1 imissed": 0,
        }
