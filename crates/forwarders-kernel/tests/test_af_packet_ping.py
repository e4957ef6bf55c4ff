# SPDX-License-Identifier: BSD-3-Clause
"""af-packet-ping between namespaces: its frames come back, or are told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, Program
from wires import LEFT, MIDDLE, TIMEOUT_S, End, end, eventually, ip, wires

FORWARDER = Program("af-packet-fwd", "net_af_packet")
PING = ["ip", "netns", "exec", LEFT, str(BIN / "af-packet-ping"), "--iface"]


@pytest.fixture
def wire() -> Iterator[None]:
    with wires():
        yield


def ping(*options: str, interface: str = "l0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PING, interface, *options], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def figures(path: Path, *options: str) -> dict[str, Any]:
    done = ping("--out", str(path), *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    counts = " ".join(done.stdout.split())
    for name in ("sent", "received", "lost", "strangers"):
        assert f"{name} {found[name]}" in counts
    return found


@pytest.mark.parametrize("kind", ["arp", "udp"])
@pytest.mark.parametrize("size", [64, 1518])
@pytest.mark.usefixtures("wire")
def test_round_trips_through_a_forwarder_are_counted(tmp_path: Path, kind: str, size: int) -> None:
    with FORWARDER.running(tmp_path, "--io", "read-write", interfaces=("f0",)) as forwarder:
        found = figures(
            tmp_path / "out", f"--{kind}", "--count", "300", "--interval", "100",
            "--deadline", "1000000", "--size", str(size),
        )  # fmt: skip
        eventually(lambda: forwarder.stats(0)["opackets"] == 300)
        assert forwarder.stats(0)["ibytes"] == 300 * (size - 4)
    assert (found["protocol"], found["size"]) == (kind, size)
    assert (found["sent"], found["received"]) == (300, 300)
    for name in ("not_sent", "lost", "late", "duplicates", "strangers", "dropped"):
        assert found[name] == 0
    for unit in ("cycles", "ns"):
        told = found[unit]
        assert list(told) == ["min", "mean", "0.5", "0.9", "0.99", "max"]
        assert 0 < told["min"] <= told["0.5"] <= told["0.9"] <= told["0.99"] <= told["max"]
    assert found["clock"]["tsc_hz"] > 0
    assert found["hdr_cycles"].startswith("HISTF")


@pytest.mark.usefixtures("wire")
def test_what_never_comes_back_is_lost_and_has_no_figures(tmp_path: Path) -> None:
    found = figures(tmp_path / "out", "--count", "3", "--deadline", "1000")
    assert (found["sent"], found["received"], found["lost"]) == (3, 0, 3)
    assert not {"cycles", "ns", "hdr_cycles"} & set(found)


@pytest.mark.usefixtures("wire")
def test_strangers_late_frames_and_duplicates_are_told_apart(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with end(MIDDLE, "f0") as far:
        process = subprocess.Popen(
            [*PING, "l0", "--arp", "--count", "3", "--deadline", "300000", "--interval", "0",
             "--out", str(out)],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            (first,) = take(far)
            assert first[12:22] == bytes.fromhex("08060001080006040001")
            far.send(bytes(60))
            far.send(first)
            # The first has been answered: it comes once more while the second is waited for.
            (second,) = take(far)
            far.send(first)
            # The second is not answered before the third is sent.
            (third,) = take(far)
            far.send(second)
            far.send(third)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()
    found = json.loads(out.read_text())
    assert {name: found[name] for name in ("sent", "received", "late", "lost")} == {
        "sent": 3, "received": 2, "late": 1, "lost": 0,
    }  # fmt: skip
    assert (found["duplicates"], found["strangers"]) == (1, 1)


def take(far: End) -> list[bytes]:
    found: list[bytes] = []

    def one() -> bool:
        found.extend(far.received(1))
        return bool(found)

    eventually(one)
    return found


@pytest.mark.usefixtures("wire")
def test_what_cannot_be_is_refused_by_name() -> None:
    for words, interface, complaint in (
        ([], "none", "--iface none: no such network interface"),
        ([], "lo", "--iface lo: it has no Ethernet address"),
        (["--size", "1519"], "l0", "--size 1519: l0 sends frames of at most 1518 bytes"),
        (["--count", "0"], "l0", "--count takes a number from 1"),
        (["--out", "/dev/null"], "l0", "--out /dev/null: not a regular file"),
    ):
        done = ping(*words, interface=interface)
        assert done.returncode == 1
        assert complaint in done.stderr
    ip("-n", LEFT, "link", "set", "l0", "down")
    done = ping()
    assert done.returncode == 1
    assert "--iface l0: it is down" in done.stderr


@pytest.mark.usefixtures("wire")
def test_a_signal_ends_it_with_what_was_counted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with end(MIDDLE, "f0") as far:
        process = subprocess.Popen(
            [*PING, "l0", "--count", "100000000", "--interval", "0", "--deadline", "1000",
             "--out", str(out)],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            take(far)
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()
    found = json.loads(out.read_text())
    assert 1 <= found["sent"] == found["lost"] < 100_000_000
    # Nothing is left of the file that it was written in.
    assert list(tmp_path.iterdir()) == [out]
