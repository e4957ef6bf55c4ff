# SPDX-License-Identifier: BSD-3-Clause
"""Answers of a made-up program with the probe, one step further at each request.

Every step has the same traffic, so that the figures of any two samples are known (except rates,
which depend on the clock).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hdrh.histogram import HdrHistogram

TSC_HZ = 2_600_000_000
PIECE = 127


def hdr_pieces(values: Sequence[int]) -> list[str]:
    """Encode a histogram as the probe sends it: two digits, compressed, base64, in short
    strings.
    """
    histogram = HdrHistogram(1, 2**40, 2)
    for value in values:
        histogram.record_value(value)
    text = histogram.encode().decode()
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def polling_entry(lcore: int, port: int, queue: int, step: int, **changes: Any) -> dict[str, Any]:
    """Return 60 000 polls a step: half of them empty, the others of 1, 8 and 32 packets in equal
    parts.
    """
    step *= 1000
    histogram = [0] * 33
    histogram[0] = 30 * step
    histogram[1] = histogram[8] = histogram[32] = 10 * step
    return {
        "lcore": lcore,
        "port": port,
        "queue": queue,
        "polls": 60 * step,
        "empty_polls": 30 * step,
        "packets": 410 * step,
        "burst_limit": 32,
        "burst_histogram": histogram,
        "busy_tsc": 41_000 * step,
        "total_tsc": 164_000 * step,
        **changes,
    }


def port_stats(step: int, **changes: int) -> dict[str, int]:
    counters = {
        "ipackets": 14_880_000 * step,
        "opackets": 14_000_000 * step,
        "ibytes": 14_880_000 * step * 60,
        "obytes": 14_000_000 * step * 60,
        "imissed": 1_234 * step,
        "ierrors": 0,
        "oerrors": 0,
        "rx_nombuf": 0,
    }
    return {**counters, **changes}


def latency_entry(port: int, queue: int, step: int, **changes: Any) -> dict[str, Any]:
    """Return 100 packets a step, between 500 and 60 000 cycles."""
    source = random.Random(port)
    values = [min(60_000, max(500, int(source.lognormvariate(7.2, 0.8)))) for _ in range(100)]
    return {
        "port": port,
        "queue": queue,
        "span": "rx-return_tx-call",
        "sampled": 10 * step,
        "one_in": 64,
        "count": 100 * step,
        "min_tsc": min(values),
        "mean_tsc": sum(values) // 100,
        "max_tsc": max(values),
        "hdr": hdr_pieces(values * step),
        **changes,
    }


class Steps:
    """Answers that go one step further at each request."""

    def __init__(self, answer: Callable[[int], Any], first: int = 1) -> None:
        self._answer = answer
        self._step = first

    def __call__(self) -> Any:
        answer = self._answer(self._step)
        self._step += 1
        return answer


def plain_answers(ports: int = 2) -> dict[str, Any]:
    """Return what any DPDK program answers for its ports."""
    answers: dict[str, Any] = {
        "/": ["/", "/info", "/ethdev/list", "/ethdev/stats", "/ethdev/info", "/ethdev/link_status"],
        "/info": {"version": "DPDK 22.11.11", "pid": 1, "max_output_len": 16384},
        "/ethdev/list": list(range(ports)),
    }
    for port in range(ports):
        answers[f"/ethdev/stats,{port}"] = Steps(port_stats)
        answers[f"/ethdev/info,{port}"] = {"name": f"0000:05:00.{port}", "port_id": port}
        answers[f"/ethdev/link_status,{port}"] = {
            "status": "UP" if port == 0 else "DOWN", "speed": 10000, "duplex": "full-duplex",
        }  # fmt: skip
    return answers


def probed_answers(
    polled: Sequence[tuple[int, int, int]] = ((1, 0, 0), (1, 1, 0), (2, 0, 1)), one_in: int = 64
) -> dict[str, Any]:
    """Return the same with the probe; `polled`: (lcore, port, queue)."""
    answers = plain_answers()
    answers["/"] += ["/linerate/probe"]
    answers["/linerate/probe"] = {
        "version": "0.1.0", "polling": "on", "one_in": one_in, "rx_queues": len(polled),
        "tx_queues": 2, "stamped": 0,
    }  # fmt: skip
    given = {
        "polling": Steps(lambda step: [polling_entry(*queue, step) for queue in polled]),
        "latency": Steps(lambda step: [latency_entry(port, 0, step) for port in (0, 1)]),
        "clock": {"tsc_hz": TSC_HZ, "clock_cost_cycles": 20},
    }
    for name, answer in given.items():
        for command in (f"/linerate/probe/{name}", f"/linerate/{name}"):
            answers["/"].append(command)
            answers[command] = answer
    return answers
