# SPDX-License-Identifier: BSD-3-Clause
"""What a trial asks of whatever sends its frames: any OTG generator can stand here.

Traffic goes over OTG (`client`). What OTG's model lacks (lateness, back-pressure, loss at the
link's ingress) only a sender that has it reports; in `Sent` it is absent otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from linerate.otg import OtgClient, Traffic
from linerate.process import Child


@dataclass(frozen=True)
class Sent:
    """What the sender counted, over all its ports. `seconds`: how long the longest port sent."""

    accepted: int
    received: int
    seconds: float | None = None
    intended: int | None = None
    attempted: int | None = None
    lost_at_ingress: int | None = None
    refused: int | None = None
    late: int | None = None
    pacing_error_ppm: float | None = None


class Sender(ABC):
    """A generator that runs; `close` ends what belongs to it."""

    client: OtgClient
    # None: the sender is not a process of the lab's.
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

    @abstractmethod
    def links_up(self) -> bool:
        """True when every port can send."""

    @abstractmethod
    def sent(self) -> Sent:
        """Counts since the traffic was last started."""

    def tsc_hz(self) -> int | None:
        return None

    @abstractmethod
    def close(self) -> None: ...
