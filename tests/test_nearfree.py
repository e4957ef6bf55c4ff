# SPDX-License-Identifier: BSD-3-Clause
"""The driver of drivers/nearfree loads, forwards, counts, and leaves every pool complete."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from linerate.host.builds.bench_programs import bench_program, nearfree_obstacle, nearfree_plugin
from linerate.host.errors import UnknownCommandError
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.links import flows
from linerate.telemetry.client import connect, socket_path

pytestmark = pytest.mark.skipif(nearfree_obstacle() is not None, reason=str(nearfree_obstacle()))
CPU = max(os.sched_getaffinity(0))
EAL = ["--lcores", f"0@{CPU}", "--no-pci", "--no-huge", "--no-shconf", "-m", "128"]


def start(
    run: RunDirectory, program: Path, ports: list[str], options: list[str]
) -> tuple[Child, str]:
    prefix = run.new_prefix("nearfree")
    argv = [str(program), *EAL, "--file-prefix", prefix, "-d", str(nearfree_plugin())]
    for port in ports:
        argv += ["--vdev", port]
    return Child(Command("forwarder", (*argv, "--", *options), (CPU,)), run), prefix


def ended(child: Child) -> str:
    """End the program by SIGINT; return what it printed."""
    # Its log goes when it is stopped; a second name keeps it.
    kept = child.log.with_suffix(".kept")
    kept.hardlink_to(child.log)
    assert child.stop() == 0
    return kept.read_text(errors="replace")


@pytest.mark.parametrize("arguments", ["", ",dense=1", ",ring=1000,size=1514"])
@pytest.mark.parametrize("burst", [[], ["--burst-forwarding"]])
def test_counts_agree_and_pools_are_whole(arguments: str, burst: list[str]) -> None:
    plain = bench_program("plain", "plain")
    ports = [f"net_nearfree{n}{arguments}" for n in range(2)]
    with RunDirectory() as run:
        child, prefix = start(run, plain, ports, ["-p", "3", *burst])
        with child:
            path = socket_path(run.path, prefix)
            with connect(path, 20, child.check) as telemetry:
                child.wait_until(
                    lambda: telemetry.ask("/ethdev/stats,1")["ipackets"] >= 1_000_000,
                    20,
                    "no million packets",
                )
                assert telemetry.ask("/ethdev/link_status,0")["status"] == "UP"
                stats = telemetry.ask("/ethdev/stats,0")
                assert stats["rx_nombuf"] == stats["oerrors"] == 0
            text = ended(child)
    lines = re.findall(r"port (\d) to (\d): received (\d+) sent (\d+) dropped 0", text)
    assert [line[:2] for line in lines] == [("0", "1"), ("1", "0")], text
    assert all(int(received) == int(sent) > 0 for _, _, received, sent in lines)
    assert re.search(r"^pool: (\d+) of \1$", text, re.MULTILINE), text
    assert "did not come back" not in text


@pytest.mark.parametrize(
    "wrong",
    ["size=0", "ring=x", "dense=2", "colour=red", "frames=/nowhere", "frames=/dev/null", "check=1"],
)
def test_wrong_arguments_are_refused_by_name(wrong: str) -> None:
    plain = bench_program("plain", "plain")
    with RunDirectory() as run:
        child, _ = start(run, plain, [f"net_nearfree0,{wrong}"], ["-p", "1"])
        with child:
            assert child.wait(20)
            text = child.output()
    assert wrong.rpartition("=")[0].rpartition(",")[2] in text


def test_one_port_forwards_to_itself() -> None:
    l2fwd = rust_binary("l2fwd")
    with RunDirectory() as run:
        child, prefix = start(run, l2fwd, ["net_nearfree0"], ["-p", "1", "-T", "0"])
        with child:
            with connect(socket_path(run.path, prefix), 20, child.check) as telemetry:
                child.wait_until(
                    lambda: telemetry.ask("/ethdev/stats,0")["opackets"] >= 100_000,
                    20,
                    "no 100,000 packets",
                )
            assert child.stop() == 0


def capture(path: Path, frames: list[bytes]) -> Path:
    path.write_bytes(flows.capture(frames))
    return path


def frames_of(count: int, size: int = flows.FRAME_BYTES) -> list[bytes]:
    return [flows.frame(flow, size) for flow in itertools.islice(flows.flows(), count)]


def figures(child: Child, run: RunDirectory, prefix: str, wanted: int, ports: int = 1) -> list[Any]:
    """Return the figures of the ports' checks when port 0 has received so many packets."""
    with connect(socket_path(run.path, prefix), 20, child.check) as telemetry:
        child.wait_until(
            lambda: telemetry.ask("/ethdev/stats,0")["ipackets"] >= wanted, 20, "too few packets"
        )
        return [telemetry.ask(f"/net_nearfree/check,net_nearfree{n}") for n in range(ports)]


def test_a_file_that_is_cut_meanwhile_is_no_loss(tmp_path: Path) -> None:
    """Its frames were read into memory. A mapped file would have ended the program (SIGBUS)."""
    file = capture(tmp_path / "frames.pcap", frames_of(1000, 1514))
    with RunDirectory() as run:
        ports = [f"net_nearfree0,frames={file},check=1"]
        child, prefix = start(run, bench_program("plain", "plain"), ports, ["-p", "1"])
        with child:
            figures(child, run, prefix, 1)
            os.truncate(file, 0)
            (before,) = figures(child, run, prefix, 1)
            (after,) = figures(child, run, prefix, before["received"] + 10_000)
            assert after["seen"] == 1000
            assert after["wrong_length"] == after["made"] == 0
            text = ended(child)
    assert re.search(r"^pool: (\d+) of \1$", text, re.MULTILINE), text


def test_a_file_that_is_cut_while_it_is_read_is_named() -> None:
    """The size of a file in sysfs is a page, but it ends much earlier, like a file that is cut."""
    file = Path("/sys/devices/system/cpu/online")
    assert "became shorter while it was read" in refusal(file)


@pytest.mark.parametrize("dense", ["", ",dense=1"])
def test_frames_are_whole_each_time_and_pools_as_well(tmp_path: Path, dense: str) -> None:
    mixed = [*frames_of(100), *frames_of(100, 1514), *frames_of(50, 300)]
    file = capture(tmp_path / "mixed.pcap", mixed)
    plain = bench_program("plain", "plain")
    ports = [f"net_nearfree{n},frames={file},check=1{dense}" for n in range(2)]
    with RunDirectory() as run:
        # It writes new addresses into each: the next one in that packet has its own again.
        child, prefix = start(run, plain, ports, ["-p", "3"])
        with child:
            for found in figures(child, run, prefix, 100_000, 2):
                assert (found["frames"], found["flows"], found["made"]) == (250, 100, 0)
                assert found["sent"] > 10_000
                assert found["ttl_kept"] > 0
                assert found["seen"] == 250
                assert 0 <= found["received"] - found["sent"] < 1000
                for kind in ("wrong_length", "wrong_header_checksum", "longer", "shorter"):
                    assert found[kind] == 0, kind
                assert found["unchanged"] + found["new_destination"] > 0
                assert found["wrong_payload_checksum"] == 0
            text = ended(child)
    assert re.search(r"^pool: (\d+) of \1$", text, re.MULTILINE), text
    assert "did not come back" not in text


def test_packets_are_counted_by_flow_and_flows_can_be_seen(tmp_path: Path) -> None:
    file = capture(tmp_path / "flows.pcap", [*frames_of(300), *frames_of(300)])
    l2fwd = rust_binary("l2fwd")
    with RunDirectory() as run:
        port = f"net_nearfree0,frames={file},check=1"
        child, prefix = start(run, l2fwd, [port], ["-p", "1", "-T", "0", "--no-mac-updating"])
        with child:
            (found,) = figures(child, run, prefix, 60_000)
            assert found["flows"] == 300
            assert found["unchanged"] == pytest.approx(found["sent"], rel=0.01)
            assert found["first_unchanged"] == 1
            assert found["new_destination"] == 0
            with connect(socket_path(run.path, prefix), 20, child.check) as telemetry:
                first = telemetry.ask("/net_nearfree/flows,net_nearfree0,0")
                rest = telemetry.ask("/net_nearfree/flows,net_nearfree0,256")
                assert (len(first), len(rest)) == (256, 44)
                assert min(first + rest) > 0.9 * max(first + rest)
                # All out of the only port there is.
                assert telemetry.ask("/net_nearfree/ports,net_nearfree0,256") == [1] * 44
                shown = telemetry.ask("/net_nearfree/flow,net_nearfree0,7")
                assert bytes.fromhex(shown) == frames_of(8)[7]
                for wrong in ("check,net_nearfree1", "check", "flow,net_nearfree0,300"):
                    with pytest.raises(UnknownCommandError):
                        telemetry.ask(f"/net_nearfree/{wrong}")
            assert child.stop() == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a capture file"),
        (b"\0" * 100, "not a capture file"),
        (b"\x0a\x0d\x0d\x0a" + b"\0" * 100, "pcapng"),
        (flows.capture([]), "no frame in it"),
        (flows.capture([b"\0" * 13]), "frame 1 has 13"),
        (flows.capture(frames_of(3))[:-1], "frame 3 ends behind the end of the file"),
        (flows.capture([b"\0" * 60])[:20] + b"\x65" + b"\0" * 80, "not Ethernet"),
        (flows.capture(frames_of(3, 3000)), "do not fit"),
    ],
)
def test_files_that_are_no_captures_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "frames.pcap"
    file.write_bytes(content)
    assert words in refusal(file)


def test_a_frame_cut_short_in_its_file_is_named(tmp_path: Path) -> None:
    content = bytearray(flows.capture(frames_of(2)))
    # The second record says that its frame was longer.
    content[24 + 16 + 60 + 12] = 61
    file = tmp_path / "cut.pcap"
    file.write_bytes(content)
    assert "frame 2 has 60 of 61 bytes" in refusal(file)


def refusal(file: Path) -> str:
    """Return what a program prints when it ends because of this file."""
    with RunDirectory() as run:
        plain = bench_program("plain", "plain")
        child, _ = start(run, plain, [f"net_nearfree0,frames={file}"], ["-p", "1"])
        with child:
            assert child.wait(20)
            return child.output()


def test_programs_that_clear_flags_or_have_two_queues_are_checked(tmp_path: Path) -> None:
    """testpmd writes the flags of the packets that it sends."""
    testpmd = shutil.which("dpdk-testpmd")
    if testpmd is None:
        pytest.skip("dpdk-testpmd is not installed: make setup (Debian: dpdk)")
    file = capture(tmp_path / "flows.pcap", frames_of(200))
    options = ["--auto-start", "--forward-mode=mac", "--total-num-mbufs=4096", "--nb-cores=1",
               "--rxq=2", "--txq=2", "--rss-udp", "--no-flush-rx"]  # fmt: skip
    ports = [f"net_nearfree{n},frames={file},check=1,dense=1" for n in range(2)]
    with RunDirectory() as run:
        prefix = run.new_prefix("nearfree")
        lcores = f"0@{min(os.sched_getaffinity(0))},1@{CPU}"
        argv = [testpmd, "--lcores", lcores, *EAL[2:-1], "256", "--file-prefix", prefix,
                "-d", str(nearfree_plugin())]  # fmt: skip
        for port in ports:
            argv += ["--vdev", port]
        command = Command("testpmd", (*argv, "--", *options), (CPU,), hold_stdin=True)
        with Child(command, run) as child:
            for found in figures(child, run, prefix, 50_000, 2):
                assert found["seen"] == 200
                assert found["made"] == 0
                assert found["new_destination"] > 0.9 * found["sent"] > 10_000
