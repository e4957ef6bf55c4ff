# SPDX-License-Identifier: BSD-3-Clause
"""How the generator's speed is read, compared and reported."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import telemetry_server  # noqa: F401 - a fixture

from linerate.host.errors import ProcessError, TrialError
from linerate.links.eal import Memory
from linerate.telemetry.client import Telemetry
from linerate_bench import flow_costs
from linerate_bench import generator_speed as generator_bench
from linerate_bench.generator_speed import (
    BEDS,
    FLOWGEN,
    OURS,
    TXONLY,
    Bench,
    Rate,
    Round,
    check,
    check_books,
    measure,
    peer_command,
    rate,
    table,
)

NULL, NULL_RX, RING = BEDS
HZ = 2_000_000_000


def simulated(count: int, factor: float) -> list[Round]:
    """Simulate our generator `factor` times as fast as flowgen, on a machine whose speed changes
    between rounds.
    """
    source = random.Random(1)

    def noisy(pps: float) -> Rate:
        sent = pps * source.gauss(1, 0.01)
        return Rate(sent, sent / 2, 0.75)

    return [
        {
            bed.name: {
                OURS: noisy(20e6 * speed * factor),
                FLOWGEN: noisy(20e6 * speed),
                TXONLY: noisy(40e6 * speed),
            }
            for bed in BEDS
        }
        for speed in (source.choice([0.5, 1.0, 1.5]) for _ in range(count))
    ]


def test_a_rate_is_a_difference_over_the_time_for_which_the_program_ran(
    telemetry_server: Callable[[dict[str, Any]], Any],  # noqa: F811 - that fixture
) -> None:
    now = {"opackets": 1000, "ipackets": 500}
    ran = iter([5.0, 5.5, 5.5, 5.5])
    server = telemetry_server({"/ethdev/stats,0": lambda: dict(now)})

    def sleep(seconds: float) -> None:
        assert seconds == 0.01
        time.sleep(seconds)
        now["opackets"] += 3000
        now["ipackets"] += 1000

    with Telemetry(server.path) as telemetry:
        found = rate(telemetry, lambda: next(ran), 0.01, sleep)
        assert (found.sent, found.received) == (6000.0, 2000.0)
        assert 0 < found.share <= 0.5 / 0.01
        with pytest.raises(TrialError, match="did not run"):
            rate(telemetry, lambda: next(ran), 0.01, sleep)


def test_a_goal_is_about_the_lower_end_and_ratios_are_paired() -> None:
    lines = table(NULL, simulated(12, 2.1), HZ)
    ours, flowgen, txonly, against_flowgen, against_txonly = lines[2:]
    # The noise between rounds is 50 %, that of the ratio 1.4 %.
    assert against_flowgen.split()[0] == "generator/flowgen"
    assert float(against_flowgen.split()[1]) == pytest.approx(2.1, rel=0.02)
    assert against_flowgen.endswith("goal >= 2: reached")
    assert against_txonly.endswith("goal >= 1: reached")
    assert [line.split()[-1] for line in (ours, flowgen, txonly)] == ["12"] * 3
    assert ours.split()[3:5] == ["0.50", "75%"]
    mpps, cycles = (float(word) for word in ours.split()[1:3])
    assert cycles == pytest.approx(HZ / mpps / 1e6, rel=0.01)
    # A ratio above the goal whose interval reaches below it.
    assert table(NULL, simulated(12, 2.003), HZ)[5].endswith("not shown")
    assert table(NULL, simulated(12, 1.9), HZ)[6].endswith("not reached")


def test_few_rounds_reach_nothing_and_what_failed_is_absent() -> None:
    few = table(NULL, simulated(3, 5.0), HZ)
    assert all("no interval" in line and "not shown" in line for line in few[5:])
    rounds = simulated(12, 2.1)
    for each in rounds:
        del each[NULL.name][TXONLY]
    del rounds[0][NULL.name][FLOWGEN]
    lines = table(NULL, rounds, HZ)
    assert lines[3].split()[-1] == "11"
    assert lines[4].split() == ["txonly", "absent"]
    assert lines[5].endswith("goal >= 2: reached")
    assert lines[6].split() == ["generator/txonly", "absent"]


def test_a_program_that_does_something_else_is_not_compared() -> None:
    assert check(NULL, OURS, Rate(5.0, 0.0)).sent == 5.0
    assert check(NULL_RX, TXONLY, Rate(5.0, 0.0)).sent == 5.0
    assert check(RING, FLOWGEN, Rate(5.0, 5.0)).sent == 5.0
    for bed, program, found in (
        (NULL, OURS, Rate(0.0, 0.0)),
        (NULL, OURS, Rate(5.0, 1.0)),
        (NULL_RX, FLOWGEN, Rate(5.0, 0.0)),
        (NULL_RX, TXONLY, Rate(5.0, 5.0)),
        (RING, OURS, Rate(5.0, 0.0)),
    ):
        with pytest.raises(TrialError, match=rf"{program} .* on {bed.name}"):
            check(bed, program, found)


def test_the_books_of_generator_and_driver_agree() -> None:
    check_books(NULL, 10_000, 0, {"opackets": 10_000})
    check_books(RING, 10_000, 9_000, {"opackets": 10_000})
    with pytest.raises(TrialError, match="counted 10000"):
        check_books(NULL, 10_000, 0, {"opackets": 9_999})
    with pytest.raises(TrialError, match="1000 of 10000 frames came back"):
        check_books(RING, 10_000, 1_000, {"opackets": 10_000})


def test_each_round_has_every_program_on_every_link_in_its_own_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[str, str]] = []

    def ours(bench: object, bed: generator_bench.Bed) -> tuple[Rate, int]:
        ran.append((bed.name, OURS))
        return Rate(2.0, 0.0), HZ

    def theirs(bench: object, bed: generator_bench.Bed, mode: str) -> Rate:
        ran.append((bed.name, mode))
        if (bed, mode) == (RING, FLOWGEN):
            raise ProcessError("testpmd flowgen was killed by signal 9")
        return Rate(1.0, 0.0)

    monkeypatch.setattr(generator_bench, "ours", ours)
    monkeypatch.setattr(generator_bench, "theirs", theirs)
    source, orders = random.Random(1), []
    for _ in range(3):
        ran.clear()
        found, hz = measure(Bench(None, 1, Memory(False)), source)  # type: ignore[arg-type]
        assert hz == HZ
        assert sorted(ran) == sorted(
            (bed.name, program) for bed in BEDS for program in bed.programs
        )
        assert found[RING.name] == {OURS: Rate(2.0, 0.0)}
        assert set(found[NULL.name]) == {OURS, FLOWGEN, TXONLY}
        orders.append(tuple(ran))
    assert len(set(orders)) == 3
    assert "killed by signal 9" in capsys.readouterr().err


def test_testpmd_polls_on_the_one_cpu_and_waits_on_its_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    command = peer_command(FLOWGEN, NULL, 1, Memory(False), "prefix")
    assert command.cpus == (1,)
    assert command.hold_stdin
    assert command.argv[:3] == ("/usr/bin/dpdk-testpmd", "--lcores", "(0,1)@1")
    for option in ("--no-huge", "net_null0,size=60,no-rx=1", "--forward-mode=flowgen",
                   "--txpkts=60", "--burst=32", "--total-num-mbufs=16384"):  # fmt: skip
        assert option in command.argv


def test_costs_of_flows_are_medians_and_the_longest_wait() -> None:
    one, many = flow_costs.CASES[0], flow_costs.Case(16_384, "tag as sent")
    rounds = [
        {one: flow_costs.Figures(cycles, 1.0, 0.001, 0.002, 0.003, held_up)}
        for cycles, held_up in ((40.0, 0.01), (90.0, 0.5), (42.0, 0.02))
    ]
    head, first, *others = flow_costs.table(rounds)
    assert head.split() == ["cycles/frame", "MiB", "set", "start", "metrics", "held", "up"]
    assert first.split() == ["1", "flow", "42.0", "1", "1", "ms", "2", "ms", "3", "ms", "500", "ms"]
    assert all(line.endswith("absent") for line in others)
    assert many.name == "16,384 flows, tag as sent"
    made = flow_costs.configuration(many)["flows"]
    assert len(made) == 16_384
    assert "metric_tags" in made[-1]["packet"][2]["udp"]["src_port"]
    assert "metric_tags" not in str(flow_costs.configuration(one))
