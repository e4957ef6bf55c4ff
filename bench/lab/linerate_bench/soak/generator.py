# SPDX-License-Identifier: BSD-3-Clause
"""Whether the generator's memory grows.

    python -m linerate_bench.generator_soak [MINUTES]

MINUTES: 60 unless given. Eight flows with latency run over a ring in the generator itself while a
client does what clients do: asks for metrics five times a second, changes rates, starts and stops
captures and fetches them, and posts the configuration anew. The resident memory is printed each
minute. Exit status 1 when it grew after the first sixth, which fills what is bounded (captures,
pools), by more than `ALLOWED_KB`, or when a frame is missing at the end.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError
from linerate.host.exit_status import ExitStatus, fail
from linerate.host.process import RunDirectory
from linerate.links import Wire
from linerate.links.eal import Memory
from linerate.traffic.generator import Generator
from linerate_bench.arguments import number

MINUTES = 60.0
# Steps of the client, a fifth of a second each, after which it does something.
STEP_S = 0.2
CONFIGURE, CAPTURE, UPDATE = 1500, 300, 40
FLOWS, PPS, SIZE = 8, 20_000, 128
ALLOWED_KB = 2048
SETTLE_S = 5.0


def resident_kb(status: str) -> int:
    """Of the text of /proc/PID/status, in KiB."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    if not found:
        raise LabError("the kernel does not say how much memory the generator has")
    return int(found.group(1))


def growth(samples: list[int]) -> int:
    """By how much the most of the last sixth exceeds the most of the second one, in KiB."""
    sixth = max(1, len(samples) // 6)
    return max(samples[-sixth:]) - max(samples[sixth : 2 * sixth] or samples[:1])


class Client:
    """What a test script does, over and over."""

    def __init__(self, generator: Generator) -> None:
        self._api: Any = generator.client._api
        self._config: Any = None
        self._steps = 0

    def _configuration(self) -> Any:
        config = self._api.config()
        config.ports.port(name="p0", location="ring:soak")
        for index in range(FLOWS):
            flow = config.flows.flow(name=f"f{index}")[-1]
            flow.tx_rx.port.tx_name = "p0"
            flow.tx_rx.port.rx_names = ["p0"]
            flow.size.fixed = SIZE
            flow.rate.pps = PPS
            flow.metrics.enable = True
            flow.metrics.latency.enable = True
            _, ipv4, _ = flow.packet.ethernet().ipv4().udp()
            ipv4.src.increment.count = 1000
        capture = config.captures.capture(name="c")[-1]
        capture.port_names = ["p0"]
        capture.format = "pcapng"
        return config

    def transmit(self, state: str) -> None:
        control = self._api.control_state()
        control.traffic.flow_transmit.state = state
        self._api.set_control_state(control)

    def _capture(self, state: str) -> None:
        control = self._api.control_state()
        control.port.capture.state = state
        self._api.set_control_state(control)

    def frames(self) -> tuple[int, int]:
        """Sent and received since the last start."""
        request = self._api.metrics_request()
        request.flow.flow_names = []
        metrics = self._api.get_metrics(request).flow_metrics
        return sum(m.frames_tx for m in metrics), sum(m.frames_rx for m in metrics)

    def step(self) -> None:
        if self._steps % CONFIGURE == 0:
            self._config = self._configuration()
            self._api.set_config(self._config)
            self.transmit("start")
        if self._steps % CAPTURE == CAPTURE // 6:
            self._capture("start")
        if self._steps % CAPTURE == CAPTURE // 2:
            self._capture("stop")
            request = self._api.capture_request()
            request.port_name = "p0"
            self._api.get_capture(request)
        if self._steps % UPDATE == UPDATE // 2:
            update = self._api.config_update()
            update.choice = "flows"
            update.flows.property_names = ["rate"]
            flow = self._config.flows[self._steps // UPDATE % FLOWS]
            flow.rate.pps = PPS // 2 + self._steps % 7 * 3000
            update.flows.flows.append(flow)
            self._api.update_config(update)
        self.frames()
        self._steps += 1


def soak(generator: Generator, minutes: float) -> tuple[list[int], int]:
    """Resident memory in KiB, twelve times a minute, and the frames missing at the end."""
    assert generator.child
    status = Path(f"/proc/{generator.child.pid}/status")
    client = Client(generator)
    client._api.set_config(client._api.config())
    samples: list[int] = []
    end = time.monotonic() + minutes * 60
    next_sample = time.monotonic()
    while time.monotonic() < end:
        generator.check()
        client.step()
        if time.monotonic() >= next_sample:
            next_sample += 5.0
            samples.append(resident_kb(status.read_text()))
            if len(samples) % 12 == 1:
                sent, _ = client.frames()
                print(f"minute {len(samples) // 12}: {samples[-1]} KiB, {sent} frames", flush=True)
        time.sleep(STEP_S)
    client.transmit("stop")
    return samples, _missing(client)


def _missing(client: Client) -> int:
    """Frames that have not come back when nothing comes any more."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        sent, received = client.frames()
        if sent == received or time.monotonic() >= deadline:
            return sent - received
        time.sleep(0.05)


def main() -> None:
    minutes = number("generator_soak [MINUTES]", MINUTES)
    try:
        with leased(), RunDirectory() as run:
            generator = Generator(run, Cores.choose().control, Memory.choose(), Wire(), flood=False)
            try:
                samples, missing = soak(generator, minutes)
            finally:
                generator.close()
    except LabError as error:
        fail(f"the generator's soak: {error}")
    grown = growth(samples)
    print(f"grew by {grown} KiB after the first sixth of {minutes:g} min; {missing} frames missing")
    if grown > ALLOWED_KB or missing:
        sys.exit(ExitStatus.UNDECIDED)


if __name__ == "__main__":
    main()
