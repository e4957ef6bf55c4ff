# SPDX-License-Identifier: BSD-3-Clause
"""What the ACL node is compared with: rules and packets that both programs are given."""

from __future__ import annotations

import random

from linerate.acl_bench import ALONE, draw_packets, draw_rules, table


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


def test_the_goal_is_about_the_intervals_lower_end() -> None:
    near = [{ALONE: 50.0 + n % 3, "acl node": 52.0 + n % 3} for n in range(12)]
    far = [{ALONE: 50.0 + n % 3, "acl node": 60.0 + n % 3} for n in range(12)]
    assert "goal 0.9: reached" in table(near)[2]
    assert "goal 0.9: not reached" in table(far)[2]
    assert table(near[:2])[2].count("goal") == 0
