# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, payloads, checksums that are wrong on purpose, and the generator's own mark in frames."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pytest
from frames import checksum, drawn, ethernet, ipv4, ones_sum, udp
from harness import Generator, run, sent
from traffic import FCS, captured_flow, errors, flow_metrics

pytest_plugins = ["rig"]

MAC_A, MAC_B = "02:00:00:00:00:01", "02:00:00:00:00:02"
A4, B4 = "198.18.0.1", "198.19.0.1"


def udp_flow(flow: Any) -> tuple[Any, Any]:
    """Ethernet, IPv4 and UDP with constant fields; IPv4 and UDP to change them."""
    eth, ip, udp_ = flow.packet.ethernet().ipv4().udp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip.src.value, ip.dst.value = A4, B4
    udp_.src_port.value, udp_.dst_port.value = 7, 9
    return ip, udp_


def udp_frame(payload: bytes) -> bytes:
    return ethernet(MAC_B, MAC_A, 0x800, ipv4(A4, B4, 17, udp(A4, B4, 7, 9, payload)))


def sizes_of(frames: list[bytes]) -> list[int]:
    return [len(frame) + FCS for frame in frames]


@pytest.mark.parametrize("size", [64, 65, 511, 1518])
def test_fixed_sizes(running: Generator, size: int) -> None:
    config, flow = captured_flow(10)
    udp_flow(flow)
    flow.size.fixed = size
    assert sent(running, config) == [udp_frame(bytes(size - 46))] * 10


def test_sizes_that_increase(running: Generator) -> None:
    config, flow = captured_flow(12)
    udp_flow(flow)
    steps = flow.size.increment
    steps.start, steps.end, steps.step = 100, 400, 70
    found = sent(running, config)
    assert sizes_of(found) == [100, 170, 240, 310, 380] * 2 + [100, 170]
    assert found == [udp_frame(bytes(size - 46)) for size in sizes_of(found)]


def test_random_sizes(running: Generator) -> None:
    config, flow = captured_flow(2000)
    udp_flow(flow)
    flow.size.random.min, flow.size.random.max = 64, 127
    first = sent(running, config)
    assert first == [udp_frame(bytes(size - 46)) for size in drawn(1, 64, 127, 2000)]
    assert set(sizes_of(first)) == set(range(64, 128))
    assert sent(running, config) == first


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("imix", {64: 700, 570: 400, 1518: 100}),
        ("standard_imix", {64: 6067, 594: 2366, 1518: 1567}),
    ],
)
def test_named_mixes_have_exact_shares(
    running: Generator, name: str, shares: dict[int, int]
) -> None:
    config, flow = captured_flow(sum(shares.values()))
    udp_flow(flow)
    flow.size.weight_pairs.predefined = name
    found = sent(running, config)
    assert Counter(sizes_of(found)) == shares
    assert all(frame == udp_frame(bytes(len(frame) - 42)) for frame in found)
    # Spread evenly, not one size after the other: so is every tenth of them.
    tenth = Counter(sizes_of(found[: len(found) // 10]))
    assert all(abs(tenth[size] - count / 10) <= 1 for size, count in shares.items())


def test_weights_of_ones_own(running: Generator) -> None:
    config, flow = captured_flow(1000)
    udp_flow(flow)
    for size, weight in [(64, 7), (128, 2.5), (1024, 0.5)]:
        flow.size.weight_pairs.custom.add(size=size, weight=weight)
    assert Counter(sizes_of(sent(running, config))) == {64: 700, 128: 250, 1024: 50}


@pytest.mark.parametrize(
    ("choice", "payload"),
    [
        ("increment_byte", bytes(k % 256 for k in range(600))),
        ("decrement_byte", bytes(255 - k % 256 for k in range(600))),
        ("increment_word", struct.pack(">300H", *range(300))),
        ("decrement_word", struct.pack(">300H", *range(65535, 65235, -1))),
    ],
)
def test_payloads_that_count(running: Generator, choice: str, payload: bytes) -> None:
    config, flow = captured_flow(3)
    udp_flow(flow)
    flow.payload.choice = choice
    flow.size.fixed = 646
    assert sent(running, config) == [udp_frame(payload)] * 3


@pytest.mark.parametrize("repeat", [True, False])
def test_payloads_of_a_pattern(running: Generator, repeat: bool) -> None:
    config, flow = captured_flow(3)
    udp_flow(flow)
    flow.payload.fixed.pattern, flow.payload.fixed.repeat = "c0ffee01", repeat
    flow.size.fixed = 100
    payload = (b"\xc0\xff\xee\x01" * (14 if repeat else 1)).ljust(54, b"\0")[:54]
    assert sent(running, config) == [udp_frame(payload)] * 3


def test_checksums_that_are_wrong_on_purpose(running: Generator) -> None:
    right = udp_frame(bytes(18))
    for where, at in (("ip", 24), ("udp", 40)):
        config, flow = captured_flow(2)
        ip, udp_ = udp_flow(flow)
        field = ip.header_checksum if where == "ip" else udp_.checksum
        field.generated = field.BAD
        for frame in sent(running, config):
            assert frame[:at] + frame[at + 2 :] == right[:at] + right[at + 2 :]
            # A UDP checksum of 0 would mean that there is none.
            assert frame[at : at + 2] not in (right[at : at + 2], b"\0\0")
        field.custom = 0xBEEF
        for frame in sent(running, config):
            assert frame == right[:at] + b"\xbe\xef" + right[at + 2 :]


@pytest.mark.parametrize("header", ["tcp", "icmp"])
def test_other_checksums_can_be_wrong_too(running: Generator, header: str) -> None:
    found = {}
    for word in ("good", "bad"):
        config, flow = captured_flow(1)
        _, _, last = getattr(flow.packet.ethernet().ipv4(), header)()
        field = last.checksum if header == "tcp" else last.echo.checksum
        field.generated = word
        (found[word],) = sent(running, config)
    at = 34 + (16 if header == "tcp" else 2)
    good, bad = found["good"], found["bad"]
    assert good[:at] + good[at + 2 :] == bad[:at] + bad[at + 2 :]
    assert good[at : at + 2] != bad[at : at + 2]


@pytest.mark.parametrize("size", [64, 77])
def test_frames_with_metrics_end_in_the_generators_mark(running: Generator, size: int) -> None:
    config, flow = captured_flow(50)
    udp_flow(flow)
    flow.payload.choice = "increment_byte"
    flow.size.fixed = size
    flow.metrics.enable = flow.metrics.latency.enable = True
    found = sent(running, config)
    at = (size - FCS - 18) & ~1
    for k, frame in enumerate(found):
        # The UDP checksum covers what stands in the frame.
        payload = frame[42:]
        assert frame == udp_frame(payload)
        assert payload[: at - 42] == bytes(range(at - 42))
        magic, _, index, sequence, stamp, check = (
            frame[at : at + 3],
            frame[at + 3],
            frame[at + 4 : at + 6],
            frame[at + 6 : at + 10],
            frame[at + 10 : at + 16],
            frame[at + 16 : at + 18],
        )
        assert (magic, index) == (b"\x4c\x52\x9d", b"\0\0")
        assert int.from_bytes(sequence, "big") == k
        assert stamp != bytes(6)
        assert int.from_bytes(check, "big") == checksum(frame[at : at + 16])
        assert ones_sum(frame[at : at + 18]) == 0xFFFF
    metrics = flow_metrics(running.api)["f"]
    assert (metrics.frames_rx, metrics.bytes_rx) == (50, 50 * size)


@pytest.mark.parametrize(
    ("size", "mark"), [(62 + FCS, "fields"), (71 + FCS, "short"), (80 + FCS, "full")]
)
def test_the_mark_is_the_longest_that_has_room(running: Generator, size: int, mark: str) -> None:
    """Headers of 62 bytes."""
    config, flow = captured_flow(40)
    flow.packet.ethernet().ipv6().udp()
    flow.payload.choice = "increment_byte"
    flow.size.fixed = size
    flow.metrics.enable = flow.metrics.loss = True
    frames = sent(running, config)
    # What the flow sends without metrics.
    flow.metrics.enable = False
    plain = sent(running, config)
    flow.metrics.enable = True
    metric = run(running.api, config)["f"]
    assert running.flow("f")["mark"] == mark
    assert (metric.frames_tx, metric.frames_rx, metric.loss) == (40, 40, 0)
    if mark == "fields":
        assert frames == plain
        return
    at = (size - FCS - (8 if mark == "short" else 18)) & ~1
    for k, (frame, other) in enumerate(zip(frames, plain, strict=True)):
        # Only the mark and the checksum over it differ.
        assert frame[:60] + frame[62:at] == other[:60] + other[62:at]
        if mark == "short":
            run_and_flow, sequence, check = struct.unpack(">HIH", frame[at : at + 8])
            assert (run_and_flow & 0x3FFF, sequence) == (0, k)
            assert check == checksum(frame[at : at + 6] + b"\x4c\x52")
            assert frame[at + 8 :] == bytes(len(frame) - at - 8)


def test_a_frame_too_small_for_its_headers_is_refused(running: Generator) -> None:
    config, flow = captured_flow(1)
    flow.packet.ethernet().ipv6().udp()
    flow.size.fixed = 64
    for flow.metrics.enable in (False, True):
        (error,) = errors(lambda: running.api.set_config(config))
        assert error == (
            "flows[0].size: a frame of 64 bytes has no room for ethernet/ipv6/udp headers "
            "(62 bytes): 66 bytes or more"
        )
    # Latency needs the full mark.
    flow.size.fixed = 66
    flow.metrics.latency.enable = True
    (error,) = errors(lambda: running.api.set_config(config))
    assert error.startswith("flows[0].size: a frame of 66 bytes has no room")
    assert "84 bytes or more" in error
