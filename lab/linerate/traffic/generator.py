# SPDX-License-Identifier: BSD-3-Clause
"""Our generator as a process: started for a block, driven over OTG, read over telemetry.

OTG has no figures for lateness, back-pressure and loss at the link's ingress; those come from
`/linerate/generator/port,NAME`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from linerate.host.errors import GeneratorError, UnknownCommandError
from linerate.host.host import LOCAL
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.links import Wire, eal
from linerate.links.eal import Memory
from linerate.records.outcome import Clock, LatencyFigures
from linerate.telemetry import hdr
from linerate.telemetry.client import Telemetry, connect, socket_path
from linerate.telemetry.hdr import Histogram
from linerate.telemetry.spans import read_clock
from linerate.traffic.frame_files import MAX_FRAME_SENT
from linerate.traffic.otg import REQUEST_TIMEOUT_S, Access, OtgClient, Traffic, flow_name
from linerate.traffic.sender import Sender, Sent, Touched

START_TIMEOUT_S = 15.0
# Writing, reading and logging the answer to a start takes a millisecond on the CPU that sends, and
# made the first frames of every window late. After this time all other threads on that CPU sleep.
LEAD_S = 0.01
QUANTILES = (0.5, 0.9, 0.99, 0.999)
_SOCKETS = ("memif", "vhost", "virtio_user")
_INTERFACES = ("af_packet", "af_xdp", "tap")
_INTERFACE_ARGUMENTS = ("iface", "remote", "rx_iface", "rx_iface_in", "tx_iface")


def _replays(wire: Wire, files: Sequence[Path]) -> list[str]:
    """Return the options that make the first flow of each port send the frames of a capture
    file.
    """
    if not files:
        return []
    given = [
        f"--replay={flow_name(port, 0)}={files[port % len(files)]}"
        for port in range(len(wire.locations))
    ]
    return [*given, "--max-frame", str(MAX_FRAME_SENT)]


def permissions(wire: Wire) -> list[str]:
    """Return the options that permit the generator to use the link's locations over its API.

    It refuses sockets outside its own directory, and devices with paths, unless an option permits
    them; as root also interfaces of the kernel.
    """
    located = [location.partition(":") for location in wire.locations]
    directories = {Path(rest.split(",")[0]).parent for kind, _, rest in located if kind in _SOCKETS}
    options = [f"--socket-directory={directory}" for directory in sorted(directories)]
    if any(kind == "vdev" and "," in rest for kind, _, rest in located):
        options.append("--allow-any-vdev")
    interfaces = {name for location in wire.locations for name in interfaces_of(location)}
    return [*options, *(f"--allow-port={name}" for name in sorted(interfaces))]


def interfaces_of(location: str) -> list[str]:
    """Return the kernel interfaces that an OTG location names."""
    kind, colon, rest = location.partition(":")
    if not colon:
        return [] if location.partition(",")[0] == "null" else [location]
    first, *arguments = rest.split(",")
    if kind in _INTERFACES:
        return [first]
    pairs = [argument.partition("=") for argument in arguments]
    return [
        value
        for key, _, value in pairs
        if kind == "vdev" and key in _INTERFACE_ARGUMENTS and "/" not in value
    ]


class Generator(Sender):
    """One generator process."""

    child: Child
    lead_s = LEAD_S

    def __init__(
        self,
        run: RunDirectory,
        cpu: int,
        memory: Memory,
        wire: Wire,
        *,
        flood: bool,
        late_after_us: int | None = None,
        files: Sequence[Path] = (),
        timeout_s: float | None = None,
    ) -> None:
        """Start the generator.

        `late_after_us`: a frame is late if sent so long after its slot; None: the generator's own
        limit. `files`: capture files whose frames are sent instead of the flows' own: one for each
        port, or one for all. `timeout_s`: the time limit of the start and of each answer; None: the
        usual limits.
        """
        self.flood = flood
        prefix = run.new_prefix("generator")
        namespace = wire.sender_host.namespace
        argv = [
            str(rust_binary("generator")),
            *eal.options(eal.lcores(cpu), memory, prefix, wire.sender),
            "--",
            "--otg-listen",
            "127.0.0.1:0",
            *(["--flood"] if flood else []),
            *([] if late_after_us is None else ["--late-after", str(late_after_us)]),
            *(["--netns", namespace] if namespace else []),
            *permissions(wire),
            *_replays(wire, files),
        ]
        # Not started in that namespace: the lab could not reach its API there.
        self.child = LOCAL.start(Command("generator", tuple(argv), (cpu,)), run)
        self._telemetry: Telemetry | None = None
        try:
            start_s, answer_s = timeout_s or START_TIMEOUT_S, timeout_s or REQUEST_TIMEOUT_S
            url = self._await_url(start_s)
            self.client = OtgClient(url, Access(user=self._token(), timeout_s=answer_s))
            path = socket_path(run.path, prefix)
            self._telemetry = connect(path, start_s, self.child.check, answer_s)
        except BaseException:
            self.close()
            raise
        self._ports = 0
        self._flows: list[str] = []

    def _token(self) -> tuple[str, str] | None:
        """Return user and password, if it requires them, as it does when started by root."""
        found = re.search(r"^token (.+) \(user (\w+)\)$", self.child.output(), re.MULTILINE)
        if not found:
            return None
        try:
            return found.group(2), Path(found.group(1)).read_text().strip()
        except OSError as error:
            raise GeneratorError(f"the generator's token: {error}") from error

    def _await_url(self, within_s: float) -> str:
        deadline = time.monotonic() + within_s
        while True:
            # The lines come together, and all of them before it serves.
            found = re.search(
                r"^OTG on (https?://\S+)\n(?:.*\n)*?socket .*\n", self.child.output(), re.MULTILINE
            )
            if found:
                return found.group(1)
            self.child.check()
            if time.monotonic() >= deadline:
                raise GeneratorError(f"the generator did not listen within {within_s:g} s")
            time.sleep(0.005)

    @property
    def telemetry(self) -> Telemetry:
        assert self._telemetry is not None
        return self._telemetry

    def configure(self, traffic: Traffic) -> None:
        self._ports = len(traffic.locations)
        senders = self._ports if traffic.senders is None else traffic.senders
        self._flows = [
            flow_name(port, part) for port in range(senders) for part in range(len(traffic.parts))
        ]
        super().configure(traffic)

    def links_up(self) -> bool:
        return all(port.get("link", "up") in ("up", "UP", 1) for port in self._port_figures())

    def _port_figures(self) -> list[dict[str, Any]]:
        return [
            self.telemetry.ask(f"/linerate/generator/port,p{index}") for index in range(self._ports)
        ]

    def tsc_hz(self) -> int:
        return int(self.telemetry.ask("/linerate/clock")["tsc_hz"])

    def clock(self) -> Clock:
        return read_clock(self.telemetry)

    def sent(self) -> Sent:
        ports = self._port_figures()

        def total(name: str) -> int | None:
            values = [port.get(name) for port in ports]
            return None if None in values else sum(int(value or 0) for value in values)

        accepted, received = total("accepted"), total("received")
        if accepted is None or received is None:
            raise GeneratorError("the generator's telemetry lacks accepted or received")
        came, lost = total("received_disturbed"), total("missing_disturbed")
        errors = [float(port["pacing_error_ppm"]) for port in ports if "pacing_error_ppm" in port]
        durations = [int(port["tx_duration_tsc"]) for port in ports if "tx_duration_tsc" in port]
        longest = max(durations, default=0)
        return Sent(
            accepted=accepted,
            received=received,
            seconds=longest / self.tsc_hz() if longest else None,
            intended=total("intended"),
            attempted=total("attempted"),
            lost_at_ingress=total("lost_at_ingress"),
            refused=total("refused"),
            late=total("late"),
            disturbed=None if came is None or lost is None else came + lost,
            disturbed_lost=lost,
            pacing_error_ppm=_largest(errors) if not self.flood else None,
        )

    def latency(self) -> LatencyFigures | None:
        """Return OTG's latency, with the quantiles over all flows from the generator's
        histograms.
        """
        found = super().latency()
        if found is None:
            return None
        hz = self.tsc_hz()
        delays, variations, jitters = [], [], []
        for flow in self._flows:
            # Absent where all frames of the flow were disturbed.
            with contextlib.suppress(UnknownCommandError):
                delays.append(self._histogram(flow, "latency_hdr"))
            # Absent if frames came to several lcores: then their order is unknown.
            with contextlib.suppress(UnknownCommandError):
                variations.append(self._histogram(flow, "ipdv_hdr"))
            own = self.telemetry.ask(f"/linerate/generator/flow,{flow}")
            if "jitter_rfc3550_ns" in own:
                jitters.append(float(own["jitter_rfc3550_ns"]))
        # The generator subtracts the clock's cost from each delay before it counts it.
        found.net = True
        found.quantiles_ns = _quantiles_ns(delays, hz)
        if len(variations) == len(delays):
            found.ipdv_quantiles_ns = _quantiles_ns(variations, hz)
        found.jitter_rfc3550_ns = max(jitters, default=None)
        return found

    def disturbed_by_flow(self) -> dict[str, Touched]:
        return {
            name: _touched(self.telemetry.ask(f"/linerate/generator/flow,{name}"))
            for name in self._flows
        }

    def _timed(self, flow: Any) -> int:
        """Return the number of timed frames, without those disturbed by a pause of the
        generator.
        """
        own = self.telemetry.ask(f"/linerate/generator/flow,{flow.name}")
        return int(own["received"]) - int(own["received_disturbed"])

    def _histogram(self, flow: str, name: str) -> Histogram:
        """Return the histogram of a flow, in TSC cycles; raises `UnknownCommandError` if it has
        none.
        """
        answer = self.telemetry.ask(f"/linerate/generator/histogram,{flow},{name}")
        try:
            return hdr.decode("".join(answer[name]))
        except (KeyError, TypeError, ValueError) as error:
            raise GeneratorError(f"no {name} of flow {flow}: {error}") from error

    def close(self) -> None:
        if self._telemetry:
            self._telemetry.close()
        if hasattr(self, "client"):
            self.client.close()
        self.child.stop()


def _touched(flow: Mapping[str, Any]) -> Touched:
    """Return the disturbed frames of a flow. The receiver does not see losses at the end of a flow,
    nor of a flow that lost all; the sender knows what the link refused.
    """
    missing, refused = int(flow["missing_disturbed"]), int(flow["lost_disturbed"])
    lost = max(missing, refused)
    left = int(flow["accepted_disturbed"]) + refused
    return Touched(max(left, int(flow["received_disturbed"]) + lost), lost)


def _quantiles_ns(histograms: list[Histogram], hz: int) -> dict[str, float]:
    """Return the quantiles in ns over all flows; none for an empty histogram."""
    whole = hdr.together(histograms)
    cycles = {quantile: whole.percentile(quantile * 100) for quantile in QUANTILES}
    return {f"{name:g}": value * 1e9 / hz for name, value in cycles.items() if value is not None}


def _largest(errors: list[float]) -> float | None:
    return max(errors, key=abs) if errors else None
