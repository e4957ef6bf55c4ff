# SPDX-License-Identifier: BSD-3-Clause
"""Presets, loads and kinds of frames, and the duration of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import Field

from linerate.host.errors import UsageError, look_up
from linerate.links import Link
from linerate.records.trial import Protocol, Trial

# A round millisecond would be a multiple of every timer's period: frames would always meet it in
# the same phase.
IDLE_PPS = 997.0
# Shares of the forwarder's own capacity; 0 is idle.
IDLE = 0.0
LOADS = (IDLE, 0.1, 0.5, 0.9)
# The one whose loss tables show.
LOW_LOAD = 0.1
# The loads with spans: at idle, and where bursts begin to form.
INSIDE_LOADS = (IDLE, 0.5)
# More would take days at any rate of these links.
MAX_PACKETS = 1_000_000_000
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
# The rounding of shares that are read from records.
_DIGITS = 6


@dataclass(frozen=True)
class Preset:
    """The amount to measure.

    `blocks`: the minimum. `packets`: per arm, load and kind of frame, over all blocks, as far as
    the rate allows: a window takes `shortest_s` to `longest_s`, at idle `idle_s`. `windows`: the
    maximum for one trial, void ones included. `floods`: blocks in which capacity is measured.
    """

    name: str
    blocks: int
    packets: Annotated[int, Field(ge=1, le=MAX_PACKETS)]
    shortest_s: float
    longest_s: float
    idle_s: float
    windows: int
    flood_s: float
    floods: int
    note: str


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="quick", blocks=1, packets=100_000, shortest_s=0.1, longest_s=0.5, idle_s=0.5,
            windows=8, flood_s=0.3, floods=3,
            note="10^5 frames of each kind and load, fewer where the rate is too low for that",
        ),
        Preset(
            name="full", blocks=20, packets=1_000_000, shortest_s=0.1, longest_s=10.0, idle_s=5.0,
            windows=5, flood_s=0.3, floods=5,
            note="10^6 frames of each kind and load, fewer where the rate is too low for that",
        ),
    )
}  # fmt: skip


def protocols_of(names: list[str]) -> tuple[Protocol, ...]:
    """Return the requested protocols, or all, in the order of `PROTOCOLS`."""
    known: dict[str, Protocol] = {name: name for name in PROTOCOLS}
    for name in names:
        look_up(known, name, "--frames", "kind of frame")
    return tuple(name for name in PROTOCOLS if not names or name in names)


def check_packets(packets: int) -> None:
    if not 1 <= packets <= MAX_PACKETS:
        raise UsageError(f"--packets {packets}: at least 1 and at most {MAX_PACKETS}")


def check_line_rate(line_rate: float) -> None:
    """Raise an error unless the least load is above idle: records identify a load by its rate."""
    if line_rate * LOW_LOAD <= IDLE_PPS:
        raise UsageError(
            f"--line-rate {line_rate:g}: {LOW_LOAD:.0%} of it must be more than idle, which is "
            f"{IDLE_PPS:g} frames per second",
            f"--line-rate above {IDLE_PPS / LOW_LOAD:g}",
        )


@dataclass(frozen=True)
class Step:
    """One trial of a unit. `load`: of the forwarder's capacity, 0 for idle."""

    protocol: Protocol
    load: float

    def pps(self, capacity_pps: float) -> float:
        return capacity_pps * self.load or IDLE_PPS


def steps(protocols: tuple[Protocol, ...], loads: tuple[float, ...]) -> list[Step]:
    return [Step(protocol, load) for protocol in protocols for load in loads]


def seconds_of(preset: Preset, step: Step, pps: float, blocks: int) -> float:
    """Return the seconds of each of the windows."""
    if step.load == IDLE:
        return preset.idle_s
    return min(max(preset.packets / blocks / pps, preset.shortest_s), preset.longest_s)


def no_packet_sender(link: Link) -> str | None:
    """Return why a packet socket cannot replace the generator on this link; None if it can."""
    if link.packet_sender:
        return None
    if not link.interfaces and not link.kernel_generator:
        return "its ends are no interfaces of the kernel"
    if link.ports > 1:
        return "frames come back by another interface than the one that they were sent on"
    return "its interfaces are not the lab's"


def load_of(trial: Trial) -> float | None:
    """Return the load of a trial; None if it is of another run."""
    if trial.request.pps is None or not trial.request.maximum_pps:
        return None
    if trial.request.pps == IDLE_PPS:
        return IDLE
    share = round(trial.request.pps / trial.request.maximum_pps, _DIGITS)
    return share if share in LOADS else None


def step_of(trial: Trial) -> Step | None:
    load = load_of(trial)
    return None if load is None else Step(trial.request.protocol or "udp", load)
