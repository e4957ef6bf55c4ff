# SPDX-License-Identifier: BSD-3-Clause
"""What the driver net_nearfree answers of a port with `check=1`: drivers/nearfree/check.h.

The driver is the lab's, but the program that it is in may be anybody's, and can answer in its
place: whatever the driver would not say is a `TelemetryError`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry

# MAX_FRAMES of drivers/nearfree/traffic.c; each may be a flow of its own.
MOST_FRAMES = 1 << 24
# FLOWS_AT_ONCE and SHOWN_BYTES of drivers/nearfree/check.c; no frame is shorter than its header.
FLOWS_AT_ONCE = 256
_SHOWN_BYTES = 128
_LEAST_BYTES = 14
# All questions about the flows of a port; 16 million flows take about 5 s.
_FLOWS_S = 60.0

_Packets = Annotated[int, Field(ge=0, lt=2**64)]
_Frames = Annotated[int, Field(ge=0, le=MOST_FRAMES)]
# The number of a frame, from 1 on; 0: none.
_Example = Annotated[int, Field(ge=0, le=MOST_FRAMES)]

_FLOWS = TypeAdapter(Annotated[list[_Packets], Field(max_length=FLOWS_AT_ONCE)])
_FRAME = TypeAdapter(
    Annotated[str, Field(pattern=rf"^(?:[0-9a-f]{{2}}){{{_LEAST_BYTES},{_SHOWN_BYTES}}}$")]
)


class Check(BaseModel):
    """/net_nearfree/check: of the frames of a port, how many there are, in how many flows, and how
    many were received at least once (`seen`); of packets how many were received and sent, and what
    was done to them. `made`: sent, and made of no frame.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    frames: _Frames
    flows: _Frames
    seen: _Frames
    received: _Packets
    sent: _Packets
    made: _Packets
    unchanged: _Packets
    new_destination: _Packets
    ttl_less: _Packets
    ttl_other: _Packets
    longer: _Packets
    shorter: _Packets
    wrong_length: _Packets
    wrong_header_checksum: _Packets
    wrong_payload_checksum: _Packets
    first_unchanged: _Example
    first_new_destination: _Example
    first_ttl_less: _Example
    first_ttl_other: _Example
    first_longer: _Example
    first_shorter: _Example
    first_wrong_length: _Example
    first_wrong_header_checksum: _Example
    first_wrong_payload_checksum: _Example

    @model_validator(mode="after")
    def _within_the_frames(self) -> Self:
        if self.seen > self.frames or self.flows > self.frames:
            raise ValueError("more frames seen, or more flows, than there are frames")
        return self

    @property
    def whole(self) -> bool:
        """Every frame was received."""
        return self.seen == self.frames

    def count(self, kind: str) -> int:
        """Packets of this kind, by the name of its field."""
        return int(getattr(self, kind))

    def example(self, kind: str) -> int | None:
        """The number of the first frame of which this is true, from 1 on; None: of none, or the
        driver does not say.
        """
        return int(getattr(self, f"first_{kind}", 0)) or None


_CHECK = TypeAdapter(Check)


def check(telemetry: Telemetry, port: str) -> Check:
    """All figures of the port of this name."""
    return telemetry.ask_as(_CHECK, f"/net_nearfree/check,{port}")


def sent_by_flow(telemetry: Telemetry, port: str, flows: int) -> list[int]:
    """How many packets of each of the port's `flows` were sent."""
    return list(_by_flow(telemetry, "flows", port, flows))


def ports_by_flow(telemetry: Telemetry, port: str, flows: int) -> list[int]:
    """Out of which ports packets of each flow were sent: bit N is the Nth port with `check=1`."""
    return list(_by_flow(telemetry, "ports", port, flows))


def _by_flow(telemetry: Telemetry, what: str, port: str, flows: int) -> Iterator[int]:
    ends = time.monotonic() + _FLOWS_S
    for first in range(0, flows, FLOWS_AT_ONCE):
        command = f"/net_nearfree/{what},{port},{first}"
        found = telemetry.ask_as(_FLOWS, command)
        if len(found) != min(FLOWS_AT_ONCE, flows - first):
            raise TelemetryError(
                f"telemetry {telemetry.path}: {command}: {len(found)} flows of {flows}"
            )
        if time.monotonic() > ends:
            raise TelemetryError(
                f"telemetry {telemetry.path}: {command}: not done after {_FLOWS_S:g} s"
            )
        yield from found


def first_frame(telemetry: Telemetry, port: str, flow: int) -> bytes:
    """The first bytes of a flow's first frame, from its Ethernet header on."""
    return bytes.fromhex(telemetry.ask_as(_FRAME, f"/net_nearfree/flow,{port},{flow}"))
