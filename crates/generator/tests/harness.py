# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the generator share: a running generator, snappi's requests, bounded waits.

Needs a release build. The programs are those in target/release of this repository, or of the
directory that LINERATE_BIN names.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import snappi
from frames import read_pcap

BIN = Path(os.environ.get("LINERATE_BIN", Path(__file__).parents[3] / "target" / "release"))
TIMEOUT_S = 15.0
# Bytes of a frame that captures do not have.
FCS = 4


def ask_telemetry(path: Path, command: str) -> Any:
    """Asks DPDK's telemetry socket; the answer of one command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(TIMEOUT_S)
        peer.connect(str(path))
        peer.recv(1 << 16)
        peer.send(command.encode())
        (answer,) = json.loads(peer.recv(1 << 16)).values()
        return answer


@dataclass
class Generator:
    """A running generator."""

    process: subprocess.Popen[str]
    url: str
    telemetry: Path

    @property
    def api(self) -> Any:
        return snappi.api(location=self.url)

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, command: str) -> Any:
        """Asks the telemetry socket."""
        return ask_telemetry(self.telemetry, command)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """A request that snappi would not make."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def environment(directory: Path) -> dict[str, str]:
    """Run-time files go into the test's own directory, as root and without."""
    return {**os.environ, "RUNTIME_DIRECTORY": str(directory), "XDG_RUNTIME_DIR": str(directory)}


@contextmanager
def generator(directory: Path, *options: str) -> Iterator[Generator]:
    """A generator that must end cleanly and leave nothing behind."""
    log = directory / "generator.log"
    command = [str(BIN / "generator"), "--otg-listen", "127.0.0.1:0", *options]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(directory)
        )
    assert process.stdout is not None
    try:
        url, telemetry = process.stdout.readline(), process.stdout.readline()
        assert url.startswith(("OTG on http://127.0.0.1:", "OTG on https://127.0.0.1:")), (
            log.read_text()
        )
        assert telemetry.startswith("telemetry /"), log.read_text()
        yield Generator(process, url.split()[-1], Path(telemetry.split()[-1]))
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0, log.read_text()
        assert not Path(telemetry.split()[-1]).parent.exists()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def forwarder(directory: Path, *sockets: Path) -> Iterator[Path]:
    """Our l2fwd, the client of memif sockets that a generator serves: what comes in at one goes out
    at the next in pairs, or where it came from if there is one. Yields its telemetry socket."""
    prefix = f"otg-l2fwd-{os.getpid()}"
    command = [str(BIN / "l2fwd"), "-l", str(max(os.sched_getaffinity(0)))]
    command += ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--file-prefix", prefix]
    for number, place in enumerate(sockets):
        command += ["--vdev", f"net_memif{number},role=client,socket={place},socket-abstract=no"]
    command += ["--", "-p", hex((1 << len(sockets)) - 1), "-q", str(len(sockets)), "-T", "0"]
    path = directory / "l2fwd.log"
    with path.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(directory))
    telemetry = directory / "dpdk" / prefix / "dpdk_telemetry.v2"

    def polls() -> bool:
        """A memif link is up before its far end gives it buffers, which it does when it polls."""
        assert process.poll() is None, path.read_text()
        try:
            # Null until the command is known.
            queues = ask_telemetry(telemetry, "/linerate/polling") or []
        except OSError:
            return False
        return len(queues) == len(sockets) and all(queue["polls"] > 1 for queue in queues)

    try:
        eventually(polls)
        yield telemetry
    finally:
        assert process.poll() is None, path.read_text()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(TIMEOUT_S)
        finally:
            process.kill()
            process.wait()


def certificate(directory: Path) -> tuple[str, str]:
    """The options for HTTPS, with a certificate that nobody has signed."""
    made, key = directory / "cert.pem", directory / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    request += ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run(request, check=True, capture_output=True)
    return f"--tls-cert={made}", f"--tls-key={key}"


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def eventually(condition: Callable[[], bool], what: Callable[[], object] = str) -> None:
    """Waits, within bounds, until the condition holds; `what` tells what was there instead."""
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, f"not within {TIMEOUT_S:g} s: {what()}"
        time.sleep(0.01)


def published(location: str = "vdev:net_ring0", flows: int = 1) -> Any:
    """The published traffic, by the API's own classes."""
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    for number in range(flows):
        flow = config.flows.flow(name=f"f{number}")[-1]
        flow.tx_rx.port.tx_name = "p1"
        flow.tx_rx.port.rx_names = ["p1"]
        ethernet, ipv4, udp = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:01:00", "02:00:00:00:00:00"
        ipv4.src.increment.start, ipv4.src.increment.count = "198.18.0.1", 16126
        ipv4.dst.increment.start, ipv4.dst.increment.count = "198.19.0.1", 16126
        for field in (udp.src_port, udp.dst_port):
            field.increment.start, field.increment.step, field.increment.count = 10000, 1, 1000
        flow.size.fixed = 64
        flow.rate.pps = 20000
        flow.duration.fixed_packets.packets = 5000
        flow.metrics.enable = True
        flow.metrics.loss = True
    return config


def looped(flow_names: list[str], pps: int = 10_000) -> Any:
    """A port whose frames come back, and plain flows of UDP that do not end."""
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    for name in flow_names:
        flow = config.flows.flow(name=name)[-1]
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
        flow.packet.ethernet().ipv4().udp()
        flow.rate.pps = pps
        flow.metrics.enable = flow.metrics.loss = True
    return config


def transmit(api: Any, state: str, names: list[str] | None = None) -> list[str]:
    """Flows start, stop, pause or resume. Returns the warnings."""
    control = snappi.ControlState()
    control.choice = control.TRAFFIC
    control.traffic.choice = control.traffic.FLOW_TRANSMIT
    control.traffic.flow_transmit.state = state
    if names is not None:
        control.traffic.flow_transmit.flow_names = names
    return list(api.set_control_state(control).warnings)


def capture(api: Any, state: str, names: list[str] | None = None) -> None:
    """Captures start or stop."""
    control = snappi.ControlState()
    control.port.capture.state = state
    if names is not None:
        control.port.capture.port_names = names
    api.set_control_state(control)


def captured(api: Any, port: str, first: int | None = None, count: int = 100) -> bytes:
    """The file of a port's capture, or so many of its frames from the first one on."""
    request = snappi.CaptureRequest(port_name=port)
    if first is not None:
        request.packets.slice.initial.start = first
        request.packets.slice.initial.count = count
    content: bytes = api.get_capture(request).read()
    return content


def flow_metrics(api: Any) -> dict[str, Any]:
    request = snappi.MetricsRequest()
    request.flow.flow_names = []
    return {metric.name: metric for metric in api.get_metrics(request).flow_metrics}


def port_metrics(api: Any, columns: list[str] | None = None) -> dict[str, Any]:
    request = snappi.MetricsRequest()
    request.port.port_names = []
    if columns is not None:
        request.port.column_names = columns
    return {metric.name: metric for metric in api.get_metrics(request).port_metrics}


def stopped(api: Any) -> bool:
    return all(metric.transmit == "stopped" for metric in flow_metrics(api).values())


def run(api: Any, config: Any) -> dict[str, Any]:
    """Sends all that a configuration says and waits until it has come back; the flows' metrics."""
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: all(m.frames_rx >= m.frames_tx for m in flow_metrics(api).values()))
    return flow_metrics(api)


def captured_flow(count: int) -> tuple[Any, Any]:
    """A configuration whose frames come back and are captured, and its flow, without headers."""
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
    flow.rate.pps = 20_000
    flow.duration.fixed_packets.packets = count
    return config, flow


def sent(running: Generator, config: Any) -> list[bytes]:
    """The frames that come back, as a capture has them: without FCS."""
    count = config.flows[0].duration.fixed_packets.packets
    api = running.api
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: port_metrics(api)["p1"].frames_rx == count)
    capture(api, "stop")
    records = read_pcap(captured(api, "p1"))
    assert all(record.length == len(record.data) for record in records)
    stamps = [record.nanoseconds for record in records]
    assert stamps == sorted(stamps)
    return [record.data for record in records]


def errors(call: Callable[[], Any]) -> list[str]:
    """The errors that the API answers with, through snappi."""
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        call()
    error = info.value.args[0]
    assert isinstance(error, snappi.Error), error
    assert (error.code, error.kind) == (400, "validation")
    return list(error.errors)
