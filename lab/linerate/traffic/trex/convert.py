# SPDX-License-Identifier: BSD-3-Clause
"""A TRex profile as a configuration of the Open Traffic Generator (OTG)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linerate.host.errors import UsageError
from linerate.traffic.trex import captures, execution, timing
from linerate.traffic.trex.described import (
    LONGEST_PACKET,
    MOST_STREAMS,
    CaptureStream,
    Description,
    Stream,
)
from linerate.traffic.trex.execution import Tunables
from linerate.traffic.trex.packet import sizes
from linerate.traffic.trex.packet.frames import Frames, frames
from linerate.traffic.trex.rates import Multiplier, Rate
from linerate.traffic.trex.refusal import RefusalError

Json = dict[str, Any]
# Most ports of the generator, and bytes of a flow's name.
MOST_PORTS = 16
_LONGEST_NAME = 64
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
# Refusals that are printed together.
_MOST_TOLD = 10


@dataclass(frozen=True)
class Asked:
    """The options of the command line. `src_mac`, `dst_mac`: of packets that name none."""

    profile: Path
    ports: Sequence[str] = ()
    tunables: str = ""
    multiplier: str = "1"
    src_mac: str = "02:00:00:00:00:01"
    dst_mac: str = "02:00:00:00:00:02"


@dataclass(frozen=True)
class Converted:
    """`replays`: the capture files that flows send, by flow. `notes`: what differs."""

    config: Json
    replays: dict[str, Path]
    notes: list[str]


@dataclass(frozen=True)
class _Made:
    """A stream of a port on its way to a flow. `frames` is None where it sends a capture file."""

    stream: Stream | CaptureStream
    name: str
    rate: Rate
    frames: Frames | None = None
    capture: Path | None = None
    packets: int = 0

    @property
    def measures_latency(self) -> bool:
        return isinstance(self.stream, Stream) and self.stream.stats == "latency"


def convert(asked: Asked) -> Converted:
    """Run the profile and convert its streams.

    Raises `UsageError`, also for streams that OTG cannot say: with their names, and their lines in
    the profile.
    """
    multiplier = Multiplier.parse(asked.multiplier)
    for option, text in (("--src-mac", asked.src_mac), ("--dst-mac", asked.dst_mac)):
        if not _MAC.fullmatch(text.lower()):
            raise UsageError(
                f"{option} {text}: no Ethernet address", "for instance 02:00:00:00:00:01"
            )
    ports = ports_of(asked.ports)
    tunables = tunables_of(asked.tunables)
    found = execution.describe(asked.profile, tunables, len(ports))
    return _Conversion(asked, multiplier, ports, found).converted()


def ports_of(given: Sequence[str]) -> dict[str, str]:
    """Locations by the ports' names, from `[NAME=]LOCATION`."""
    found: dict[str, str] = {}
    for number, text in enumerate(given or ["ring:loop"]):
        name, equals, location = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            name, location = f"p{number}", text
        if not location:
            raise UsageError(f"--port {text}: no location", "for instance --port p0=veth0")
        if name in found:
            raise UsageError(f"--port {text}: there are two ports {name}")
        found[name] = location
    if len(found) > MOST_PORTS:
        raise UsageError(f"--port: given {len(found)} times; at most {MOST_PORTS}")
    return found


def tunables_of(text: str) -> Tunables:
    """`fsize=64,vm=inc`, or words such as `--fsize 64`."""
    text = text.strip()
    if text.startswith("-"):
        return Tunables({}, text.split())
    named: dict[str, int | float | str] = {}
    for each in filter(None, text.split(",")):
        name, equals, value = each.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError(
                f"-t {text}: {each!r} is not NAME=VALUE", "for instance -t fsize=64,vm=inc"
            )
        named[name.strip()] = _value(value.strip())
    return Tunables(named, [])


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class _Conversion:
    def __init__(
        self, asked: Asked, multiplier: Multiplier, ports: dict[str, str], found: Description
    ) -> None:
        self._asked, self._multiplier, self._ports, self._found = asked, multiplier, ports, found
        self._refused: list[str] = []
        self._notes: list[str] = []
        self._replays: dict[str, Path] = {}
        self._flows: list[Json] = []
        self._contents: dict[Path, captures.Contents] = {}

    def converted(self) -> Converted:
        if self._found.missing:
            self._notes.append(
                f"the profile was run without {' and '.join(self._found.missing)}: this system or "
                "this user has none"
            )
        for number, streams in enumerate(self._found.streams or []):
            self._port(number, streams)
        refused = list(dict.fromkeys(self._refused))
        if refused:
            told = refused[:_MOST_TOLD]
            if len(refused) > len(told):
                told.append(f"and {len(refused) - len(told)} more")
            raise UsageError("\n".join(told))
        if not self._flows:
            raise UsageError(f"{self._asked.profile}: has no stream that is ever sent")
        if len(self._flows) > MOST_STREAMS:
            raise UsageError(
                f"{self._asked.profile}: has {len(self._flows)} streams; a configuration has at "
                f"most {MOST_STREAMS} flows"
            )
        config = {
            "ports": [
                {"name": name, "location": where} for name, where in self._ports.items()
            ],
            "flows": self._flows,
        }  # fmt: skip
        return Converted(config, self._replays, list(dict.fromkeys(self._notes)))

    def _refuse(self, stream: Stream | CaptureStream, name: str, error: RefusalError) -> None:
        self._refused.append(f"{self._where(stream, error.line)}: stream {name}: {error}")

    def _where(self, stream: Stream | CaptureStream, line: int | None = None) -> str:
        line = line or stream.line
        return f"{self._asked.profile}:{line}" if line else str(self._asked.profile)

    def _note(self, stream: Stream | CaptureStream, name: str, text: str) -> None:
        self._notes.append(f"{self._where(stream)}: stream {name}: {text}")

    def _port(self, number: int, streams: Sequence[Stream | CaptureStream]) -> None:
        made: list[_Made] = []
        for at, stream in enumerate(streams):
            name = (stream.name or f"stream{at + 1}").replace(",", ";")
            if isinstance(stream, Stream) and (not stream.enabled or stream.dummy):
                self._note(stream, name, "is not enabled, and left out")
                continue
            try:
                if isinstance(stream, CaptureStream):
                    made.append(self._capture(stream, name))
                else:
                    made.append(self._frames(stream, name))
            except RefusalError as error:
                self._refuse(stream, name, error)
        if self._refused:
            return
        made = self._multiplied(made)
        timed = {at: timing.Timed(each.stream, each.rate) for at, each in enumerate(made)
                 if isinstance(each.stream, Stream)}  # fmt: skip
        places = list(timed)
        starts, refused = timing.starts(list(timed.values()))
        for at, why in refused.items():
            self._refuse(made[places[at]].stream, made[places[at]].name, why)
        begins = {places[at]: start for at, start in starts.items()}
        for at, each in enumerate(made):
            try:
                self._flow(number, each, timed.get(at), begins.get(at))
            except RefusalError as error:
                self._refuse(each.stream, each.name, error)

    def _multiplied(self, made: list[_Made]) -> list[_Made]:
        """Streams that measure latency keep their rate, as in TRex."""
        scaled = [each.rate for each in made if not each.measures_latency]
        rates = iter(self._multiplier.applied(scaled))
        return [each if each.measures_latency else replace(each, rate=next(rates)) for each in made]

    def _frames(self, stream: Stream, name: str) -> _Made:
        packet = self._packet(stream, name)
        found = frames(packet, stream.packet.vm, stream.seed, marked=stream.stats is not None)
        for note in found.notes:
            self._note(stream, name, note)
        rate = stream.mode.rate
        return _Made(stream, name, Rate(rate.unit, rate.value, found.sizes), found)

    def _packet(self, stream: Stream, name: str) -> bytes:
        given = stream.packet
        if given.capture is not None:
            packet = self._read(given.capture)[1].first
        else:
            try:
                packet = bytes.fromhex(given.bytes or "")
            except ValueError as error:
                raise RefusalError("its packet is not in hexadecimal digits") from error
        if len(packet) > LONGEST_PACKET:
            raise RefusalError(f"its packet has {len(packet)} bytes; at most {LONGEST_PACKET}")
        src = given.own_src if stream.src_of_packet is None else bool(stream.src_of_packet)
        dst = given.own_dst if stream.dst_mode is None else stream.dst_mode == 1
        if not (src and dst):
            self._notes.append(
                "packets without Ethernet addresses in the profile go from "
                f"{self._asked.src_mac} to {self._asked.dst_mac} (--src-mac, --dst-mac); TRex "
                "uses its ports' addresses"
            )
        if len(packet) < 12:
            return packet
        to, by = (
            bytes.fromhex(each.replace(":", ""))
            for each in (self._asked.dst_mac, self._asked.src_mac)
        )
        return (packet[:6] if dst else to) + (packet[6:12] if src else by) + packet[12:]

    def _read(self, name: str) -> tuple[Path, captures.Contents]:
        """A capture file, by a name that leads from the profile's directory or from here."""
        beside = self._asked.profile.parent / name
        try:
            path = beside if beside.exists() else Path(name)
            if path not in self._contents:
                self._contents[path] = captures.read(path)
        except OSError as error:
            raise RefusalError(f"{name}: {error.strerror}") from error
        except ValueError as error:
            raise RefusalError(f"{name}: {error}") from error
        return path, self._contents[path]

    def _capture(self, stream: CaptureStream, name: str) -> _Made:
        given = stream.replay
        if given.refused:
            raise RefusalError(
                f"{given.capture} with {', '.join(given.refused)}: the frames of a file are sent "
                "as they are"
            )
        path, found = self._read(given.capture)
        shape = replace(sizes.fixed(sizes.SHORTEST), mean=found.mean + sizes.FCS)
        if given.ipg_us is not None:
            pps = given.speedup * 1e6 / given.ipg_us
        elif found.packets > 1 and found.seconds > 0:
            pps = given.speedup * (found.packets - 1) / found.seconds
            speed = "own" if given.speedup == 1 else f"{given.speedup:g}x"
            self._note(
                stream, name,
                f"the packets of {given.capture} are sent at their mean rate; with the file's own "
                f"times: generator --port LOCATION --flow pcap={path},speed={speed}",
            )  # fmt: skip
        else:
            raise RefusalError(f"{given.capture} has no times: give load_pcap an ipg_usec")
        self._notes.append(
            "start the generator with --replay FLOW=FILE for each flow that sends a capture file"
        )
        return _Made(
            stream, name, Rate("pps", pps, shape), capture=path.resolve(), packets=found.packets
        )

    def _flow(
        self, port: int, made: _Made, timed: timing.Timed | None, start_us: float | None
    ) -> None:
        stream = made.stream
        if timed is not None and start_us is None:
            self._note(stream, made.name, "is started by no stream, and left out")
            return
        flow: Json = {
            "name": self._name(made.name, list(self._ports)[port]),
            "tx_rx": {"choice": "port", "port": {"tx_name": list(self._ports)[port]}},
            "rate": made.rate.json(),
        }
        if timed is None:
            assert isinstance(stream, CaptureStream)
            assert made.capture is not None
            packets = stream.replay.loops * made.packets
            flow["duration"] = (
                {"choice": "fixed_packets", "fixed_packets": {"packets": packets}}
                if packets
                else {"choice": "continuous", "continuous": {}}
            )
            self._replays[flow["name"]] = made.capture
        else:
            flow["duration"], note = timing.duration(timed, start_us or 0.0)
            if note:
                self._note(stream, made.name, note)
            if timed.stream.paused:
                self._note(stream, made.name, "begins at once, not paused")
        if made.frames is not None:
            flow["packet"] = made.frames.packet
            flow["size"] = made.frames.sizes.json
            if made.frames.payload is not None:
                flow["payload"] = made.frames.payload
        if isinstance(stream, Stream) and stream.stats is not None:
            flow["metrics"] = {"enable": True, "loss": True}
            if stream.stats == "latency":
                flow["metrics"]["latency"] = {"enable": True, "mode": "store_forward"}
        self._flows.append(flow)

    def _name(self, name: str, port: str) -> str:
        """A flow's name, which no other has."""
        taken = {each["name"] for each in self._flows}
        found, number = _cut(name, ""), 1
        if found in taken:
            found = _cut(name, f".{port}")
        while found in taken:
            number += 1
            found = _cut(name, f".{port}.{number}")
        return found


def _cut(name: str, ending: str) -> str:
    kept = name.encode()[: _LONGEST_NAME - len(ending.encode())].decode(errors="ignore")
    return kept + ending
