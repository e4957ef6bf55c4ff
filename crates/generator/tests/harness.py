# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the generator share: a running generator, what it is asked, bounded waits.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import snappi
import traffic
from frames import read_pcap

BIN = Path(os.environ.get("LINERATE_BIN", Path(__file__).parents[3] / "target" / "release"))
TIMEOUT_S = 15.0
CPUS = sorted(os.sched_getaffinity(0))
# EAL's options where nothing is to be shared with anybody.
MEMORY = ("--no-pci", "--no-huge", "--no-shconf", "-m", "512")


def ask_telemetry(path: Path, command: str) -> Any:
    """Asks DPDK's telemetry socket; the answer of one command."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(TIMEOUT_S)
        peer.connect(str(path))
        peer.recv(1 << 16)
        peer.send(command.encode())
        (answer,) = json.loads(peer.recv(1 << 16)).values()
        return answer


def eventually(
    condition: Callable[[], bool],
    what: Callable[[], object] = str,
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Waits, within bounds, until the condition holds; `what` tells what was there instead."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {what()}"
        time.sleep(0.01)


@dataclass
class Generator:
    """A running generator, asked over OTG and telemetry."""

    process: subprocess.Popen[str]
    log: Path
    url: str
    telemetry: Path
    # What it prints beside: the paths of its socket and its token.
    files: dict[str, str] = field(default_factory=dict)

    @property
    def api(self) -> Any:
        return snappi.api(location=self.url)

    @property
    def http_port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def ask(self, command: str) -> Any:
        """Asks the telemetry socket."""
        return ask_telemetry(self.telemetry, command)

    def flow(self, name: str = "f0") -> dict[str, Any]:
        """A flow's books."""
        return dict(self.ask(f"/linerate/generator/flow,{name}"))

    def port(self, name: str = "p1") -> dict[str, Any]:
        """A port's books."""
        return dict(self.ask(f"/linerate/generator/port,{name}"))

    def transmit(self, state: str, names: Sequence[str] = ()) -> list[str]:
        """Flows start, stop, pause or resume; all of them when none is named."""
        return traffic.transmit(self.api, state, list(names) or None)

    def flows(self) -> dict[str, Any]:
        """OTG's metrics of all flows."""
        return traffic.flow_metrics(self.api)

    def ports(self) -> dict[str, Any]:
        """OTG's metrics of all ports."""
        return traffic.port_metrics(self.api)

    def link(self, name: str = "p1") -> str:
        return str(self.ports()[name].link)

    def stopped(self) -> bool:
        """No flow sends."""
        return traffic.stopped(self.api)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Any]:
        """A request that snappi would not make."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=TIMEOUT_S)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def download(self, path: str, body: str) -> list[str]:
        """Asks for a file, which is read and dropped; the errors if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=TIMEOUT_S)
        connection.request("POST", path, body)
        response = connection.getresponse()
        content = response.read()
        return [] if response.status == 200 else list(json.loads(content)["errors"])


def environment(directory: Path) -> dict[str, str]:
    """Run-time files go into the test's own directory, as root and without."""
    return {**os.environ, "RUNTIME_DIRECTORY": str(directory), "XDG_RUNTIME_DIR": str(directory)}


@contextmanager
def started(
    directory: Path,
    *options: str,
    eal: Sequence[str] = (),
    before: Sequence[str] = (),
    sockets: Path | None = None,
    trusting: bool = True,
) -> Iterator[Generator]:
    """A generator that may end in any way. `eal` are EAL options in place of its own choice;
    `sockets` is where configurations may have theirs, `directory` unless given. `trusting`: root's
    serves everybody, and at all interfaces, as another user's does."""
    log = directory / "generator.log"
    options = ("--socket-directory", str(sockets or directory), *options)
    if trusting:
        asked = any(option.startswith("--otg-user") for option in options)
        options = (*options, "--allow-port=*", *([] if asked else ["--insecure"]))
    command = [*before, str(BIN / "generator"), *eal, *(["--"] if eal else [])]
    with log.open("a") as errors:
        process = subprocess.Popen(
            [*command, "--otg-listen", "127.0.0.1:0", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(directory),
        )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("socket "):
            lines.append(process.stdout.readline())
        url, telemetry = lines[0], "".join(lines[1:2])
        assert url.startswith(("OTG on http://127.0.0.1:", "OTG on https://127.0.0.1:")), (
            log.read_text()
        )
        assert telemetry.startswith("telemetry /"), log.read_text()
        given = dict(line.split()[:2] for line in lines[2:])
        yield Generator(process, log, url.split()[-1], Path(telemetry.split()[-1]), given)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def generator(
    directory: Path,
    *options: str,
    eal: Sequence[str] = (),
    before: Sequence[str] = (),
    sockets: Path | None = None,
    trusting: bool = True,
) -> Iterator[Generator]:
    """The same, that must end cleanly and leave nothing behind."""
    with started(
        directory, *options, eal=eal, before=before, sockets=sockets, trusting=trusting
    ) as running:
        yield running
        assert running.process.poll() is None, running.log.read_text()
        running.process.send_signal(signal.SIGTERM)
        code = running.process.wait(TIMEOUT_S)
        assert code == 0, (code, running.log.read_text())
        # With EAL options of the user's own the directory is the user's, too.
        assert eal or not running.telemetry.parent.exists()


def resident(running: Generator) -> int:
    """Bytes of memory that the generator has."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if "VmRSS" in line)


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


def run(api: Any, config: Any) -> dict[str, Any]:
    """Sends all that a configuration says and waits until it has come back; the flows' metrics."""
    api.set_config(config)
    traffic.transmit(api, "start")
    eventually(lambda: traffic.stopped(api))
    eventually(lambda: all(m.frames_rx >= m.frames_tx for m in traffic.flow_metrics(api).values()))
    return traffic.flow_metrics(api)


def sent(running: Generator, config: Any) -> list[bytes]:
    """The frames that come back, by a capture, without the FCS that it has."""
    count = config.flows[0].duration.fixed_packets.packets
    api = running.api
    api.set_config(config)
    traffic.capture(api, "start")
    traffic.transmit(api, "start")
    eventually(lambda: traffic.port_metrics(api)["p1"].frames_rx == count)
    traffic.capture(api, "stop")
    records = read_pcap(traffic.captured(api, "p1"))
    assert all(record.length == len(record.data) for record in records)
    stamps = [record.nanoseconds for record in records]
    assert stamps == sorted(stamps)
    return [traffic.without_fcs(record.data) for record in records]


def send_captured(running: Generator, frames: int) -> None:
    """Start all flows, of so many frames each, and capture until nearly all of them are back."""
    traffic.capture(running.api, "start")
    running.transmit("start")
    eventually(running.stopped)
    # The kernel may drop some when nobody polls for a moment.
    eventually(
        lambda: all(each.frames_rx >= 0.98 * frames for each in running.flows().values()),
        lambda: [(each.name, each.frames_rx) for each in running.flows().values()],
    )
    traffic.capture(running.api, "stop")
