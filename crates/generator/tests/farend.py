# SPDX-License-Identifier: BSD-3-Clause
"""Generators and forwarders as tests run them, and what tests ask them.

The programs are those in target/release of this repository, or of the directory that LINERATE_BIN
names. Every wait ends after TIMEOUT_S.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness import BIN, TIMEOUT_S, environment, eventually
from harness import ask_telemetry as ask

snappi = pytest.importorskip("snappi")

CPUS = sorted(os.sched_getaffinity(0))
# EAL's options where nothing is to be shared with anybody.
MEMORY = ("--no-pci", "--no-huge", "--no-shconf", "-m", "512")
LOSSLESS_PPS = 10_000
"""A rate at which a busy machine has to stand still for 0.4 s before a ring of 4096 is full."""


@dataclass
class Generator:
    """A running generator, asked through snappi and through telemetry."""

    process: subprocess.Popen[str]
    url: str
    telemetry: Path

    @property
    def api(self) -> Any:
        return snappi.api(location=self.url)

    def ask(self, command: str) -> Any:
        return ask(self.telemetry, command)

    def flow(self, name: str = "f0") -> dict[str, Any]:
        """A flow's books."""
        return dict(self.ask(f"/linerate/generator/flow,{name}"))

    def port(self, name: str = "p1") -> dict[str, Any]:
        """A port's books."""
        return dict(self.ask(f"/linerate/generator/port,{name}"))

    def transmit(self, state: str, names: Sequence[str] = ()) -> Any:
        control = snappi.ControlState()
        control.choice = control.TRAFFIC
        control.traffic.choice = control.traffic.FLOW_TRANSMIT
        control.traffic.flow_transmit.state = state
        if names:
            control.traffic.flow_transmit.flow_names = list(names)
        return self.api.set_control_state(control)

    def flows(self) -> dict[str, Any]:
        """OTG's metrics of all flows."""
        request = snappi.MetricsRequest()
        request.flow.flow_names = []
        return {metric.name: metric for metric in self.api.get_metrics(request).flow_metrics}

    def ports(self) -> dict[str, Any]:
        """OTG's metrics of all ports."""
        request = snappi.MetricsRequest()
        request.port.port_names = []
        return {metric.name: metric for metric in self.api.get_metrics(request).port_metrics}

    def link(self, name: str = "p1") -> str:
        return str(self.ports()[name].link)

    def stopped(self) -> bool:
        return all(metric.transmit == "stopped" for metric in self.flows().values())


@contextmanager
def generator(directory: Path, *options: str, eal: Sequence[str] = ()) -> Iterator[Generator]:
    """A generator that must end cleanly. `eal` are EAL options in place of its own choice."""
    log = directory / "generator.log"
    command = [str(BIN / "generator"), *eal, *(["--"] if eal else [])]
    with log.open("a") as errors:
        process = subprocess.Popen(
            [*command, "--otg-listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(directory),
        )
    assert process.stdout is not None
    try:
        url, telemetry = process.stdout.readline(), process.stdout.readline()
        assert url.startswith("OTG on http"), log.read_text()
        assert telemetry.startswith("telemetry /"), log.read_text()
        running = Generator(process, url.split()[-1], Path(telemetry.split()[-1]))
        yield running
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGTERM)
        code = process.wait(TIMEOUT_S)
        assert code == 0, (code, log.read_text())
        # With EAL options of the user's own the directory is the user's, too.
        assert eal or not running.telemetry.parent.exists()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@dataclass
class Forwarder:
    """A running forwarder."""

    process: subprocess.Popen[bytes]
    devices: Sequence[str]
    telemetry: Path
    log: Path

    def ask(self, command: str) -> Any:
        assert self.process.poll() is None, self.log.read_text()
        return ask(self.telemetry, command)

    def packets(self) -> tuple[int, int]:
        """Frames that its first port has received and sent."""
        stats = self.ask("/ethdev/stats,0")
        return stats["ipackets"], stats["opackets"]

    def wait(self, command: str = "/linerate/polling") -> None:
        """Until it forwards, and answers this."""

        def forwards() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError):
                return ask(self.telemetry, command) is not None
            return False

        eventually(forwards, self.log.read_text)

    def wait_for_ports(self) -> None:
        """Until its ports are started. Who finds a memif server before may never get a link."""
        eventually(lambda: "Checking link status" in self.log.read_text(), self.log.read_text)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)


def part(running: Generator, far: Forwarder) -> None:
    """Takes a link apart.

    When one end goes, DPDK 22.11's memif driver unmaps the rings in the other one, whether they are
    being polled at that moment or not, and what was polling then dies. So neither end may poll: the
    forwarder stands still while the generator closes its port. (On a vhost-user link it must not,
    for there the generator's end asks it.)
    """
    memif = any(device.startswith("net_memif") for device in far.devices)
    if memif:
        far.process.send_signal(signal.SIGSTOP)
    running.api.set_config(snappi.Config())
    # A vhost-user server is to take its socket along.
    far.process.send_signal(signal.SIGKILL if memif else signal.SIGTERM)
    far.process.wait(TIMEOUT_S)


@contextmanager
def forwarder(
    directory: Path,
    program: str,
    devices: Sequence[str],
    options: Sequence[str] = (),
    *,
    before: Sequence[str] = (),
    lcores: str = f"0@{CPUS[-1]}",
) -> Iterator[Forwarder]:
    """One of our forwarders; on the last CPU, for generators take the first.

    It is killed at the end: take its link apart before, by `part`.
    """
    name = f"{program}-{time.monotonic_ns()}"
    log = directory / f"{name}.log"
    command = [*before, str(BIN / program), "--lcores", lcores, *MEMORY, "--file-prefix", name]
    for device in devices:
        command += ["--vdev", device]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--", *options], stdout=output, stderr=output, env=environment(directory)
        )
    try:
        telemetry = directory / "dpdk" / name / "dpdk_telemetry.v2"
        yield Forwarder(process, devices, telemetry, log)
    finally:
        process.kill()
        process.wait()


def memif(socket: Path, number: int = 0) -> str:
    """A forwarder's end of a memif link; it chooses the size of the rings, 4096."""
    end = f"role=client,id={number},socket={socket},socket-abstract=no,rsize=12"
    return f"net_memif{number},{end}"


def flow(
    config: Any,
    name: str,
    tx: str,
    rx: Sequence[str],
    *,
    size: int = 64,
    pps: int = LOSSLESS_PPS,
    frames: int | None = None,
    latency: bool = False,
) -> Any:
    """A UDP flow that counts everything; continuous without a number of frames."""
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = tx, list(rx)
    ethernet, ipv4, udp = made.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:01:00", "02:00:00:00:00:00"
    ipv4.src.value = "198.18.0.1"
    ipv4.dst.increment.start, ipv4.dst.increment.count = "198.19.0.1", 100
    udp.src_port.increment.start, udp.src_port.increment.count = 10000, 1000
    udp.dst_port.value = 9
    made.size.fixed, made.rate.pps = size, pps
    if frames is None:
        made.duration.choice = made.duration.CONTINUOUS
    else:
        made.duration.fixed_packets.packets = frames
    made.metrics.enable = made.metrics.loss = True
    if latency:
        made.metrics.latency.enable = True
        made.metrics.latency.mode = made.metrics.latency.CUT_THROUGH
    return made
