# SPDX-License-Identifier: BSD-3-Clause
"""The latency of several flows together, if pauses of the generator disturbed some frames."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hdrh.histogram import HdrHistogram

from linerate.host.errors import UnknownCommandError
from linerate.telemetry.client import Telemetry
from linerate.traffic.generator import Generator
from linerate.traffic.otg import OtgClient

HZ = 1_000_000_000


def encoded(cycles: int, count: int) -> list[str]:
    histogram = HdrHistogram(1, 1 << 40, 2)
    histogram.record_value(cycles, count)
    return [histogram.encode().decode()]


class Told:
    """Generator telemetry by flow: frames received, disturbed, and their latency."""

    def __init__(self, flows: dict[str, tuple[int, int, int]]) -> None:
        self.flows = flows

    def ask(self, question: str) -> dict[str, Any]:
        path, *words = question.split(",")
        if path == "/linerate/clock":
            return {"tsc_hz": HZ}
        received, disturbed, latency_ns = self.flows[words[0]]
        if path == "/linerate/generator/flow":
            return {"received": received, "received_disturbed": disturbed}
        if disturbed == received:
            raise UnknownCommandError(f"{question} is not known to this program")
        return {words[1]: encoded(latency_ns, received - disturbed)}


def generator(flows: dict[str, tuple[int, int, int]]) -> Generator:
    def metrics(name: str) -> SimpleNamespace:
        received, disturbed, ns = flows[name]
        told = ns if received > disturbed else None
        latency = SimpleNamespace(minimum_ns=told, average_ns=told, maximum_ns=told)
        return SimpleNamespace(name=name, frames_rx=received, latency=latency)

    made = object.__new__(Generator)
    made._telemetry = cast(Telemetry, Told(flows))
    made._flows = list(flows)
    client = SimpleNamespace(name="it", flow_metrics=lambda: [metrics(name) for name in flows])
    made.client = cast(OtgClient, client)
    return made


def test_a_flow_counts_by_its_frames_that_were_not_disturbed() -> None:
    found = generator({"f0": (100, 90, 1000), "f1": (100, 60, 2000)}).latency()
    assert found is not None
    assert (found.count, found.minimum_ns, found.maximum_ns) == (50, 1000, 2000)
    assert found.mean_ns == pytest.approx(1800)
    assert found.quantiles_ns["0.5"] == pytest.approx(2000, rel=0.01)


def test_a_flow_of_which_all_were_disturbed_has_no_part_in_it() -> None:
    found = generator({"f0": (100, 100, 0), "f1": (100, 40, 2000)}).latency()
    assert found is not None
    assert (found.count, found.mean_ns) == (60, 2000)
    assert found.ipdv_quantiles_ns["0.5"] == pytest.approx(2000, rel=0.01)
    assert generator({"f0": (100, 100, 0)}).latency() is None
