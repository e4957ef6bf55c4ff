# SPDX-License-Identifier: BSD-3-Clause
"""The probe's latency is right: the forwarder waits a known time and measures itself.

For every burst the program reads the clock directly inside and directly outside of what the probe
measures. These are bounds for the probe's figures, whatever else the machine does meanwhile.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from probe_examples import Program, build, own_books, probe_books

BURST = 32
# A counter of an HDR histogram of two digits holds values that differ by less than 1 %.
PRECISION = 1.01
# What the probe may see beyond what the program saw, at best and mostly: it stamps 32 packets and
# looks for 32 stamps, which is less than 200 cycles where packets are in the cache. Beside it the
# clock is read.
DISTANCE_CYCLES = 1000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build()


class Run:
    """What the program measured, burst by burst, and what the probe measured."""

    def __init__(
        self, directory: Path, one_in: int, device: str = "net_null1", **options: Any
    ) -> None:
        words = [f"{name}={value}" for name, value in options.items()]
        environment = {"LINERATE_PROBE_ONE_IN": str(one_in)}
        with Program(
            directory, "waiting", ["net_null0", device], words, environment=environment
        ) as program:
            self.told = program.next()
            assert probe_books(program) == own_books(
                {"books": [{"lcore": 0, "queues": self.told["books"]}]}
            )
            (self.found,) = program.ask("/linerate/latency,1,0")
            self.clock_cycles = program.ask("/linerate/clock")["clock_cost_cycles"]
            self.stamped = program.ask("/linerate/probe")["stamped"]
            assert program.end() == 0
        assert self.found["span"] == "rx-return_tx-call"
        assert self.found["one_in"] == one_in
        self.inside = sorted(self.told["inside"])
        self.outside = sorted(self.told["outside"])
        self.histogram = HdrHistogram.decode("".join(self.found["hdr"]).encode())
        assert self.histogram.get_total_count() == self.found["count"]


def test_every_burst_is_measured_as_long_as_it_took(tmp_path: Path) -> None:
    bursts, wait = 4000, 20_000
    run = Run(tmp_path, 1, bursts=bursts, wait=wait, longer=wait, every=1, way="plain")
    found, inside, outside = run.found, run.inside, run.outside
    assert found["sampled"] == bursts
    assert found["count"] == run.stamped == bursts * BURST
    # Every burst of the probe lies between the two readings of the same burst: so do least, mean,
    # greatest, and any percentile, for the values in order lie between the readings in order.
    assert wait <= inside[0] <= found["min_tsc"] <= outside[0]
    assert sum(inside) // bursts <= found["mean_tsc"] <= sum(outside) / bursts
    assert inside[-1] <= found["max_tsc"] <= outside[-1]
    for percent in (1, 10, 25, 50, 75, 90, 99, 99.9):
        at = math.ceil(bursts * percent / 100) - 1
        value = run.histogram.get_value_at_percentile(percent)
        assert inside[at] / PRECISION <= value <= outside[at] * PRECISION, percent
    # Where nothing else got in between it is near to what the program saw.
    near = DISTANCE_CYCLES + 4 * run.clock_cycles
    assert found["min_tsc"] - inside[0] < near
    middle = inside[bursts // 2]
    assert run.histogram.get_value_at_percentile(50) < (middle + near) * PRECISION


def test_two_waits_have_their_shares(tmp_path: Path) -> None:
    bursts, waits, every = 4000, (10_000, 40_000), 4
    run = Run(tmp_path, 1, bursts=bursts, wait=waits[0], longer=waits[1], every=every, way="plain")
    # A quarter of them waits for longer; whatever held a burst up, the program knows of it.
    longer = [sum(each >= waits[1] for each in spans) for spans in (run.inside, run.outside)]
    assert bursts // every <= longer[0] <= longer[1]
    counted = {"shorter": 0, "longer": 0}
    for item in run.histogram.get_recorded_iterator():
        kind = "longer" if item.value_iterated_to * PRECISION >= waits[1] else "shorter"
        counted[kind] += item.count_added_in_this_iter_step
    assert longer[0] <= counted["longer"] / BURST <= longer[1]
    assert counted["shorter"] + counted["longer"] == bursts * BURST


def test_one_burst_in_some_shows_the_same_shares(tmp_path: Path) -> None:
    bursts, waits, every, one_in = 24_000, (3_000, 12_000), 4, 8
    run = Run(
        tmp_path, one_in, bursts=bursts, wait=waits[0], longer=waits[1], every=every, way="plain"
    )
    sampled = run.found["sampled"]
    assert run.found["count"] == run.stamped == sampled * BURST
    # The distances between stamps are uniform on 1 .. 2 N - 1: N on average, deviation N / sqrt(3).
    expected = bursts / one_in
    assert abs(sampled - expected) < 6 * math.sqrt(expected / 3)
    # No rhythm of the program's (every fourth waits longer) is met always or never.
    split = math.sqrt(waits[0] * waits[1])
    share = sum(
        item.count_added_in_this_iter_step
        for item in run.histogram.get_recorded_iterator()
        if item.value_iterated_to > split
    ) / (sampled * BURST)
    truth = sum(each > split for each in run.inside) / bursts
    assert abs(share - truth) < 6 * math.sqrt(truth * (1 - truth) / sampled)


@pytest.mark.parametrize("way", ["drop", "copy", "clone"])
def test_a_received_packet_counts_once_at_most(tmp_path: Path, way: str) -> None:
    bursts = 500
    run = Run(tmp_path, 1, bursts=bursts, wait=1000, longer=1000, every=1, way=way)
    assert run.told["refused"] == 0
    packets = run.told["packets"]
    assert packets == run.stamped == bursts * BURST
    # Dropped packets never leave. Copies and clones were not received, though they carry what was
    # on the packet that they are of.
    assert run.told["offered"] == {"drop": packets // 2, "copy": 2 * packets}.get(way, packets)
    assert run.found["count"] == (packets // 2 if way == "drop" else packets)
    assert run.found["sampled"] == bursts


def test_a_packet_that_is_offered_again_counts_when_it_was_offered_first(tmp_path: Path) -> None:
    bursts = 500
    # A ring that nobody empties.
    run = Run(tmp_path, 1, "net_ring1", bursts=bursts, wait=5000, longer=5000, every=1, way="again")
    assert run.told["refused"] > bursts // 2
    assert run.found["count"] == run.told["packets"] == bursts * BURST
    assert run.found["sampled"] == bursts
    assert run.inside[0] <= run.found["min_tsc"] <= run.outside[0]
    assert run.inside[-1] <= run.found["max_tsc"] <= run.outside[-1]
