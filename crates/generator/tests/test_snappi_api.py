# SPDX-License-Identifier: BSD-3-Clause
"""The generator driven by an unmodified snappi 1.62, as its users write scripts.

Run by pytest after a release build: `pytest crates/generator/tests`. The programs are
those in target/release of this repository, or of the directory that LINERATE_BIN names. Frames come
back over a ring in the generator itself; with our l2fwd beside it they also go over memif.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

snappi = pytest.importorskip("snappi")

BIN = Path(os.environ.get("LINERATE_BIN", Path(__file__).parents[3] / "target" / "release"))
TIMEOUT_S = 15.0


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
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(TIMEOUT_S)
            peer.connect(str(self.telemetry))
            peer.recv(1 << 16)
            peer.send(command.encode())
            (answer,) = json.loads(peer.recv(1 << 16)).values()
            return answer

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


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="otg") as path:
        yield Path(path)


@pytest.fixture
def ring(directory: Path) -> Iterator[Generator]:
    with generator(directory) as running:
        yield running


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, "not within the time"
        time.sleep(0.02)


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


def transmit(api: Any, state: str, names: list[str] | None = None) -> None:
    control = snappi.ControlState()
    control.choice = control.TRAFFIC
    control.traffic.choice = control.traffic.FLOW_TRANSMIT
    control.traffic.flow_transmit.state = state
    if names is not None:
        control.traffic.flow_transmit.flow_names = names
    api.set_control_state(control)


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


def errors(call: Callable[[], Any]) -> list[str]:
    """The errors that the API answers with, through snappi."""
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        call()
    error = info.value.args[0]
    assert isinstance(error, snappi.Error), error
    assert (error.code, error.kind) == (400, "validation")
    return list(error.errors)


def test_versions_are_compatible(ring: Generator) -> None:
    api = snappi.api(location=ring.url, version_check=True)
    api.set_config(snappi.Config())
    assert api.get_version().api_spec_version == "1.62.0"


def test_every_frame_comes_back_and_is_counted(ring: Generator) -> None:
    api = ring.api
    config = published(flows=3)
    assert list(api.set_config(config).warnings) == []
    assert api.get_config().serialize("dict") == config.serialize("dict")
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: all(metric.frames_rx == 5000 for metric in flow_metrics(api).values()))
    metrics = flow_metrics(api)
    assert sorted(metrics) == ["f0", "f1", "f2"]
    for metric in metrics.values():
        assert (metric.frames_tx, metric.bytes_tx, metric.bytes_rx) == (5000, 320000, 320000)
        assert (metric.port_tx, metric.port_rx, metric.loss) == ("p1", "p1", 0.0)
    port = port_metrics(api)["p1"]
    assert (port.frames_tx, port.frames_rx) == (15000, 15000)
    assert (port.link, port.transmit) == ("up", "stopped")
    books = ring.ask("/linerate/generator/port,p1")
    assert (books["intended"], books["attempted"], books["accepted"]) == (15000, 15000, 15000)
    assert (books["received"], books["foreign"], books["stale"]) == (15000, 0, 0)
    assert "latency_hdr" not in books
    assert (books["duplicates"], books["reordered"]) == (0, 0)
    clock = ring.ask("/linerate/clock")
    # 5000 frames at 20,000 a second.
    seconds = ring.ask("/linerate/generator/flow,f0")["tx_duration_tsc"] / clock["tsc_hz"]
    assert seconds == pytest.approx(0.25, abs=0.05)
    assert ring.ask("/linerate/generator/flow,nobody") is None


def test_start_clears_counters_and_stop_does_not(ring: Generator) -> None:
    api = ring.api
    config = published(flows=2)
    for flow in config.flows:
        flow.duration.choice = flow.duration.CONTINUOUS
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["f0"].frames_rx > 100)
    transmit(api, "stop", ["f0"])
    one = flow_metrics(api)["f0"].frames_tx
    assert one > 100
    assert flow_metrics(api)["f1"].transmit == "started"
    transmit(api, "stop")
    assert flow_metrics(api)["f0"].frames_tx == one
    two = flow_metrics(api)["f1"].frames_tx
    transmit(api, "start", ["f1"])
    transmit(api, "stop")
    assert flow_metrics(api)["f0"].frames_tx == one
    assert flow_metrics(api)["f1"].frames_tx < two


def test_fixed_seconds_send_the_intended_count(ring: Generator) -> None:
    api = ring.api
    config = published()
    flow = config.flows[0]
    flow.rate.pps = 12345
    flow.duration.fixed_seconds.seconds = 0.5
    for size in (64, 65, 513, 1518):
        flow.size.fixed = size
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        eventually(lambda: flow_metrics(api)["f0"].frames_rx == 6173)
        assert flow_metrics(api)["f0"].bytes_rx == 6173 * size


def test_columns_are_chosen(ring: Generator) -> None:
    api = ring.api
    api.set_config(published())
    only = port_metrics(api, ["frames_tx", "link"])["p1"].serialize("dict")
    assert only == {"name": "p1", "frames_tx": "0", "link": "up"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda c: c.flows[0].packet.gtpv2(), "flows[0].packet[3].gtpv2"),
        (lambda c: setattr(c.flows[0].size, "fixed", 2000), "flows[0].size.fixed"),
        (lambda c: setattr(c.flows[0].size.increment, "end", 9000), "flows[0].size.increment"),
        (lambda c: c.flows[0].packet.ipv6(), "flows[0].size"),
        (lambda c: setattr(c.flows[0].rate, "percentage", 10), "flows[0].rate.percentage"),
        (lambda c: setattr(c.flows[0].duration.burst, "gap", 13), "flows[0].duration.burst.gap"),
        (
            lambda c: setattr(c.flows[0].metrics.predefined_metric_tags, "rx_name", True),
            "flows[0].metrics.predefined_metric_tags.rx_name",
        ),
        (lambda c: setattr(c.flows[0].tx_rx.port, "tx_name", "x"), "flows[0].tx_rx.port.tx_name"),
        (lambda c: c.flows.append(published().flows[0]), "flows[1].name"),
        (lambda c: c.devices.device(name="d"), "devices"),
        (lambda c: c.lags.lag(name="l"), "lags"),
        (lambda c: c.captures.capture(name="c", port_names=["x"]), "captures[0].port_names"),
        (lambda c: c.layer1.layer1(name="l", port_names=["p1"], mtu=9000), "layer1[0].mtu"),
        (lambda c: c.ports.port(name="p2", location="no-such-if"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="vdev:net_nothing0"), "ports[1].location"),
        (
            lambda c: c.ports.port(name="p2", location="vdev:net_pcap0,tx_pcap=/x"),
            "ports[1].location",
        ),
        (
            lambda c: c.ports.port(name="p2", location="vdev:net_ring1,internal=1"),
            "ports[1].location",
        ),
        (lambda c: c.ports.port(name="p2", location="memif:/dev/null"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="vdev:net_ring0"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="pci:ffff:ff:1f.7"), "ports[1].location"),
    ],
)
def test_what_is_refused_is_named_and_changes_nothing(
    ring: Generator, change: Callable[[Any], Any], path: str
) -> None:
    api = ring.api
    good = published()
    good.flows[0].duration.choice = "continuous"
    api.set_config(good)
    transmit(api, "start")
    bad = published()
    change(bad)
    found = errors(lambda: api.set_config(bad))
    assert any(error.startswith(path) for error in found), found
    before = flow_metrics(api)["f0"]
    assert before.transmit == "started"
    eventually(lambda: flow_metrics(api)["f0"].frames_tx > before.frames_tx)
    assert api.get_config().serialize("dict") == good.serialize("dict")


def test_percentage_needs_a_line_rate(directory: Path) -> None:
    with generator(directory, "--line-rate", "40000") as running:
        api = running.api
        config = published()
        config.flows[0].rate.percentage = 25
        config.flows[0].duration.fixed_seconds.seconds = 0.5
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        assert flow_metrics(api)["f0"].frames_tx == 5000


def test_a_flood_offers_refused_frames_again(directory: Path) -> None:
    with generator(directory, "--flood") as running:
        api = running.api
        config = published()
        config.flows[0].duration.fixed_packets.packets = 100_000
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        eventually(lambda: flow_metrics(api)["f0"].frames_rx == 100_000)
        books = running.ask("/linerate/generator/flow,f0")
        assert books["accepted"] == 100_000
        assert books["lost_at_ingress"] == 0
        assert books["attempted"] == books["accepted"] + books["refused"]
        assert books["pacing"] == "flood"
        assert "pacing_error_ppm" not in books


def test_a_start_waits_for_the_link_and_then_names_the_port(
    ring: Generator, directory: Path
) -> None:
    api = ring.api
    socket_path = directory / "s"
    config = published(f"memif:{socket_path}")
    api.set_config(config)
    api.set_config(config)  # the same ports stay
    assert socket_path.is_socket()
    assert port_metrics(api)["p1"].link == "down"
    (error,) = errors(lambda: transmit(api, "start"))
    assert '"p1"' in error
    assert "down" in error
    assert flow_metrics(api)["f0"].frames_tx == 0
    api.set_config(snappi.Config())
    assert not socket_path.exists()


@pytest.mark.skipif(not (BIN / "l2fwd").exists(), reason="l2fwd is not built")
def test_the_books_close_over_memif(ring: Generator, directory: Path) -> None:
    api = ring.api
    config = published(f"memif:{directory}/s")
    config.flows[0].rate.pps = 100_000
    config.flows[0].duration.fixed_seconds.seconds = 1
    api.set_config(config)
    vdev = f"net_memif0,role=client,socket={directory}/s,socket-abstract=no"
    prefix = f"otg-l2fwd-{os.getpid()}"
    eal = ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--file-prefix", prefix]
    own = ["--vdev", vdev, "--", "-p", "1", "-T", "0"]
    with (directory / "l2fwd.log").open("w") as log:
        l2fwd = subprocess.Popen(
            [str(BIN / "l2fwd"), "-l", str(max(os.sched_getaffinity(0))), *eal, *own],
            stdout=log,
            stderr=log,
            env=environment(directory),
        )
    try:
        eventually(lambda: port_metrics(api)["p1"].link == "up")
        transmit(api, "start")
        eventually(lambda: stopped(api))
        time.sleep(0.2)  # what is in flight arrives
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            runtime = ring.telemetry.parent.parent
            peer.connect(str(runtime / prefix / "dpdk_telemetry.v2"))
            peer.recv(1 << 16)
            peer.send(b"/ethdev/stats,0")
            stats = json.loads(peer.recv(1 << 16))["/ethdev/stats"]
        books = ring.ask("/linerate/generator/port,p1")
        assert books["attempted"] == books["intended"] == 100_000
        assert books["accepted"] == stats["ipackets"]
        assert books["received"] == stats["opackets"]
        assert (books["foreign"], books["stale"], books["misdirected"]) == (0, 0, 0)
    finally:
        l2fwd.send_signal(signal.SIGINT)
        l2fwd.wait(TIMEOUT_S)
    eventually(lambda: port_metrics(api)["p1"].link == "down")


def test_hostile_requests_are_answered_and_traffic_goes_on(ring: Generator) -> None:
    api = ring.api
    config = published()
    config.flows[0].duration.choice = "continuous"
    api.set_config(config)
    transmit(api, "start")
    slow = socket.create_connection(("127.0.0.1", ring.port))
    slow.sendall(b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    many = json.loads(config.serialize())
    many["flows"] = many["flows"] * 10_000
    requests: list[tuple[str, str, bytes | str | None, int]] = [
        ("POST", "/config", b"", 400),
        ("POST", "/config", b"{", 400),
        ("POST", "/config", b"[]", 400),
        ("POST", "/config", b"\xff\xfe", 400),
        ("POST", "/config", b'{"ports":[],"ports":[]}', 400),
        ("POST", "/config", b'{"a":' * 100_000, 400),
        ("POST", "/config", b" " * (9 << 20), 413),
        ("POST", "/config", json.dumps(many), 413),
        ("POST", "/config", json.dumps({"ports": [many["ports"][0]] * 17}), 400),
        ("POST", "/config", json.dumps({"flows": [{}] * 10_000}), 400),
        ("POST", "/config", json.dumps({"flows": {"name": 1}}), 400),
        ("POST", "/control/state", b'{"choice":"port"}', 400),
        ("POST", "/monitor/metrics", b'{"choice":"bgpv4"}', 400),
        ("PATCH", "/config", b"{}", 400),
        ("PATCH", "/config", b'{"flows":{"property_names":["rate"],"flows":[{}]}}', 400),
        ("DELETE", "/config", None, 405),
        ("GET", "/nothing", None, 404),
        ("POST", "/control/action", b"{}", 400),
        ("POST", "/monitor/states", b"{}", 400),
        ("POST", "/monitor/capture", b"{}", 400),
    ]
    for method, path, body, status in requests:
        answer_status, answer = ring.request(method, path, body)
        assert answer_status == status, (method, path, answer)
        assert (answer["code"], answer["kind"]) == (status, "validation")
        assert answer["errors"]
    before = flow_metrics(api)["f0"].frames_tx
    eventually(lambda: flow_metrics(api)["f0"].frames_tx > before)
    slow.close()


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Host": ""}],
)
def test_web_pages_are_refused(ring: Generator, headers: dict[str, str]) -> None:
    for method, path in [("GET", "/config"), ("POST", "/config"), ("OPTIONS", "/x")]:
        status, answer = ring.request(method, path, "{}", headers)
        assert (status, answer["code"]) == (403, 403)
        assert answer["errors"][0].startswith(next(iter(headers)))
    assert ring.request("GET", "/config", headers={"Host": "localhost:1"})[0] == 200


def test_connections_without_a_request_are_few_and_end(ring: Generator) -> None:
    api = ring.api
    api.set_config(snappi.Config())

    def connect(first: bytes) -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", ring.port), TIMEOUT_S)
        peer.sendall(first)
        return peer

    # One connection is snappi's.
    idle = [connect(b"" if number % 2 else b"GET /config HT") for number in range(63)]
    time.sleep(0.2)
    begin = time.monotonic()
    with connect(b"") as extra:
        assert extra.recv(1) == b""
    assert time.monotonic() - begin < 5
    api.get_config()
    for peer in idle:
        while peer.recv(1 << 12):
            pass
        peer.close()
    assert 5 < time.monotonic() - begin < 14
    api.get_config()


def test_any_virtual_device_is_an_option(directory: Path) -> None:
    with generator(directory, "--allow-any-vdev") as running:
        config = snappi.Config()
        config.ports.port(name="p", location="vdev:net_nothing0")
        (error,) = errors(lambda: running.api.set_config(config))
        assert "--allow-any-vdev" not in error
        config.ports[0].location = "vdev:net_ring0,internal=0x10"
        (error,) = errors(lambda: running.api.set_config(config))
        assert "internal=" in error


def test_a_closed_terminal_ends_it_cleanly_unless_nohup_started_it(directory: Path) -> None:
    with generator(directory) as running:
        pass
    command = [str(BIN / "generator"), "--otg-listen", "127.0.0.1:0"]
    for prefix, code in [([], 0), (["nohup"], None)]:
        with subprocess.Popen(
            prefix + command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(directory),
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            runtime = Path(process.stdout.readline().split()[-1]).parent
            assert runtime != running.telemetry.parent
            process.send_signal(signal.SIGHUP)
            if code is None:
                time.sleep(0.5)
                assert process.poll() is None
                process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
            assert not runtime.exists()


def test_what_a_killed_one_leaves_is_no_obstacle(directory: Path) -> None:
    config = snappi.Config()
    config.ports.port(name="p", location=f"memif:{directory}/s")
    command = [str(BIN / "generator"), "--otg-listen", "127.0.0.1:0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(directory),
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        left = Path(process.stdout.readline().split()[-1]).parent
        snappi.api(location=url).set_config(config)
        with generator(directory) as second:
            assert left.exists()
            (error,) = errors(lambda: second.api.set_config(config))
            assert "exists" in error
        process.kill()
    assert left.exists()
    assert (directory / "s").is_socket()
    with generator(directory) as third:
        assert not left.exists()
        third.api.set_config(config)
        assert (directory / "s").is_socket()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--otg-listen"),
        (["--otg-listen", "0.0.0.0:0"], "--otg-user"),
        (["--otg-listen", "127.0.0.1:TAKEN"], "in use"),
        (["--otg-listen", "127.0.0.1:0", "--tls-cert", "x"], "--tls-key"),
        (
            ["--otg-listen", "127.0.0.1:0", "--tls-cert", "/no", "--tls-key", "/no"],
            "--tls-cert /no",
        ),
        (["--otg-listen", "127.0.0.1:0", "--port-file", "/no/such/dir/f"], "--port-file"),
        (["-l", "4095", "--no-pci", "--", "--otg-listen", "127.0.0.1:0"], "-l 4095"),
    ],
)
def test_a_wrong_command_line_is_told(directory: Path, options: list[str], words: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [str(BIN / "generator"), *(option.replace("TAKEN", port) for option in options)]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment(directory),
        )
    assert done.returncode != 0
    assert words in done.stderr, done.stderr


def test_with_a_certificate_the_api_is_served_over_https(directory: Path) -> None:
    certificate, key = directory / "cert.pem", directory / "key.pem"
    request = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    made = [*request.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    options = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    with generator(directory, *options) as running:
        assert running.url.startswith("https://")
        api = snappi.api(location=running.url, verify=False)
        api.set_config(published())
        assert api.get_config().ports[0].name == "p1"
        with pytest.raises((OSError, http.client.HTTPException)):
            running.request("GET", "/config")  # no plain HTTP at the same address


def test_the_port_file_comes_and_goes(directory: Path) -> None:
    file = directory / "port"
    with generator(directory, "--port-file", str(file)) as running:
        eventually(file.exists)
        assert int(file.read_text()) == running.port
    assert not file.exists()


def test_idle_costs_next_to_nothing(ring: Generator) -> None:
    ring.api.set_config(published())
    time.sleep(0.1)

    def cpu_seconds() -> float:
        fields = Path(f"/proc/{ring.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu_seconds()
    time.sleep(1)
    assert cpu_seconds() - before < 0.2
