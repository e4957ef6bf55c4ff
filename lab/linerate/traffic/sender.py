# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a sender of frames: any OTG generator can implement it.

Traffic goes over OTG (`client`). Figures that OTG's model lacks (lateness, back-pressure, loss at
the link's ingress) come only from a sender that has them; in `Sent` they are absent otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linerate.host.errors import GeneratorError
from linerate.host.process import Child
from linerate.records.outcome import Clock, LatencyFigures
from linerate.traffic.otg import OtgClient, Traffic

_DELAYS = ("minimum_ns", "average_ns", "maximum_ns")


@dataclass(frozen=True)
class Sent:
    """The sender's counters, over all its ports. `seconds`: how long the longest port sent.

    `disturbed`: frames that left or arrived while the sender was kept from its CPU, received or
    not; `disturbed_lost`: those of them that did not come back.
    """

    accepted: int
    received: int
    seconds: float | None = None
    intended: int | None = None
    attempted: int | None = None
    lost_at_ingress: int | None = None
    refused: int | None = None
    late: int | None = None
    disturbed: int | None = None
    disturbed_lost: int | None = None
    pacing_error_ppm: float | None = None


@dataclass(frozen=True)
class Touched:
    """Disturbed frames of a flow, sent or not, and how many of them did not come back."""

    frames: int
    lost: int


class Sender(ABC):
    """A running generator; `close` ends its processes and removes its configuration."""

    client: OtgClient
    # The time between a start and the first frame of a paced window.
    lead_s: float = 0.0
    # None: the sender is not a process of the lab.
    child: Child | None = None

    def check(self) -> None:
        """Raise `ProcessError` when the sender has ended."""
        if self.child:
            self.child.check()

    @property
    def running(self) -> bool:
        return self.child is None or self.child.running

    def configure(self, traffic: Traffic) -> None:
        self.client.configure(traffic)

    def start(self) -> None:
        self.client.start()

    def stop(self) -> None:
        self.client.stop()

    def wait_stopped(self, timeout_s: float, alive: Callable[[], None]) -> None:
        """Wait until all is sent; `alive` raises if waiting is useless."""
        self.client.wait_stopped(timeout_s, alive)

    @abstractmethod
    def links_up(self) -> bool:
        """Return True if every port can send."""

    @abstractmethod
    def sent(self) -> Sent:
        """Return the counts since the traffic was last started."""

    def latency(self) -> LatencyFigures | None:
        """Return the delays of the frames that came back since the traffic was last started, over
        all flows.

        OTG has the least, mean and greatest of each flow; None: no flow measures latency. Raises
        `GeneratorError` for a flow that has only some of them.
        """
        rows = [
            (timed, found)
            for flow in self.client.flow_metrics()
            if flow.frames_rx and (found := self._delays(flow.latency))
            if (timed := self._timed(flow))
        ]
        count = sum(frames for frames, _ in rows)
        if not count:
            return None
        return LatencyFigures(
            count=count,
            minimum_ns=min(found["minimum_ns"] for _, found in rows),
            mean_ns=sum(frames * found["average_ns"] for frames, found in rows) / count,
            maximum_ns=max(found["maximum_ns"] for _, found in rows),
        )

    def _timed(self, flow: Any) -> int:
        """Return how many frames the latency of a flow covers, from its metrics."""
        return int(flow.frames_rx)

    def _delays(self, latency: Any) -> dict[str, float] | None:
        """Return the delays by their names in OTG; None if the flow does not measure latency, so
        that all are 0.
        """
        found: dict[str, Any] = {name: getattr(latency, name, None) for name in _DELAYS}
        if not any(found.values()):
            return None
        for name, value in found.items():
            if value is None:
                raise GeneratorError(f"{self.client.name}: flow metrics lack latency.{name}")
        return found

    def disturbed_by_flow(self) -> dict[str, Touched]:
        """Return, for each flow, the frames that left or arrived while the sender was kept from its
        CPU; empty if the sender does not report them.
        """
        return {}

    def received_by_flow(self) -> dict[str, int]:
        """Return the frames that came back since the traffic was last started, by the flow's
        name.
        """
        return {flow.name: int(flow.frames_rx) for flow in self.client.flow_metrics()}

    def tsc_hz(self) -> int | None:
        return None

    def clock(self) -> Clock | None:
        """Return the clock that stamps frames; None if the sender does not report it."""
        return None

    @abstractmethod
    def close(self) -> None: ...
