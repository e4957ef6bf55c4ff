# SPDX-License-Identifier: BSD-3-Clause
"""Captures of what a port receives, as snappi's users ask for them and get them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from frames import ip, read_pcap, read_pcapng
from harness import Generator, eventually, generator, sent
from scapy.utils import rdpcap
from traffic import (
    capture,
    captured,
    captured_flow,
    errors,
    port_metrics,
    transmit,
    without_fcs,
)

pytest_plugins = ["rig"]


def numbered(count: int) -> tuple[Any, Any]:
    """A flow whose frame k has the destination 198.19.0.k."""
    config, flow = captured_flow(count)
    _, ipv4, _ = flow.packet.ethernet().ipv4().udp()
    ipv4.dst.increment.start, ipv4.dst.increment.count = "198.19.0.0", 65536
    return config, config.captures[0]


def numbers(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[32:34], "big") for frame in frames]


def received(running: Generator, count: int) -> None:
    eventually(lambda: port_metrics(running.api)["p1"].frames_rx == count)


def test_pcapng_has_the_same_frames_and_its_statistics(running: Generator) -> None:
    config, settings = numbered(300)
    plain = sent(running, config)
    settings.format = "pcapng"
    api = running.api
    api.set_config(config)
    begin = time.time_ns()
    capture(api, "start", ["p1"])
    assert port_metrics(api)["p1"].capture == "started"
    transmit(api, "start")
    received(running, 300)
    capture(api, "stop", ["p1"])
    assert port_metrics(api)["p1"].capture == "stopped"
    file = read_pcapng(captured(api, "p1"))
    assert file.interface == "p1"
    assert [without_fcs(record.data) for record in file.records] == plain
    assert file.fcs_len == 4
    # Received, dropped, accepted by the filter, delivered.
    assert file.statistics == {4: 300, 5: 0, 6: 300, 8: 300}
    stamps = [record.nanoseconds for record in file.records]
    # The clock of the day, within what a virtual machine's clocks differ.
    assert begin - 10**8 < stamps[0] <= stamps[-1] < time.time_ns() + 10**8
    # 300 frames at 20,000 a second.
    assert 299 / 20_000 - 0.005 < (stamps[-1] - stamps[0]) / 1e9 < 1


def test_a_filter_takes_what_it_names(running: Generator) -> None:
    config, settings = numbered(512)
    wanted = settings.filters.add()
    wanted.ipv4.dst.value, wanted.ipv4.dst.mask = ip("198.19.1.0").hex(), "ffffff00"
    assert numbers(sent(running, config)) == list(range(256, 512))
    wanted.ipv4.dst.negate = True
    assert numbers(sent(running, config)) == list(range(256))
    # By bits: the last byte of the address, of which the low four count.
    settings.filters.clear()
    custom = settings.filters.custom()[-1]
    custom.offset, custom.bit_length, custom.value, custom.mask = 33 * 8, 8, "05", "0f"
    assert numbers(sent(running, config)) == list(range(5, 512, 16))
    books = running.ask("/linerate/generator/port,p1")
    captured_ = [books[f"capture_{name}"] for name in ("matched", "stored", "dropped")]
    assert captured_ == [32, 32, 0]


def test_frames_are_cut_to_the_packet_size(running: Generator) -> None:
    config, settings = numbered(20)
    config.flows[0].size.fixed = 1000
    whole = sent(running, config)
    settings.packet_size = 60
    api = running.api
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    received(running, 20)
    capture(api, "stop")
    records = read_pcap(captured(api, "p1"))
    assert [record.data for record in records] == [frame[:60] for frame in whole]
    # The size of a frame on the wire, as the flow has it.
    assert {record.length for record in records} == {1000}


def test_captures_have_frames_as_long_as_flows_say(directory: Path) -> None:
    """The FCS counts, unless the generator was started without it in captures."""
    for options, fcs in [((), 4), (("--capture-fcs=no",), 0)]:
        with generator(directory, *options) as running:
            config, settings = numbered(10)
            config.flows[0].size.fixed = 128
            for settings.format in ("pcap", "pcapng"):
                api = running.api
                api.set_config(config)
                capture(api, "start")
                transmit(api, "start")
                received(running, 10)
                capture(api, "stop")
                content = captured(api, "p1")
                if settings.format == "pcap":
                    records = read_pcap(content)
                else:
                    file = read_pcapng(content)
                    assert file.fcs_len == fcs
                    records = file.records
                assert [record.length for record in records] == [124 + fcs] * 10
                frames = [record.data for record in records]
                bare = [without_fcs(frame) for frame in frames] if fcs else frames
                assert {len(frame) for frame in bare} == {124}
                # scapy, which others' tests read captures by, finds the same bytes.
                path = directory / f"captured.{settings.format}"
                path.write_bytes(content)
                assert [bytes(packet) for packet in rdpcap(str(path))] == frames


def test_a_slice_is_a_part_of_the_file(running: Generator) -> None:
    config, _ = numbered(500)
    sent(running, config)
    api = running.api

    def part(first: int, count: int = 100) -> list[int]:
        return numbers([record.data for record in read_pcap(captured(api, "p1", first, count))])

    assert part(1, 3) == [0, 1, 2]
    assert part(491) == list(range(490, 500))
    assert part(501) == []
    assert part(100, 50) == list(range(99, 149))


def test_a_full_buffer_keeps_the_newest_frames_or_the_oldest(running: Generator) -> None:
    # 50,000 frames of 1514 bytes are 72 MiB, and a port's buffer is 64 MiB.
    total, api = 50_000, running.api
    config, settings = numbered(total)
    config.flows[0].size.fixed, config.flows[0].rate.pps = 1518, 40_000

    def part(first: int) -> list[int]:
        return numbers([record.data for record in read_pcap(captured(api, "p1", first, 10))])

    for overwrite in (True, False):
        settings.overwrite = overwrite
        api.set_config(config)
        capture(api, "start")
        transmit(api, "start")
        received(running, total)
        capture(api, "stop")
        books = running.ask("/linerate/generator/port,p1")
        stored = books["capture_stored"]
        assert books["capture_matched"] == total
        # A busy machine may drop so many on the way that the buffer is never full.
        assert min(43_000, total - books["capture_dropped"]) <= stored < 45_000
        gone, other = books["capture_overwritten"], books["capture_refused"]
        if not overwrite:
            gone, other = other, gone
        assert (total, other) == (stored + books["capture_dropped"] + gone, 0)
        if overwrite:
            assert total - 1 - books["capture_dropped"] <= part(stored - 9)[-1] < total
            assert part(1)[0] >= total - stored - books["capture_dropped"]
        else:
            assert part(1)[0] == 0
            assert part(stored - 9)[-1] <= stored - 1 + books["capture_dropped"]


def test_a_capture_grows_while_it_runs_and_ends_with_its_stop(running: Generator) -> None:
    config, settings = numbered(1)
    flow = config.flows[0]
    flow.duration.choice = "continuous"
    settings.format = "pcapng"
    api = running.api
    api.set_config(config)
    assert errors(lambda: captured(api, "p1"))[0].startswith('port_name: port "p1" has captured')
    transmit(api, "start")
    eventually(lambda: port_metrics(api)["p1"].frames_rx > 100)
    capture(api, "start")

    def content() -> list[bytes]:
        return [record.data for record in read_pcapng(captured(api, "p1")).records]

    eventually(lambda: len(content()) > 100)
    early = content()
    # It began in the midst of the traffic, and what is there is without gaps.
    assert numbers(early)[0] > 90
    eventually(lambda: len(content()) > len(early) + 1000)
    assert content()[: len(early)] == early
    assert read_pcapng(captured(api, "p1")).statistics == {}  # not at its end yet
    capture(api, "stop")
    last, frames = content(), port_metrics(api)["p1"].frames_rx
    eventually(lambda: port_metrics(api)["p1"].frames_rx > frames + 1000)
    assert content() == last
    assert read_pcapng(captured(api, "p1")).statistics[8] == len(last)
    # A new start is a new file.
    capture(api, "start")
    assert len(content()) < len(last)
    capture(api, "stop")
    transmit(api, "stop")


def test_what_captures_cannot_do_is_named(running: Generator) -> None:
    config, settings = numbered(1)
    api = running.api
    config.ports.port(name="p2", location="null,no-rx=1")
    api.set_config(config)
    for call, error in [
        (lambda: capture(api, "start", ["p2"]), 'port.capture.port_names: port "p2" is in no'),
        (lambda: capture(api, "start", ["p3"]), "port.capture.port_names[0]: there is no port"),
        (lambda: captured(api, "p3"), 'port_name: there is no port named "p3"'),
    ]:
        assert errors(call)[0].startswith(error)
    settings.filters.ipv4()[-1].src.value = "1" * 9
    (error,) = errors(lambda: api.set_config(config))
    assert error.startswith("captures[0].filters[0].ipv4.src")
    config.captures.clear()
    api.set_config(config)
    (error,) = errors(lambda: capture(api, "start"))
    assert error == "port.capture: the configuration has no captures"
