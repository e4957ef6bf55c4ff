# SPDX-License-Identifier: BSD-3-Clause
"""The generator as a command: what it sends, tells and writes, and how it ends.

Each test runs the program on links inside of it. Nothing timed is asserted.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from frames import write_pcap
from harness import BIN, environment, eventually
from traffic import without_fcs

pytest_plugins = ["rig"]

# The self-test takes eight seconds where nothing else runs.
TIMEOUT_S = 120.0
DOCS = Path(__file__).parents[3] / "docs" / "send-without-a-script.md"


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "generator"), *options],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=directory,
        env=environment(directory),
    )


def figures(directory: Path, *options: str) -> Any:
    """The JSON document of a run that ends well."""
    done = run(directory, *options, "--json", "out.json")
    assert done.returncode == 0, done.stderr
    return json.loads((directory / "out.json").read_text())


def read_pcap(path: Path) -> list[bytes]:
    """The whole frames of a file, which may still be written."""
    data, frames, at = path.read_bytes(), [], 24
    while at + 16 <= len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + captured > len(data):
            break
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    return frames


@pytest.mark.parametrize("location", ["ring:r", "vdev:net_ring0"])
def test_all_frames_of_a_flow_come_back(directory: Path, location: str) -> None:
    options = ("--port", f"west={location}", "--duration", "20000frames", "--rate", "50kpps")
    done = run(directory, *options, "--json", "out.json")
    assert done.returncode == 0, done.stderr
    for word in ("tx frames", "lost", "sending", "PDV p99.9", "west", "f0", "subtracted"):
        assert word in done.stdout
    document = json.loads((directory / "out.json").read_text())
    assert (document["schema"], document["ended"]) == ("linerate/generator-1", "finished")
    (flow,), (port,) = document["flows"], document["ports"]
    assert (flow["name"], flow["from"], flow["to"]) == ("f0", "west", [])
    assert flow["intended"] == flow["attempted"] == 20_000
    assert flow["accepted"] + flow["lost_at_ingress"] == 20_000
    assert flow["received"] == flow["accepted"] == port["sent"] == port["received"]
    assert flow["lost"] == flow["duplicates"] == flow["reordered"] == port["foreign"] == 0
    latency = flow["latency_ns"]
    assert latency["count"] == flow["received"] - flow["received_disturbed"]
    assert 0 <= latency["min"] <= latency["mean"] <= latency["max"]
    assert latency["p50"] <= latency["p99"] <= latency["p99_9"]
    assert flow["tx_bytes"] == flow["rx_bytes"] == 64 * flow["accepted"]


@contextmanager
def busy_loop(cpu: int) -> Iterator[None]:
    """A process that takes what it gets of a CPU, for a minute at most."""
    loop = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    command = ["taskset", "-c", str(cpu), sys.executable, "-c", loop]
    with subprocess.Popen(command) as running:
        try:
            yield
        finally:
            running.kill()


def test_latency_leaves_out_what_a_neighbour_on_its_cpu_delayed(directory: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    options = ("--port", "west=ring:r", "--cpus", str(cpu), "--duration", "40000frames")
    with busy_loop(cpu):
        document = figures(directory, *options, "--rate", "20kpps")
    (flow,) = document["flows"]
    assert flow["received"] == flow["accepted"] == 40_000 - flow["lost_at_ingress"]
    assert flow["late"] > 0
    assert 0 < flow["received_disturbed"] < flow["received"]
    assert flow["missing_disturbed"] == 0
    latency, gaps = flow["latency_ns"], flow["gap_ns"]
    assert latency["count"] == flow["received"] - flow["received_disturbed"]
    # The lcore reads its clock some times between two looks at a queue, each within the limit.
    limit = 10 * document["late_after_ns"]
    assert latency["max"] < limit < gaps["max"]


def test_what_does_not_come_back_is_lost(directory: Path) -> None:
    document = figures(directory, "--port", "null:n,no-rx=1", "--duration", "1000frames")
    (flow,) = document["flows"]
    assert (flow["received"], flow["lost"], flow["loss_percent"]) == (0, 1000, 100.0)
    assert "latency_ns" not in flow, "what is not measured is absent"


def test_flows_have_their_own_ports_rates_and_headers(directory: Path) -> None:
    document = figures(
        directory,
        *("--port", "a=ring:a", "--port", "b=ring:b"),
        *("--flow", "name=one,from=a,to=a,frames=300,rate=3kpps,ipv6.dst=fd00::1+9,size=128"),
        *("--flow", "name=two,from=b,to=a,frames=50,latency=off,tcp.dport=80,443,size=80-90"),
        *(
            "--flow",
            "name=three,from=b,to=b,burst=10,bursts=4,gap=1ms,vlan.id=7,size=68:7,1518:1,rate=9Mbps/l2",
        ),
        *("--size", "100"),
    )
    one, two, three = document["flows"]
    assert (one["received"], two["received"], three["received"]) == (300, 0, 40)
    assert "latency_ns" in one
    assert "latency_ns" not in two
    a, b = document["ports"]
    assert (a["sent"], b["sent"], b["misdirected"]) == (300, 90, 50)


def test_ctrl_c_stops_settles_and_tells(directory: Path) -> None:
    command = [str(BIN / "generator"), "--port", "ring:r", "--duration", "continuous"]
    command += ["--capture", "p0=in.pcap", "--json", "out.json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=directory, env=environment(directory)
    )
    try:
        assert process.stdout is not None
        assert "s f0: tx" in process.stdout.readline(), "a line each second"
        capture = directory / "in.pcap"
        eventually(lambda: len(read_pcap(capture)) > 100, timeout_s=TIMEOUT_S)
        assert process.poll() is None, "the file can be read while it is written"
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=TIMEOUT_S)[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + signal.SIGINT
    assert "PDV p99.9" in rest
    document = json.loads((directory / "out.json").read_text())
    assert (document["ended"], document["signal"]) == ("signal", signal.SIGINT)
    (flow,), (port,) = document["flows"], document["ports"]
    assert flow["accepted"] == flow["received"] == port["capture"]["stored"] > 0
    assert len(read_pcap(capture)) == flow["received"]


def sample() -> list[tuple[int, bytes]]:
    """Frames of several lengths with uneven gaps, of which two have none."""
    lengths = [60, 61, 64, 127, 128, 300, 1000, 1514]
    gaps = [0, 200_000, 0, 1_000_000, 50_000]
    frames, now = [], 10**18
    for i in range(60):
        length = lengths[i % len(lengths)]
        frames.append((now, bytes((i * 7 + k) % 256 for k in range(length))))
        now += gaps[i % len(gaps)]
    return frames


@pytest.mark.parametrize(
    ("how", "times"),
    [("speed=own", 1), ("speed=4x,loops=3", 3), ("rate=5kpps", 1), ("rate=20Mbps,frames=150", 2.5)],
)
def test_a_replayed_file_arrives_as_it_was(directory: Path, how: str, times: float) -> None:
    sent = sample()
    write_pcap(directory / "in.pcap", sent)
    flow = f"name=again,pcap=in.pcap,{how}"
    options = ("--port", "ring:r", "--flow", flow, "--capture", "p0=out.pcap")
    document = figures(directory, *options)
    frames = [frame for _, frame in sent] * 3
    assert read_pcap(directory / "out.pcap") == frames[: int(60 * times)]
    (flow,), (port,) = document["flows"], document["ports"]
    assert flow["replay"]
    assert flow["accepted"] == 60 * times
    assert not {"received", "lost"} & set(flow), "nobody knows the frames again"
    assert port["received"] == port["foreign"] == 60 * times


def test_captured_frames_have_their_fcs_where_it_is_asked_for(directory: Path) -> None:
    """Not by default: a file may be sent again, and pcap cannot say that the FCS is there."""
    options = ("--port", "ring:r", "--flow", "frames=20,size=128", "--capture", "p0=out.pcap")
    figures(directory, *options)
    bare = read_pcap(directory / "out.pcap")
    assert {len(frame) for frame in bare} == {124}
    figures(directory, *options, "--capture-fcs", "yes")
    frames = read_pcap(directory / "out.pcap")
    assert [len(without_fcs(frame)) for frame in frames] == [124] * 20


def test_captures_filter_and_stop_at_their_limit(directory: Path) -> None:
    flows = ("--flow", "name=plain,frames=100", "--flow", "name=tagged,vlan.id=7,frames=40,size=70")
    options = ("--port", "ring:r", *flows, "--capture")
    document = figures(directory, *options, "p0=out.pcap,vlan.id=7,snap=18")
    (port,) = document["ports"]
    assert (port["received"], port["capture"]["matched"]) == (140, 40)
    frames = read_pcap(directory / "out.pcap")
    assert len(frames) == 40
    assert {frame[12:18] for frame in frames} == {bytes.fromhex("810000070800")}
    limited = figures(directory, *options, "p0=out.pcapng", "--capture-limit", "4k")
    capture = limited["ports"][0]["capture"]
    assert capture["matched"] == 140 == capture["stored"] + capture["refused"]
    assert 0 < capture["stored"] < 140
    data = (directory / "out.pcapng").read_bytes()
    assert data[:4] == bytes.fromhex("0a0d0d0a")


def test_per_cents_are_of_a_measured_ceiling(directory: Path) -> None:
    options = ("--port", "ring:r", "--rate", "1%", "--duration", "1000frames")
    done = run(directory, *options, "--json", "out.json")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^100 % of port p0 is [0-9.]+ Mpps with frames of 64 bytes", done.stdout)
    (flow,) = json.loads((directory / "out.json").read_text())["flows"]
    assert flow["ceiling_fps"] > 0
    assert flow["accepted"] + flow["lost_at_ingress"] == 1000
    assert flow["received"] == flow["accepted"], "frames of the floods do not count"
    document = figures(directory, *options, "--line-rate", "1Mpps")
    assert "ceiling_fps" not in document["flows"][0]


def test_a_flood_goes_on_for_its_time(directory: Path) -> None:
    document = figures(directory, "--port", "ring:r", "--flood", "--duration", "200ms")
    (flow,) = document["flows"]
    assert document["pacing"] == "flood"
    assert flow["accepted"] == flow["received"] > 0
    assert flow["attempted"] == flow["accepted"] + flow["refused"]


@pytest.mark.parametrize(
    ("options", "status", "wanted"),
    [
        ([], 2, "--otg-listen <ADDR:PORT>|--port <[NAME=]LOCATION>|--otg <FILE>|--self-test"),
        (["--port", "ring:r", "--otg-listen", "127.0.0.1:0"], 2, "cannot be used with"),
        (["--self-test", "--otg-listen", "127.0.0.1:0"], 2, "cannot be used with"),
        (["--self-test", "--flow", "size=64"], 2, "cannot be used with"),
        (["--flow", "size=64", "--otg-listen", "127.0.0.1:0"], 2, "cannot be used with"),
        (["--flow", "size=64"], 2, "--port <[NAME=]LOCATION>"),
        (["--otg", "x.json"], 2, "--write <PORT=FILE>"),
        (["--port", "ring:r", "--write", "p0=x.txt"], 2, "a file that ends in .pcap"),
        (["--otg", "/nowhere.json", "--write", "p0=x.pcap"], 1, "/nowhere.json"),
        (["--port", "ring:r", "--port-file", "x"], 2, "cannot be used with"),
        (["--port", "ring:r", "--rate", "fast"], 2, "'--rate <RATE>'"),
        (["--port", "ring:r", "--flow", "siez=64"], 2, '"siez" is no key; the keys are name, from'),
        (["--port", "ring:r", "--capture", "p0=x.txt"], 2, "ends in .pcapng or .pcap"),
        (["--port", "ring:r", "--flow", "to=p7"], 1, '"f0": to: there is no port "p7"'),
        (["--port", "ring:r", "--flow", "size=63"], 1, '--flow "f0": size.fixed: must be'),
        (
            ["--port", "ring:r", "--flow", "name=a", "--flow", "name=a"],
            1,
            "another flow has this name",
        ),
        (["--port", "ring:r", "--flow", "pcap=none.pcap"], 1, "pcap: none.pcap: No such file"),
        (["--port", "ring:r", "--capture", "p7=x.pcap"], 1, '--capture "p7": there is no port'),
        (["--port", "ring:r", "--capture", "p0=no/x.pcap"], 1, "no/x.pcap cannot be made"),
        (["--port", "nothing0"], 1, "nothing0"),
        (["--port", "ring:r", "--port", "ring:r"], 1, "ports[0] is there already"),
        (["--self-test", "--port", "ring:a", "--port", "ring:b"], 1, "takes one --port"),
    ],
)
def test_what_cannot_be_done_is_named(
    directory: Path, options: list[str], status: int, wanted: str
) -> None:
    done = run(directory, *options)
    assert done.returncode == status, done.stderr
    assert wanted in done.stderr
    assert "panicked" not in done.stderr


def test_a_document_that_cannot_be_written_is_an_error(directory: Path) -> None:
    options = ("--port", "ring:r", "--duration", "10frames", "--json", "no/out.json")
    done = run(directory, *options)
    assert done.returncode == 1
    assert "--json no/out.json: " in done.stderr
    assert done.stdout == "", "nothing was sent"


def test_a_document_goes_into_a_device_and_leaves_it_one(directory: Path) -> None:
    """By links of our own, so that a mistake here harms no device."""
    for device in ("stdout", "full"):
        (directory / device).symlink_to(f"/dev/{device}")
    options = ("--port", "ring:r", "--duration", "10frames", "--json")
    done = run(directory, *options, "stdout")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout[done.stdout.index("{") :])["schema"] == "linerate/generator-1"
    done = run(directory, *options, "full")
    assert done.returncode == 1
    assert "--json full: No space left on device" in done.stderr
    assert "PDV p99.9" in done.stdout, "the figures are not lost"
    assert {path.name for path in directory.iterdir() if path.is_symlink()} == {"stdout", "full"}


def test_the_self_test_passes_on_a_ring(directory: Path) -> None:
    done = run(directory, "--self-test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^All \d+ checks pass\.$", done.stdout, re.MULTILINE)
    for text in (
        "TSC ",
        "pacing error",
        "1518 bytes: ",
        "of the CPU's time",
        "comes twice is found",
    ):
        assert text in done.stdout


def test_ctrl_c_ends_the_self_test_cleanly(directory: Path) -> None:
    process = subprocess.Popen(
        [str(BIN / "generator"), "--self-test"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(directory),
    )
    try:
        assert process.stdout is not None
        while "pass" not in (line := process.stdout.readline()):
            assert line, "no check was made"
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=TIMEOUT_S)[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + signal.SIGINT
    assert re.search(
        r"^Ended by a signal after \d+ checks, 0 of which failed\.$", rest, re.MULTILINE
    )
    assert not list((directory / "dpdk").iterdir()), "the run-time directory goes with it"


@pytest.mark.second_tier
def test_the_self_test_fails_where_nothing_comes_back(directory: Path) -> None:
    done = run(directory, "--self-test", "--port", "null:n,no-rx=1")
    assert done.returncode == 1
    assert re.search(r"^\d+ of \d+ checks FAIL\.$", done.stdout, re.MULTILINE)


def test_every_key_of_the_document_is_described(directory: Path) -> None:
    options = ("--port", "ring:r", "--rate", "1%", "--duration", "100frames")
    flows = ("--flow", "integrity,size=128")
    document = figures(directory, *options, *flows, "--capture", "p0=out.pcap")
    text = DOCS.read_text()

    def keys(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    assert not [key for key in sorted(set(keys(document))) if f"`{key}`" not in text]
