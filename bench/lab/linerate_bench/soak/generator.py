# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the generator's memory and open files do not grow while clients use it.

Eight flows with latency run over a ring in the generator itself. A client asks for metrics five
times a second, changes rates, starts, stops and fetches captures, and every few seconds stops the
traffic, posts the configuration again and starts it. The first sixth of a turn fills what is
bounded (captures, pools). It is a fault if resident memory then grows by more than `ALLOWED_KB`, if
the number of descriptors grows, or if a frame is missing at the end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from linerate.host.errors import LabError
from linerate.host.process import pause
from linerate.links import Wire
from linerate.traffic.generator import Generator
from linerate_bench.soak.bench import TIMEOUT_S, Bench
from linerate_bench.soak.plan import Row
from linerate_bench.soak.records import Counted

GOAL_S = 4 * 3600
TURN_S = 600.0
# The shortest turn: its first sixth has a configuration and a capture.
LEAST_S = 150.0
# The time of a client's step, and the numbers of steps between its actions of each kind.
STEP_S = 0.2
CONFIGURE, CAPTURE, UPDATE = 60, 30, 8
FLOWS, PPS, SIZE = 8, 2000, 128
# One frame of sixteen is captured. On a busy machine a capture of two seconds takes twenty: with
# all frames it was longer than the client accepts, and memory grew and fell with its size.
CAPTURED_SRC, CAPTURED_MASK = "00000000", "0000000f"
ALLOWED_KB = 2048
SAMPLE_S, SETTLE_S = 1.0, 5.0


@dataclass(frozen=True)
class Sample:
    """Resident memory in KiB, and the number of open descriptors."""

    resident_kb: int
    descriptors: int


def sample(pid: int) -> Sample:
    """Return a process's memory and descriptors; raises `LabError` if it does not exist."""
    process = Path(f"/proc/{pid}")
    try:
        return Sample(
            resident_kb((process / "status").read_text()), len(list((process / "fd").iterdir()))
        )
    except OSError as error:
        raise LabError(f"the generator's memory cannot be read: {error.strerror}") from error


def resident_kb(status: str) -> int:
    """Return the resident memory in KiB that the text of /proc/PID/status has."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    if not found:
        raise LabError("the kernel does not say how much memory the generator has")
    return int(found.group(1))


def growth(samples: Sequence[int]) -> int:
    """Return by how much the maximum of the last sixth exceeds that of the second sixth."""
    sixth = max(1, len(samples) // 6)
    return max(samples[-sixth:]) - max(samples[sixth : 2 * sixth] or samples[:1])


def judged(samples: Sequence[Sample], missing: int) -> list[str]:
    """Describe the faults; empty: none. `missing`: frames that did not come back by the end."""
    found = []
    kb = growth([each.resident_kb for each in samples])
    if kb > ALLOWED_KB:
        found.append(f"resident memory grew by {kb} KiB")
    descriptors = growth([each.descriptors for each in samples])
    if descriptors > 0:
        found.append(f"{descriptors} more descriptors are open than in the beginning")
    if missing:
        found.append(f"{missing} frames are missing at the end")
    return found


class Client:
    """Does what a test script does, over and over."""

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
        source = capture.filters.ipv4()[-1].src
        source.value, source.mask = CAPTURED_SRC, CAPTURED_MASK
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
        """Return the frames sent and received since the last start."""
        request = self._api.metrics_request()
        request.flow.flow_names = []
        metrics = self._api.get_metrics(request).flow_metrics
        return sum(m.frames_tx for m in metrics), sum(m.frames_rx for m in metrics)

    def step(self) -> None:
        """Ask for metrics, and do what is due at this step."""
        if self._steps % CONFIGURE == 0:
            if self._config is not None:
                self.transmit("stop")
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
            flow.rate.pps = PPS // 2 + self._steps % 7 * 300
            update.flows.flows.append(flow)
            self._api.update_config(update)
        self.frames()
        self._steps += 1


def soak(generator: Generator, seconds: float) -> tuple[list[Sample], int]:
    """Run the client; return a sample for each second, and the frames missing at the end."""
    client = Client(generator)
    client._api.set_config(client._api.config())
    samples: list[Sample] = []
    end = time.monotonic() + seconds
    next_sample = time.monotonic()
    while time.monotonic() < end or not samples:
        generator.check()
        client.step()
        if time.monotonic() >= next_sample:
            next_sample += SAMPLE_S
            samples.append(sample(generator.child.pid))
        pause(STEP_S)
    client.transmit("stop")
    return samples, _missing(client)


def _missing(client: Client) -> int:
    """Return the number of frames that have not come back within `SETTLE_S` after the stop."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        sent, received = client.frames()
        if sent == received or time.monotonic() >= deadline:
            return sent - received
        time.sleep(0.05)


def count(bench: Bench, seconds: float, wanted: int) -> Counted:
    began = time.monotonic()
    generator = Generator(
        bench.run, bench.cpu, bench.memory, Wire(), flood=False, timeout_s=TIMEOUT_S
    )
    try:
        faults = judged(*soak(generator, max(min(seconds, wanted), LEAST_S)))
    except requests.RequestException as error:
        raise LabError(f"the generator's API: {error}") from error
    finally:
        generator.close()
    return Counted(round(time.monotonic() - began), tuple(faults))


def rows() -> list[Row]:
    return [Row("generator", "generator", "seconds", GOAL_S, count, longest_s=TURN_S)]
