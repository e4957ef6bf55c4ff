# SPDX-License-Identifier: BSD-3-Clause
"""The question: a rate, a frame size, and the permitted loss and delay.

Rates are frames per second over all directions together, delays microseconds, loss a share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.host.errors import UsageError
from linerate.records.types import LAYER_1_BYTES
from linerate.runs.options import MAX_SIZE, MIN_SIZE

_PPS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_US = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"


@dataclass(frozen=True)
class LatencyLimit:
    """A limit for a quantile of the delays. `quantile`: as in records, such as 0.99."""

    quantile: str
    us: float

    @property
    def name(self) -> str:
        """The name on the command line, such as `p99`."""
        return "p" + f"{float(self.quantile) * 100:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Question:
    """A question. `loss_ratio`: the permitted share of lost frames."""

    pps: float
    size: int
    loss_ratio: float = 0.0
    latency: tuple[LatencyLimit, ...] = ()


def question(rate: str, size: int, latency: Sequence[str] = (), loss: str = "0") -> Question:
    """Parse the words on the command line; raises `UsageError` naming the option."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise UsageError(f"--size {size}: not within {MIN_SIZE} to {MAX_SIZE} bytes with FCS")
    limits = tuple(parse_latency(text) for text in latency)
    for place, limit in enumerate(limits):
        if limit.quantile in (each.quantile for each in limits[:place]):
            raise UsageError(f"--latency {latency[place]}: {limit.name} has a limit already")
    return Question(parse_rate(rate, size), size, parse_loss(loss), limits)


def parse_rate(text: str, size: int) -> float:
    """Parse a rate such as `2Mpps`, `500k` or `2000000`, in frames per second."""
    word = text.strip().lower()
    if found := re.fullmatch(rf"{_NUMBER}\s*([kmg]?)(?:bps|bits?(?:/s)?)", word):
        frames = float(found[1]) * _PPS[found[2]] / ((size + LAYER_1_BYTES) * 8)
        raise UsageError(
            f"--rate {text}: bits per second, where frames per second are asked for",
            f"on Ethernet, with preamble and gap, these are --rate {frames / 1e6:.5g}Mpps "
            f"at {size} bytes",
        )
    found = re.fullmatch(rf"{_NUMBER}\s*([kmg]?)(?:pps)?", word)
    if not found or not float(found[1]):
        raise UsageError(
            f"--rate {text}: not a number of frames per second above 0",
            "for instance --rate 2Mpps, 500kpps or 2000000",
        )
    return float(found[1]) * _PPS[found[2]]


def parse_latency(text: str) -> LatencyLimit:
    """Parse a limit such as `p99:50us`."""
    found = re.fullmatch(
        rf"p([0-9]{{1,2}}(?:\.[0-9]{{1,6}})?)\s*:\s*{_NUMBER}\s*(ns|us|µs|ms|s)", text.strip()
    )
    if not found or not float(found[1]) or not float(found[2]):
        raise UsageError(
            f"--latency {text}: not a percentile and a time",
            "for instance --latency p99:50us; ns, us, ms or s",
        )
    return LatencyLimit(f"{float(found[1]) / 100:g}", float(found[2]) * _US[found[3]])


def parse_loss(text: str) -> float:
    """Parse a loss such as `0.5%` or `0.005` as a share; 0 is allowed."""
    found = re.fullmatch(rf"{_NUMBER}\s*(%?)", text.strip())
    share = float(found[1]) / (100 if found[2] else 1) if found else 1.0
    if not 0 <= share < 1:
        raise UsageError(
            f"--loss {text}: not a share from 0 to below 1", "for instance --loss 0.5% or 0.005"
        )
    return share
