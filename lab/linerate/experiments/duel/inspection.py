# SPDX-License-Identifier: BSD-3-Clause
"""Check what each program does to the frames, before they are compared.

A program that does nothing to packets, or the wrong thing, is fast. On links whose driver can check
sent packets (drivers/nearfree/check.h) each program forwards every frame once, alone; errors in its
packets are reported, and differences between the two programs. Nothing is checked while speed is
measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

from linerate.forwarders import Forwarder
from linerate.host.builds.bench_programs import nearfree_obstacle
from linerate.host.errors import TelemetryError
from linerate.host.process import pause
from linerate.host.text import counted
from linerate.links import Frames, Link
from linerate.telemetry import nearfree
from linerate.telemetry.client import Telemetry
from linerate.trial.starts.faults import KEPT, UNDER_WAY, FaultError
from linerate.trial.starts.standing import standing
from linerate.trial.trial import Bench

# The longest time for all frames of the file.
_LOOK_S = 5.0
_WRONG = {
    "wrong_length": "lengths that are wrong",
    "wrong_header_checksum": "a wrong IPv4 checksum",
    "wrong_payload_checksum": "a wrong UDP or TCP checksum",
}
# Permitted changes of a packet. Both programs must make them in the same share of their packets.
_DONE = {
    "unchanged": "left as they came",
    "new_destination": "given another destination address (MAC)",
    "ttl_less": "given a time to live that is one less",
    "ttl_other": "given another time to live",
    "longer": "made longer",
    "shorter": "made shorter",
}


@dataclass
class Work:
    """The work of one program, over all ports: packets received, sent packets by kind, and by port
    and flow how often and (`left_by`) by which ports, as bits. `examples`: the first frame of each
    kind, from 1 on, and its port. `missed`: frames that it had no time to receive.
    """

    received: int = 0
    missed: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, tuple[int, int]] = field(default_factory=dict)
    flows: list[list[int]] = field(default_factory=list)
    left_by: list[list[int]] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return self.counts.get("sent", 0)

    def share(self, kind: str) -> float:
        """Return the kind's share of the sent packets."""
        return self.counts.get(kind, 0) / self.sent if self.sent else 0.0


def looked_at(
    bench: Bench, link: Link, programs: Sequence[Forwarder], size: int
) -> tuple[tuple[Work, ...], str | None]:
    """Check what each of the two programs does to the frames. Returns that, or nothing and the
    reason why it cannot be seen. Raises `FaultError` as `inspect` does.

    On a link with a generator nothing sees both received and sent frames. There the programs run
    once on link `frames` with the same frames.
    """
    if isinstance(link, Frames):
        return inspect(bench, link, programs, size), None
    place = Frames(link.ports, bench.frame_files)
    if why := _obstacle(place, programs):
        return (), why
    try:
        return inspect(bench, place, programs, size), None
    except FaultError as fault:
        if fault.kind != "start":
            raise
        return (), f"{programs[fault.arm].name} does not start on --link {place.name}"


def _obstacle(place: Frames, programs: Sequence[Forwarder]) -> str | None:
    """Return why the packets of these programs cannot be checked; both are prepared."""
    if why := nearfree_obstacle():
        return why
    for program in programs:
        if program.interfaces_only or not program.has_telemetry:
            return f"{program.name} is not a DPDK program with telemetry"
        if why := program.misfit(place):
            return f"{program.name}: {why}"
    place.prepare()
    for program in programs:
        if found := program.plugin_misfit(place):
            return f"{program.name}: {found[0]}"
    return None


def inspect(
    bench: Bench, link: Frames, programs: Sequence[Forwarder], size: int
) -> tuple[Work, ...]:
    """Return the work of each of the two programs. Raises `FaultError` if one sends wrong packets,
    or if their work differs.
    """
    found: list[Work] = []
    with link.checking().open(bench.context(size)) as wire:
        for arm in range(len(programs)):
            with standing(bench, wire, programs, (arm,)) as (start,):
                telemetry = start.running.telemetry
                assert telemetry is not None  # programs on DPDK have one
                try:
                    work = _look(telemetry, wire.ports)
                    if arm:
                        _refuse_other_flows(found[0], work, telemetry)
                except TelemetryError as error:
                    start.check()
                    raise FaultError(arm, "silent", str(error.message)) from error
                found.append(work)
                refuse_unknown(arm, work)
                refuse_wrong(arm, work)
                if arm and (other := differences(found[0], work, telemetry)):
                    more = "; --no-check compares them all the same"
                    raise FaultError(arm, "work", "; ".join(other) + more)
    return tuple(found)


def _look(telemetry: Telemetry, ports: int) -> Work:
    """Wait until each port has received all frames, or time is over, and return the work."""
    names = [f"net_nearfree{port}" for port in range(ports)]
    ends = time.monotonic() + _LOOK_S
    while time.monotonic() < ends:
        if all(nearfree.check(telemetry, name).whole for name in names):
            break
        pause(0.02)
    work = Work()
    for port, name in enumerate(names):
        found = nearfree.check(telemetry, name)
        work.received += found.received
        work.missed += found.frames - found.seen
        for kind in ("sent", "made", *_WRONG, *_DONE):
            work.counts[kind] = work.counts.get(kind, 0) + found.count(kind)
            if example := found.example(kind):
                work.examples.setdefault(kind, (example, port))
        work.flows.append(nearfree.sent_by_flow(telemetry, name, found.flows))
        work.left_by.append(nearfree.ports_by_flow(telemetry, name, found.flows))
    return work


def _refuse_other_flows(one: Work, other: Work, telemetry: Telemetry) -> None:
    """Both programs got the same files: another number of flows is not the driver's answer."""
    mine, its = ([len(flows) for flows in work.flows] for work in (one, other))
    if mine != its:
        raise TelemetryError(
            f"telemetry {telemetry.path}: /net_nearfree/check: {its} flows by port, and {mine} in "
            "the other program, of the same frames"
        )


def refuse_unknown(arm: int, work: Work) -> None:
    """Raise `FaultError` if a program's packets cannot be matched to frames."""
    made = work.counts.get("made", 0)
    if not work.sent or made > KEPT * (made + work.sent):
        raise FaultError(
            arm, "work",
            f"{made:,} of the {made + work.sent:,} packets that it sends are not received "
            "ones, so they cannot be compared with frames; --no-check compares its speed",
        )  # fmt: skip


def refuse_wrong(arm: int, work: Work) -> None:
    """Raise `FaultError` for packets that no receiver would accept."""
    for kind, words in _WRONG.items():
        if count := work.counts.get(kind):
            first = ""
            if kind in work.examples:
                frame, port = work.examples[kind]
                first = f", the first is made of frame {frame} of port {port}"
            raise FaultError(
                arm, "wrong",
                f"{count:,} of the {work.sent:,} packets that it sends have {words}{first}; "
                "--no-check compares it all the same",
            )  # fmt: skip


def differences(one: Work, other: Work, telemetry: Telemetry) -> list[str]:
    """Return what the other program does and the first does not, in words; `telemetry`: the
    other's.
    """
    found = [
        f"{other.share(kind):.1%} of its packets are {words}, {one.share(kind):.1%} of the other's"
        for kind, words in _DONE.items()
        if abs(one.share(kind) - other.share(kind)) > KEPT
    ]
    dropped, drops = (1 - _share_sent(each) for each in (one, other))
    if abs(dropped - drops) > KEPT:
        found.insert(0, f"it drops {drops:.1%} of the packets, the other {dropped:.1%}")
    for more in (_lost(one, other, telemetry), _elsewhere(one, other, telemetry)):
        if more:
            found.append(more)
    return found


def _share_sent(work: Work) -> float:
    # Some packets are on their way.
    return min(1.0, (work.sent + UNDER_WAY) / work.received) if work.received else 0.0


def _lost(one: Work, other: Work, telemetry: Telemetry) -> str | None:
    """Return flows that only the first program sends."""
    if other.missed:
        return None
    lost = [
        (port, flow)
        for port, (mine, its) in enumerate(zip(one.flows, other.flows, strict=True))
        for flow, (sent, also) in enumerate(zip(mine, its, strict=True))
        if sent and not also
    ]
    if not lost:
        return None
    count = counted(len(lost), "flow")
    first = _first(telemetry, *lost[0])
    return f"it sends nothing of {count} of which the other sends packets{first}"


def _elsewhere(one: Work, other: Work, telemetry: Telemetry) -> str | None:
    """Return flows that both send, but by entirely different ports."""
    found = [
        (port, flow, theirs, its)
        for port, ports in enumerate(zip(one.left_by, other.left_by, strict=True))
        for flow, (theirs, its) in enumerate(zip(*ports, strict=True))
        if theirs and its and not theirs & its
    ]
    if not found:
        return None
    port, flow, theirs, its = found[0]
    return (
        f"it sends {counted(len(found), 'flow')} out of another port than the other"
        f"{_first(telemetry, port, flow)}: received on port {port}, sent on {_ports(its)}, and by "
        f"the other on {_ports(theirs)}"
    )


def _ports(bits: int) -> str:
    ports = [str(port) for port in range(bits.bit_length()) if bits >> port & 1]
    return f"port{'s' * (len(ports) > 1)} {' and '.join(ports)}"


def _first(telemetry: Telemetry, port: int, flow: int) -> str:
    """Return words that name a flow as the first of some; empty if the driver cannot tell it."""
    with suppress(TelemetryError):
        frame = nearfree.first_frame(telemetry, f"net_nearfree{port}", flow)
        return f", the first is {described(frame)}"
    return ""


def described(frame: bytes) -> str:
    """Describe a frame's flow: addresses, and UDP's or TCP's ports."""
    at, kind = 14, frame[12:14]
    while kind in (b"\x81\x00", b"\x88\xa8") and len(frame) >= at + 4:
        at, kind = at + 4, frame[at + 2 : at + 4]
    if kind == b"\x08\x00" and len(frame) >= at + 20:
        width, first, protocol, behind = 4, at + 12, frame[at + 9], at + 4 * (frame[at] & 15)
    elif kind == b"\x86\xdd" and len(frame) >= at + 40:
        width, first, protocol, behind = 16, at + 8, frame[at + 6], at + 40
    else:
        return f"of EtherType 0x{kind.hex()}"
    source, destination = (
        str(ip_address(frame[start : start + width])) for start in (first, first + width)
    )
    if protocol not in (6, 17) or len(frame) < behind + 4:
        return f"{source} to {destination}, protocol {protocol}"
    ports = [int.from_bytes(frame[start : start + 2], "big") for start in (behind, behind + 2)]
    name = "TCP" if protocol == 6 else "UDP"
    return f"{source} to {destination}, {name} port {ports[0]} to {ports[1]}"
