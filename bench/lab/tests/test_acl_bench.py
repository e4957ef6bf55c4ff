# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of the ACL node: rules and packets for both programs, goal, control, errors."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from linerate_bench import acl as acl_bench
from linerate_bench.acl import AGAIN, ALONE, Bench, cost_lines, draw_packets, draw_rules, table


def test_rules_differ_and_every_packet_matches_one() -> None:
    rng = random.Random(5)
    rules = draw_rules(rng, 300)
    assert len({rule.line() for rule in rules}) == 300
    assert sum(rule.denies for rule in rules) == 30
    for packet in draw_packets(rng, rules, 500):
        assert any(
            packet.source >> (32 - rule.source_bits) == rule.source >> (32 - rule.source_bits)
            and packet.destination >> (32 - rule.destination_bits)
            == rule.destination >> (32 - rule.destination_bits)
            and rule.low <= packet.ports[1] <= rule.high
            for rule in rules
        )
        frame = packet.frame()
        assert len(frame) == 60
        assert frame[26:30] == packet.source.to_bytes(4, "big")
        assert frame[34:38] == b"".join(port.to_bytes(2, "big") for port in packet.ports)
        assert packet.trace().split()[:4] == [
            str(n) for n in (packet.source, packet.destination, *packet.ports)
        ]


NODE = "acl node"


def rounds(node: float, again: float = 50.0, count: int = 12) -> list[dict[str, float]]:
    """Return cycles per packet."""
    return [
        {ALONE: 50.0 + n % 3, AGAIN: again + (n + 1) % 3, NODE: node + n % 3} for n in range(count)
    ]


@pytest.mark.parametrize(
    ("node", "state"), [(52.0, "reached"), (55.7, "not shown"), (60.0, "not reached")]
)
def test_the_goal_is_about_the_intervals_lower_end(node: float, state: str) -> None:
    rows, reasons = table(rounds(node), 1000)
    assert [(row.cell, row.arm, row.baseline) for row in rows] == [
        ("1000 rules", AGAIN, ALONE), ("1000 rules", NODE, ALONE),
    ]  # fmt: skip
    assert ([row.state for row in rows], reasons) == (["", state], [])


def test_there_is_no_verdict_when_the_lookup_differs_from_itself() -> None:
    rows, reasons = table(rounds(40.0, again=55.0), 1000)
    assert [row.state for row in rows] == ["", "no verdict"]
    assert "the A/A arm" in reasons[0]
    rows, reasons = table(rounds(40.0, count=5), 1000)
    assert rows[1].state == "no verdict"
    assert "too few valid blocks" in reasons[0]


def test_every_way_has_its_cycles() -> None:
    heading, *lines = cost_lines(rounds(60.0))
    assert heading.split() == ["cycles/packet"]
    assert [line.split() for line in lines] == [
        [ALONE, "51.0"], [AGAIN, "51.0"], ["acl", "node", "61.0"],
    ]  # fmt: skip


def test_a_peer_that_does_not_end_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(argv: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(argv, options["timeout"])

    monkeypatch.setattr(subprocess, "run", never)
    monkeypatch.setattr(acl_bench, "find", lambda: Path("dpdk-test-acl"))
    monkeypatch.setattr(Bench, "node", lambda *_: 60.0)
    monkeypatch.setattr(sys, "argv", ["acl_bench", "1", "10"])
    with pytest.raises(SystemExit, match="4"):
        acl_bench.main()
    told = capsys.readouterr().err
    assert "dpdk-test-acl: no end within" in told
    assert "fewer RULES" in told
