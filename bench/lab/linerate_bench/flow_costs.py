# SPDX-License-Identifier: BSD-3-Clause
"""Measures what many flows, and metric tags, cost our generator.

    python -m linerate_bench.flow_costs [ROUNDS]

ROUNDS: 5 unless given. In each round every case is measured once, by a new process, in an order
drawn anew. The generator floods a ring on one lcore, and all frames come back: 64-byte UDP with
sequence numbers. Cycles per frame are those of sending and receiving it together: the TSC's
frequency, times the seconds for which the process ran, divided by the frames. With more than one
flow, successive frames belong to different flows, which is the worst case for the CPU's caches.
Memory is what the process has after traffic, less what it had without a configuration. Another
client asks for the ports' metrics again and again; `held up` is the longest that it waited for an
answer while a configuration was set, and while the metrics of all flows were read.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError, TrialError
from linerate.host.exit_status import fail
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory, checkpoint, interruptible
from linerate.links import Wire
from linerate.links.eal import Memory
from linerate.runs.session import pinned
from linerate.traffic.generator import Generator
from linerate_bench.arguments import number
from linerate_bench.generator_speed import rate

ROUNDS = 5
SETTLE_S, WINDOW_S = 0.3, 1.0
TIMEOUT_S = 60.0
SIZE = 64


@dataclass(frozen=True)
class Case:
    """So many flows, all of which have a tag of this kind, if any."""

    flows: int
    tag: str = ""

    @property
    def name(self) -> str:
        return f"{self.flows:,} flow{'s' if self.flows > 1 else ''}{self.tag and f', {self.tag}'}"


CASES = (
    Case(1),
    Case(1, "rx_name"),
    Case(1, "tag as sent"),
    Case(1, "tag as received"),
    Case(64),
    Case(1024),
    Case(4096),
    Case(16_384),
    Case(16_384, "tag as sent"),
)


@dataclass(frozen=True)
class Figures:
    """The measured costs of one case."""

    cycles: float
    mib: float
    set_s: float
    start_s: float
    metrics_s: float
    held_up_s: float


def configuration(case: Case) -> dict[str, Any]:
    """Return the case's configuration in OTG's JSON."""
    port: dict[str, Any] = {"choice": "increment", "increment": {"start": 1024, "count": 64}}
    metrics: dict[str, Any] = {"enable": True, "loss": True}
    tag = {"metric_tags": [{"name": "port"}]}
    more: dict[str, Any] = {}
    if case.tag == "rx_name":
        metrics["predefined_metric_tags"] = {"rx_name": True}
    elif case.tag == "tag as sent":
        port |= tag
    elif case.tag == "tag as received":
        more["egress_packet"] = [{"ethernet": {}}, {"ipv4": {}}, {"udp": {"src_port": tag}}]
    flow = {
        "tx_rx": {"port": {"tx_name": "p0", "rx_names": ["p0"]}},
        "packet": [{"ethernet": {}}, {"ipv4": {}}, {"udp": {"src_port": port}}],
        "size": {"fixed": SIZE},
        "rate": {"pps": 1000},
        "duration": {"choice": "continuous"},
        "metrics": metrics,
        **more,
    }
    flows = [{"name": f"f{index}", **flow} for index in range(case.flows)]
    return {"ports": [{"name": "p0", "location": "vdev:net_ring0"}], "flows": flows}


@dataclass
class Client:
    """A client of the generator's API, over a connection of its own."""

    url: str
    user: tuple[str, str] | None

    def post(self, path: str, body: str) -> Any:
        """Return the answer. Raises `TrialError` if it is no 200."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            str(address.hostname), address.port, timeout=TIMEOUT_S
        )
        headers = {}
        if self.user:
            words = base64.b64encode(":".join(self.user).encode()).decode()
            headers["Authorization"] = f"Basic {words}"
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise TrialError(f"POST {path}: {answer[:300].decode(errors='replace')}")
        return answer

    @contextmanager
    def waiting(self, longest: list[float]) -> Iterator[None]:
        """Ask for the ports' metrics all the time; append the longest wait in seconds."""
        end = threading.Event()
        waits = [0.0]

        def ask() -> None:
            while not end.is_set():
                began = time.monotonic()
                self.post("/monitor/metrics", "{}")
                waits.append(time.monotonic() - began)
                end.wait(0.005)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            yield
        finally:
            end.set()
            asking.join()
        longest.append(max(waits))


def timed(client: Client, path: str, body: str) -> float:
    """Return the seconds that a request took."""
    began = time.monotonic()
    client.post(path, body)
    return time.monotonic() - began


def resident_mib(generator: Generator) -> float:
    """Return the memory of the generator's process."""
    status = Path(f"/proc/{generator.child.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if "VmRSS" in line)


def measure(run: RunDirectory, cpu: int, memory: Memory, case: Case) -> tuple[Figures, int]:
    """Measure a case; return its figures and the frequency of the TSC."""
    generator = Generator(run, cpu, memory, Wire(), flood=True, timeout_s=TIMEOUT_S)
    try:
        client = Client(generator.client.url, generator.client.user)
        before, longest = resident_mib(generator), list[float]()
        body = json.dumps(configuration(case))
        with client.waiting(longest):
            set_s = timed(client, "/config", body)
        start = {"flow_transmit": {"state": "start"}, "choice": "flow_transmit"}
        start_s = timed(
            client, "/control/state", json.dumps({"choice": "traffic", "traffic": start})
        )
        time.sleep(SETTLE_S)
        found = rate(generator.telemetry, lambda: generator.child.activity().ran_s, WINDOW_S)
        generator.child.check()
        ask = json.dumps({"choice": "flow", "flow": {"flow_names": []}})
        with client.waiting(longest):
            metrics_s = timed(client, "/monitor/metrics", ask)
        hz = generator.tsc_hz()
        if found.sent <= 0 or found.received < 0.9 * found.sent:
            raise TrialError(
                f"{case.name}: {found.received:.0f} of {found.sent:.0f} frames/s came back"
            )
        mib = resident_mib(generator) - before
        return Figures(hz / found.sent, mib, set_s, start_s, metrics_s, max(longest)), hz
    finally:
        generator.close()


def table(rounds: list[dict[Case, Figures]]) -> list[str]:
    """Return a line for each case: medians, and the longest that another client was held up."""
    times = " ".join(f"{name:>8}" for name in ("set", "start", "metrics", "held up"))
    lines = [f"{'':28} {'cycles/frame':>13} {'MiB':>7} {times}"]
    for case in CASES:
        found = [each[case] for each in rounds if case in each]
        if not found:
            lines.append(f"{case.name:28} {'absent':>13}")
            continue

        def middle(field: str, found: list[Figures] = found) -> float:
            return float(statistics.median(getattr(each, field) for each in found))

        times = "".join(
            f" {middle(name) * 1e3:5.0f} ms" for name in ("set_s", "start_s", "metrics_s")
        )
        held_up = max(each.held_up_s for each in found) * 1e3
        lines.append(
            f"{case.name:28} {middle('cycles'):13.1f} {middle('mib'):7.0f}{times} {held_up:5.0f} ms"
        )
    return lines


def main() -> None:
    count = number("flow_costs [ROUNDS]", ROUNDS)
    source, rounds = random.Random(1), list[dict[Case, Figures]]()
    try:
        rust_binary("generator")
        with leased(), interruptible(), RunDirectory() as run:
            cores = Cores.choose()
            with pinned(cores.control):
                memory = Memory.choose()
                for _ in range(count):
                    rounds.append({})
                    for case in source.sample(CASES, len(CASES)):
                        checkpoint()
                        try:
                            rounds[-1][case], hz = measure(run, cores.forwarder, memory, case)
                        except TrialError as error:
                            print(f"absent: {error}", file=sys.stderr)
    except LabError as error:
        fail(f"the costs of flows: {error}")
    if not any(rounds):
        fail("the costs of flows: the generator was never measured")
    print(
        f"Flows on one lcore of this machine, {SIZE} B, TSC at {hz / 1e9:.2f} GHz, {count} rounds:"
    )
    for line in table(rounds):
        print(line)


if __name__ == "__main__":
    main()
