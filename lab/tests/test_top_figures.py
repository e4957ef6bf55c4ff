# SPDX-License-Identifier: BSD-3-Clause
"""What two samples show about the time between them: differences, averages, and unknowns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import by_schema
import pytest
from probed import TSC_HZ, latency_entry, polling_entry, port_stats

from linerate.telemetry.top import figures
from linerate.telemetry.top.discover import Program
from linerate.telemetry.top.figures import Figures
from linerate.telemetry.top.sample import (
    NO_LCORE,
    Clock,
    Latency,
    LcoreUsage,
    Link,
    Polling,
    Port,
    PortStats,
    Probe,
    Sample,
)

SECOND = 1e9


def port(step: int, at_s: float, **changes: int) -> Port:
    stats = PortStats.model_validate(port_stats(step, **changes))
    return Port("net_null0", Link(status="UP", speed=10000), stats, at_s * SECOND)


def polling(entries: list[dict[str, Any]]) -> dict[tuple[int, int, int], Polling]:
    parsed = [Polling.model_validate(entry) for entry in entries]
    return {entry.key: entry for entry in parsed}


def sample(
    at_s: float,
    entries: list[dict[str, Any]] | None = None,
    measured: list[dict[str, Any]] | None = None,
    ports: dict[int, Port] | None = None,
    usage: LcoreUsage | None = None,
    *,
    probe: Probe | None = None,
) -> Sample:
    parsed = [Latency.model_validate(entry) for entry in measured or []]
    return Sample(
        at_ns=at_s * SECOND,
        ports=ports or {},
        clock=Clock(tsc_hz=TSC_HZ, clock_cost_cycles=20),
        polling=None if entries is None else polling(entries),
        polling_at_ns=at_s * SECOND,
        latency=None if measured is None else {entry.key: entry for entry in parsed},
        usage=usage,
        probe=probe,
    )


def compare(before: Sample, now: Sample) -> Figures:
    program = Program("p", Path("/run/dpdk/p/dpdk_telemetry.v2"), 7, "l2fwd")
    return figures.compare(program, "DPDK 22.11.11", before, now, datetime.now(UTC))


def test_rates_of_a_port() -> None:
    found = figures.port_figures(0, port(1, 10), port(3, 12))
    assert found.rx_mpps == pytest.approx(14.88)
    assert found.tx_mpps == pytest.approx(14.0)
    assert found.rx_gbps == pytest.approx(14.88e6 * 60 * 8 / 1e9)
    assert found.imissed_per_s == pytest.approx(1234)
    assert found.ierrors_per_s == 0
    assert (found.name, found.link, found.speed_mbps) == ("net_null0", "up", 10000)


def test_a_port_without_a_past_or_with_counters_that_fell_has_no_rates() -> None:
    reset = port(3, 12, imissed=0)
    for found in (figures.port_figures(0, None, port(3, 12)),
                  figures.port_figures(0, port(1, 10), reset)):  # fmt: skip
        assert found.rx_mpps is found.imissed_per_s is found.rx_gbps is None
        assert found.name == "net_null0"


def test_a_driver_that_counts_no_bytes_has_no_gbits() -> None:
    found = figures.port_figures(0, port(1, 1, ibytes=0), port(2, 2, ibytes=0))
    assert found.rx_mpps == pytest.approx(14.88)
    assert found.rx_gbps is None
    idle = figures.port_figures(0, port(1, 1), port(1, 2))
    assert (idle.rx_mpps, idle.rx_gbps) == (0, 0)


@pytest.mark.parametrize(
    ("rx", "tx", "expected"),
    [
        (10.0, 9.0, 1.0),
        (10.0, 9.995, None),  # less than a millisecond of traffic
        (10.0, 0.0, None),  # only receives
        (9.0, 10.0, None),
        (None, 9.0, None),
        (0.0, 0.0, None),
    ],
)
def test_what_was_received_and_not_sent(
    rx: float | None, tx: float, expected: float | None
) -> None:
    assert figures.unsent(rx, tx, 1.0) == expected


def test_bytes_that_a_port_no_longer_tells_are_absent() -> None:
    """For example xdp-fwd's, once a driver has refused frames."""
    without = port_stats(2)
    del without["obytes"]
    stats = PortStats.model_validate(without)
    silent = Port("net_xdp0", Link(status="UP", speed=10000), stats, SECOND)
    found = compare(sample(0, ports={0: port(1, 0)}), sample(1, ports={0: silent})).ports[0]
    assert found.tx_gbps is None
    assert found.tx_mpps is not None
    assert found.rx_gbps is not None


def test_sums_over_ports_need_every_port() -> None:
    both = compare(
        sample(0, ports={0: port(1, 0), 1: port(1, 0)}),
        sample(1, ports={0: port(2, 1), 1: port(2, 1)}),
    )
    assert both.rx_mpps == pytest.approx(2 * 14.88)
    new = compare(sample(0, ports={0: port(1, 0)}), sample(1, ports={0: port(2, 1), 1: port(2, 1)}))
    assert new.rx_mpps is None


def test_polling_of_a_queue() -> None:
    found = compare(sample(0, [polling_entry(1, 0, 0, 1)]), sample(2, [polling_entry(1, 0, 0, 3)]))
    assert found.lcores is not None
    lcore = found.lcores[0]
    assert lcore.lcore == 1
    assert lcore.busy_share == pytest.approx(0.25)
    assert lcore.empty_polls_share == pytest.approx(0.5)
    assert lcore.average_rx_burst == pytest.approx(410 / 60)
    assert lcore.average_nonempty_rx_burst == pytest.approx(410 / 30)
    assert lcore.full_polls_share == pytest.approx(10 / 60)
    assert lcore.busy_cycles_per_packet == pytest.approx(100)
    assert lcore.rx_mpps == pytest.approx(0.41)
    assert lcore.burst_histogram is not None
    assert sum(lcore.burst_histogram) == 120_000
    assert lcore.queues[0].port == lcore.queues[0].queue == 0


def test_queues_of_an_lcore_add_up_their_busy_time_but_not_the_whole() -> None:
    queues = [(1, 0, 0), (1, 1, 0), (2, 1, 1)]
    found = compare(
        sample(0, [polling_entry(*queue, 1) for queue in queues]),
        sample(1, [polling_entry(*queue, 2) for queue in queues]),
    )
    assert found.lcores is not None
    assert [lcore.lcore for lcore in found.lcores] == [1, 2]
    assert found.lcores[0].busy_share == pytest.approx(0.5)
    assert [queue.busy_share for queue in found.lcores[0].queues] == pytest.approx([0.25, 0.25])
    assert found.lcores[0].busy_cycles_per_packet == pytest.approx(100)
    assert found.lcores[1].busy_share == pytest.approx(0.25)


def test_a_queue_that_appears_began_within_the_interval() -> None:
    found = compare(
        sample(0, [polling_entry(1, 0, 0, 1)]),
        sample(1, [polling_entry(1, 0, 0, 2), polling_entry(1, 1, 0, 1)]),
    )
    assert found.lcores is not None
    assert found.lcores[0].rx_mpps == pytest.approx(0.82)
    assert found.lcores[0].queues[1].average_rx_burst == pytest.approx(410 / 60)


def test_a_list_that_appears_says_nothing_of_the_interval() -> None:
    found = compare(sample(0), sample(1, [polling_entry(1, 0, 0, 5)]))
    assert found.lcores is not None
    assert found.lcores[0].lcore == 1
    assert found.lcores[0].rx_mpps is found.lcores[0].busy_share is None


def test_counters_that_fell_make_their_queue_and_its_lcore_unknown() -> None:
    found = compare(
        sample(0, [polling_entry(1, 0, 0, 9), polling_entry(1, 1, 0, 1)]),
        sample(1, [polling_entry(1, 0, 0, 1), polling_entry(1, 1, 0, 2)]),
    )
    assert found.lcores is not None
    lcore = found.lcores[0]
    assert lcore.rx_mpps is lcore.queues[0].rx_mpps is None
    assert lcore.queues[1].rx_mpps == pytest.approx(0.41)


def test_busy_time_that_began_before_the_interval_is_not_of_it() -> None:
    """For a program that was stopped: its next poll counts the whole pause as busy."""
    paused = polling_entry(1, 0, 0, 2, busy_tsc=41_000_000 + 170_000_000)
    before = [polling_entry(1, 0, 0, 1), polling_entry(1, 1, 0, 1)]
    found = compare(sample(0, before), sample(1, [paused, polling_entry(1, 1, 0, 2)])).lcores
    assert found is not None
    queue, other = found[0].queues
    for one in (found[0], queue):
        assert one.busy_share is one.busy_cycles_per_packet is None
        assert one.busy_from_before
        assert one.average_rx_burst == pytest.approx(410 / 60)
    assert other.busy_share == pytest.approx(0.25)
    assert other.busy_from_before is None
    # Two queues that only together were busy for longer than the interval.
    both = [polling_entry(1, port, 0, 2, busy_tsc=141_000_000) for port in (0, 1)]
    found = compare(sample(0, before), sample(1, both)).lcores
    assert found is not None
    assert found[0].busy_share is None
    assert found[0].busy_from_before
    assert found[0].queues[0].busy_share == pytest.approx(100 / 164)
    # A delay that reading may cause is no pause.
    full = polling_entry(1, 0, 0, 2, busy_tsc=41_000_000 + 165_000_000)
    found = compare(sample(0, before[:1]), sample(1, [full])).lcores
    assert found is not None
    assert (found[0].busy_share, found[0].busy_from_before) == (1, None)


def test_the_programs_own_busy_cycles_may_exceed_the_interval_too() -> None:
    before = LcoreUsage(lcore_ids=(1,), total_cycles=(100,), busy_cycles=(50,))
    now = LcoreUsage(lcore_ids=(1,), total_cycles=(200,), busy_cycles=(190,))
    found = compare(sample(0, usage=before), sample(1, usage=now)).lcores
    assert found is not None
    assert (found[0].busy_share, found[0].busy_from_before) == (None, True)


def test_averages_of_nothing_are_unknown() -> None:
    idle = [polling_entry(1, 0, 0, 1)]
    found = compare(sample(0, idle), sample(1, idle))
    assert found.lcores is not None
    lcore = found.lcores[0]
    assert lcore.rx_mpps == 0
    assert lcore.busy_share is lcore.average_rx_burst is lcore.busy_cycles_per_packet is None
    empty = polling_entry(
        1, 0, 0, 2, packets=410_000, empty_polls=90_000, busy_tsc=41_000_000,
        burst_histogram=[90_000, 10_000, 0, 0, 0, 0, 0, 0, 10_000] + [0] * 23 + [10_000],
    )  # fmt: skip
    found = compare(sample(0, idle), sample(1, [empty]))
    assert found.lcores is not None
    lcore = found.lcores[0]
    assert (lcore.average_rx_burst, lcore.empty_polls_share, lcore.busy_share) == (0, 1, 0)
    assert lcore.average_nonempty_rx_burst is lcore.busy_cycles_per_packet is None


def test_threads_without_an_lcore_id_have_no_busy_share_together() -> None:
    queues = [(NO_LCORE, 0, 0), (NO_LCORE, 1, 0)]
    found = compare(
        sample(0, [polling_entry(*queue, 1) for queue in queues]),
        sample(1, [polling_entry(*queue, 2) for queue in queues]),
    )
    assert found.lcores is not None
    assert found.lcores[0].lcore is None
    assert found.lcores[0].busy_share is None
    assert found.lcores[0].queues[0].busy_share == pytest.approx(0.25)
    assert found.lcores[0].rx_mpps == pytest.approx(0.82)


def test_histograms_longer_than_the_limit_cut_or_absent() -> None:
    def full(limit: int, histogram: tuple[int, ...] | None) -> int | None:
        entry = polling_entry(1, 0, 0, 1, burst_limit=limit, burst_histogram=histogram)
        return figures.full_polls(Polling.model_validate(entry))

    assert full(4, (9, 1, 1, 1, 5, 0, 2)) == 7
    assert full(511, (0,) * 511 + (3,)) == 3
    assert full(512, (0,) * 511 + (3,)) is None
    assert full(4, None) is None
    short, long = polling_entry(1, 0, 0, 1), polling_entry(1, 0, 0, 2)
    long["burst_histogram"] += [0, 7]
    found = figures.polled(Polling.model_validate(short), Polling.model_validate(long))
    assert found is not None
    assert found.burst_histogram is not None
    assert found.burst_histogram[-2:] == (0, 7)


def test_latency_of_the_interval_alone() -> None:
    now = latency_entry(0, 0, 3)
    found = compare(sample(0, measured=[latency_entry(0, 0, 1)]), sample(1, measured=[now]))
    assert found.latency is not None
    entry = found.latency[0]
    assert (entry.packets, entry.one_in, entry.span) == (200, 64, "rx-return_tx-call")
    assert entry.p50_cycles is not None
    assert entry.max_cycles == now["max_tsc"]
    assert entry.p50_ns == pytest.approx(entry.p50_cycles * 1e9 / TSC_HZ, abs=0.1)
    steps = [entry.p50_cycles, entry.p90_cycles, entry.p99_cycles, entry.p999_cycles]
    assert steps == sorted(steps, key=lambda value: value or 0)


def test_latency_without_packets_with_a_new_queue_and_after_a_restart() -> None:
    none: dict[str, Any] = {
        "port": 0, "queue": 0, "span": "rx-return_tx-call", "sampled": 0, "one_in": 64, "count": 0,
    }  # fmt: skip
    idle, busy = sample(0, measured=[none]), sample(1, measured=[latency_entry(0, 0, 1)])
    for before, now, packets in (
        (idle, idle, 0),
        (busy, busy, 0),
        (idle, busy, 100),
        (sample(0, measured=[]), busy, 100),
        (busy, idle, None),
        (sample(0), busy, None),
    ):
        found = compare(before, now).latency
        assert found is not None
        assert found[0].packets == packets
        assert (found[0].p50_cycles is None) == (not packets)


def test_the_programs_own_cycles_stand_in_where_nobody_counts_polls() -> None:
    before = LcoreUsage(lcore_ids=(1, 2), total_cycles=(100, 100), busy_cycles=(50, 50))
    now = LcoreUsage(lcore_ids=(1, 2, 3), total_cycles=(300, 90, 5), busy_cycles=(100, 60, 5))
    found = compare(sample(0, usage=before), sample(1, usage=now)).lcores
    assert found is not None
    assert [(lcore.lcore, lcore.busy_share) for lcore in found] == [(1, 0.25), (2, None), (3, None)]
    assert {lcore.busy_by for lcore in found} == {"program"}
    assert compare(sample(0), sample(1)).lcores is None


@pytest.mark.parametrize(
    ("before", "now", "expected"), [(5, 12, 7), (5, 5, 0), (12, 5, None), (None, 5, None)]
)
def test_packets_stamped_in_the_interval(
    before: int | None, now: int, expected: int | None
) -> None:
    then, after = (
        Probe(version="0.1.0", polling="on", one_in=64, stamped=count) for count in (before, now)
    )
    found = compare(sample(0, probe=then), sample(1, probe=after)).probe
    assert found is not None
    assert found.stamped == expected


def test_json_is_by_its_schema_and_leaves_out_what_is_absent() -> None:
    found = compare(
        sample(0, [polling_entry(1, 0, 0, 1)], [latency_entry(0, 0, 1)], {0: port(1, 0)}),
        sample(1, [polling_entry(1, 0, 0, 2)], [latency_entry(0, 0, 2)], {0: port(2, 1)}),
    )
    line = figures.dump(found)
    assert "\n" not in line
    assert ":null" not in line
    by_schema.check(json.loads(line), "top-1.json")
    bare = json.loads(figures.dump(compare(sample(0), sample(1))))
    assert not {"lcores", "latency", "probe", "rx_mpps"} & set(bare)
    by_schema.check(bare, "top-1.json")
