# SPDX-License-Identifier: BSD-3-Clause
"""How long frames are inside a forwarder, from its own or the probe's /linerate/latency.

The figures count since the program's start; those of a window are differences of histograms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from linerate.host.errors import TelemetryError
from linerate.records.outcome import Clock, Span
from linerate.telemetry import hdr
from linerate.telemetry.client import Telemetry
from linerate.telemetry.hdr import Histogram

CLOCK = "/linerate/clock"
QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class _Reading:
    one_in: int
    sampled: int
    histogram: Histogram


# Span, port and TX queue.
_Place = tuple[str, int, int]


class Spans:
    """The spans of a window that begins when this is made."""

    def __init__(self, telemetry: Telemetry, command: str, ports: int) -> None:
        """Begin the window. `ports`: the number of ports. Raises `TelemetryError` if the program
        does not answer.
        """
        self._telemetry = telemetry
        self._command = command
        self._ports = ports
        self._before = self._read()

    def found(self) -> list[Span]:
        """Return the spans since the window began, without places that saw no frame."""
        result = []
        for place, now in self._read().items():
            before = self._before.get(place)
            histogram = now.histogram
            if before:
                since = hdr.difference(now.histogram, before.histogram)
                if since is None:
                    raise TelemetryError(f"{self._command}: counts fell")
                histogram = since
            if not histogram.total:
                continue
            span, port, queue = place
            result.append(
                Span(
                    span=span,
                    port=port,
                    queue=queue,
                    one_in=now.one_in,
                    sampled=now.sampled - (before.sampled if before else 0),
                    count=histogram.total,
                    mean_cycles=histogram.mean,
                    quantiles_cycles={
                        f"{quantile:g}": value
                        for quantile in QUANTILES
                        if (value := histogram.percentile(quantile * 100)) is not None
                    },
                )
            )
        return result

    def clock(self) -> Clock:
        return read_clock(self._telemetry)

    def _read(self) -> dict[_Place, _Reading]:
        found: dict[_Place, _Reading] = {}
        for port in range(self._ports):
            # One request per port: histograms are long, and left out if they have no room.
            command = f"{self._command},{port}"
            answer = self._telemetry.ask(command)
            try:
                found |= {_place(entry): _reading(entry) for entry in answer}
            except (KeyError, TypeError, ValueError) as error:
                raise TelemetryError(f"{command} answered {answer!r:.200}") from error
        return found


def _place(entry: dict[str, Any]) -> _Place:
    return str(entry["span"]), int(entry["port"]), int(entry["queue"])


def _reading(entry: dict[str, Any]) -> _Reading:
    # Left out while nothing is counted; where it is otherwise, nothing can be said.
    histogram = hdr.decode("".join(entry["hdr"])) if int(entry["count"]) else Histogram()
    return _Reading(int(entry["one_in"]), int(entry["sampled"]), histogram)


def read_clock(telemetry: Telemetry) -> Clock:
    """Return the program's time stamp counter: its frequency, and its cost in cycles."""
    answer = telemetry.ask(CLOCK)
    try:
        return Clock(tsc_hz=answer["tsc_hz"], cost_cycles=answer["clock_cost_cycles"])
    except (KeyError, TypeError, ValidationError) as error:
        raise TelemetryError(f"{CLOCK} answered {answer!r:.200}") from error
