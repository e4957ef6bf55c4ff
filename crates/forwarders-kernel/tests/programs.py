# SPDX-License-Identifier: BSD-3-Clause
"""A program of this crate, running between two namespaces."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import random
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from wires import MIDDLE, TIMEOUT_S, End, eventually

BIN = Path(os.environ.get("LINERATE_BIN", Path(__file__).parents[3] / "target" / "release"))
CPU = max(os.sched_getaffinity(0))
PREFIX = "t"
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_MAP_CREATE, BPF_MAP_TYPE_ARRAY = 0, 2


@dataclass
class Forwarder:
    process: subprocess.Popen[str]
    directory: Path
    log: Path

    @property
    def socket(self) -> Path:
        return self.directory / "dpdk" / PREFIX / "dpdk_telemetry.v2"

    def ask(self, command: str) -> Any:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(TIMEOUT_S)
            peer.connect(str(self.socket))
            peer.recv(1 << 16)
            peer.send(command.encode())
            (answer,) = json.loads(peer.recv(1 << 16)).values()
            return answer

    def answers(self) -> bool:
        """Whether somebody listens: a killed one leaves its socket."""
        try:
            self.ask("/info")
        except OSError:
            return False
        return True

    def stats(self, port: int) -> dict[str, int]:
        return dict(self.ask(f"/ethdev/stats,{port}"))

    def finish(self, number: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(number)
        assert self.process.wait(TIMEOUT_S) == 0, self.log.read_text()
        return self.log.read_text()


@dataclass(frozen=True)
class Program:
    name: str
    # What its devices are called.
    driver: str

    @property
    def path(self) -> Path:
        return BIN / self.name

    def command(
        self,
        *options: str,
        settings: str = "",
        namespace: str = MIDDLE,
        interfaces: Sequence[str] = ("f0", "f1"),
    ) -> list[str]:
        words = ["ip", "netns", "exec", namespace, str(self.path), "-l", str(CPU), "--no-pci"]
        words += ["--no-huge", "-m", "512", "--file-prefix", PREFIX]
        for number, interface in enumerate(interfaces):
            words += ["--vdev", f"{self.driver}{number},iface={interface}{settings}"]
        mask = f"{(1 << len(interfaces)) - 1:x}"
        return [*words, "--", "-p", mask, "-q", "4", "-T", "0", *options]

    @contextmanager
    def running(
        self,
        directory: Path,
        *options: str,
        settings: str = "",
        namespace: str = MIDDLE,
        interfaces: Sequence[str] = ("f0", "f1"),
    ) -> Iterator[Forwarder]:
        log = directory / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                self.command(
                    *options, settings=settings, namespace=namespace, interfaces=interfaces
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(directory),
            )
        running = Forwarder(process, directory, log)
        try:
            eventually(lambda: running.answers() or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield running
        finally:
            process.kill()
            process.wait()


def need_bpf() -> None:
    """Skips where the kernel has no BPF, or refuses it to this user: it is asked for an array."""
    attributes = struct.pack("5I", BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0).ljust(128, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    made = libc.syscall(SYS_BPF[platform.machine()], BPF_MAP_CREATE, attributes, len(attributes))
    if made >= 0:
        os.close(made)
    elif ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        pytest.skip(f"the kernel refuses BPF: {os.strerror(ctypes.get_errno())}")


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "RUNTIME_DIRECTORY": str(directory), "XDG_RUNTIME_DIR": str(directory)}


def refused(directory: Path, words: list[str]) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        env=environment(directory),
    )  # fmt: skip
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert not (directory / "dpdk" / PREFIX).exists()
    return done.stderr


def frame(number: int, size: int, tag: bytes = b"") -> bytes:
    """`size` bytes without the FCS, that no other frame of a test has."""
    header = bytes.fromhex("021100000001") + bytes.fromhex("021100000002")
    body = random.Random(number).randbytes(max(size - len(header) - len(tag) - 2, 0))
    return (header + tag + b"\x88\xb5" + body)[:size]


def forwarded(sent: bytes, port: int, source: bytes) -> bytes:
    """As l2fwd sends it on."""
    return bytes([2, 0, 0, 0, 0, port]) + source + sent[12:]


def books(running: Forwarder, received_on: int = 0) -> None:
    """Received is sent by the other port, or named."""
    here, there = received_on, 1 - received_on
    named = ("tx_full", "tx_too_long", "tx_down", "tx_refused", "tx_unconfirmed")

    def figures() -> tuple[dict[str, int], dict[str, int]]:
        return running.ask(f"/ethdev/xstats,{here}"), running.ask(f"/ethdev/xstats,{there}")

    def closed() -> bool:
        near, far = figures()
        lost = near["rx_truncated"] + sum(far[name] for name in named)
        return near["rx_good_packets"] == far["tx_good_packets"] + lost

    eventually(closed, figures)


SPANS = ["rx-return_tx-call", "rx-return_tx-return", "rx-call_tx-return", "tx-call_tx-return"]


def check_spans(running: Forwarder, left: End, right: End) -> None:
    """Of a program that measures every burst (`--spans 1`): frames from port 0 to port 1."""
    sent = [frame(n, 60) for n in range(200)]
    for one in sent:
        left.send(one)
    right.await_frames(len(sent))
    eventually(lambda: running.stats(1)["opackets"] == len(sent))
    told = running.ask("/linerate/latency,1")
    assert [entry["span"] for entry in told] == SPANS * (len(told) // len(SPANS))
    found = [entry for entry in told if entry["count"]]
    # Those that one socket sends come by one queue, or by several.
    for name in SPANS:
        assert sum(entry["count"] for entry in found if entry["span"] == name) == len(sent)
    for entry in found:
        assert (entry["port"], entry["one_in"]) == (1, 1)
        assert 1 <= entry["sampled"] <= entry["count"]
        assert 0 < entry["min_tsc"] <= entry["mean_tsc"] <= entry["max_tsc"]
        assert "".join(entry["hdr"]).startswith("HISTF")
    for queue in {entry["queue"] for entry in found}:
        mean = {each["span"]: each["mean_tsc"] for each in found if each["queue"] == queue}
        inside, with_send, with_both, send = (mean[name] for name in SPANS)
        assert max(inside, send) <= with_send <= with_both
    # Nothing was sent the other way.
    for entry in running.ask("/linerate/latency,0"):
        assert entry["count"] == 0
        assert "min_tsc" not in entry
        assert "hdr" not in entry
    assert running.ask("/linerate/latency,x") is None
