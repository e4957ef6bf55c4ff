# SPDX-License-Identifier: BSD-3-Clause
"""The Open Traffic Generator interface: everything the lab sends to a generator goes through
snappi.

Any OTG server can stand behind `OtgClient`. The published traffic is Ethernet/IPv4/UDP whose
addresses and ports count over `flows` values.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth

from linerate.host.errors import GeneratorError
from linerate.links import flows
from linerate.records.trial import Protocol

# Beside compilers (a load average of 20 on 2 CPUs) our generator's answer took more than 5 s.
REQUEST_TIMEOUT_S = 15.0
CONNECT_TIMEOUT_S = 5.0
# Limit of an answer, in bytes: metrics of a thousand flows have less than 1 MiB.
LONGEST_ANSWER = 16 << 20
# A timeout is for each piece; the whole answer may take so many times that.
_WHOLE_ANSWER = 4
_PIECE = 1 << 16
UNTRUSTED = "no trusted connection"
# A generator that floods ignores the rate, but the model wants one: no link here is this fast.
FLOOD_PPS = 1e9
# Source and destination networks: RFC 2544 (C.2.2) and RFC 5180 (section 8) have them set aside.
_NETWORKS = {
    4: (flows.SOURCE, flows.DESTINATION),
    6: (flows.SOURCE_V6, flows.DESTINATION_V6),
}
_STEPS = {4: "0.0.0.1", 6: "::1"}
_T = TypeVar("_T")

# The two definitions of latency (RFC 1242): from the last bit in, or from the first.
LatencyMode = Literal["store_forward", "cut_through"]
Ip = Literal[4, 6]
IPS: dict[str, Ip] = {"4": 4, "6": 6}


@dataclass(frozen=True)
class Slice:
    """A part of the traffic that is a flow of its own: frames per port, from `start_s` on."""

    start_s: float
    frames: int
    pps: float


@dataclass(frozen=True)
class Traffic:
    """The traffic to send: `pps` frames per second and port, for `seconds`. `pps` None: flood.

    `numbered`: frames carry sequence numbers, by which the receiver recognises them. `latency`: and
    time stamps. `frames`: frames per port, instead of `seconds`. `senders`: the number of ports
    that send, from the first; all receive; None: all send. `slices`: follow on the first flow of
    each port, which has `frames` then. `lead_s`: the time between the start and the first frame.
    `protocol`: `arp` are requests for the flows' destinations by their sources.
    """

    locations: tuple[str, ...]
    size: int
    seconds: float
    pps: float | None = None
    flows: int = flows.FLOWS
    numbered: bool = True
    latency: bool = False
    frames: int | None = None
    senders: int | None = None
    ip: Ip = 4
    slices: tuple[Slice, ...] = ()
    lead_s: float = 0.0
    protocol: Protocol = "udp"

    @property
    def parts(self) -> tuple[Slice | None, ...]:
        """The flows of each sending port, in the order of their names; None is the first."""
        return (None, *self.slices)


def flow_name(port: int, part: int) -> str:
    """Return the name of a flow, from the generator's port and the place in `Traffic.parts`."""
    return f"f{port}" if part == 0 else f"f{port}.{part}"


@dataclass(frozen=True)
class Access:
    """How to connect to a generator.

    `name`: its name in errors. `user`: name and password. `verify`: whether to verify its
    certificate, or the file (PEM) of the authority that signed it. `timeout_s`: for each request.
    """

    name: str = ""
    user: tuple[str, str] | None = None
    verify: bool | str = True
    timeout_s: float = REQUEST_TIMEOUT_S
    latency_mode: LatencyMode = "store_forward"


def whole_pps(pps: float) -> int:
    """Round a rate to whole frames per second, as OTG requires."""
    return max(round(pps), 1)


class _Adapter(HTTPAdapter):
    """Adds a timeout, verification and a size limit to snappi's requests, which have none."""

    def __init__(self, access: Access) -> None:
        self._access = access
        super().__init__()

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = (min(CONNECT_TIMEOUT_S, self._access.timeout_s), self._access.timeout_s)
        kwargs["verify"] = self._access.verify
        until = time.monotonic() + _WHOLE_ANSWER * self._access.timeout_s
        response = super().send(request, *args, **kwargs)
        content = bytearray()
        # Not by `iter_content`, which waits until a piece is full.
        while piece := response.raw.read1(_PIECE, decode_content=True):
            content += piece
            if len(content) > LONGEST_ANSWER:
                response.close()
                raise requests.ConnectionError(
                    f"the answer is longer than {LONGEST_ANSWER >> 20} MiB"
                )
            if time.monotonic() > until:
                response.close()
                raise requests.ConnectionError("the answer took too long to come to its end")
        # The attribute in which requests stores an answer that it has read itself.
        response._content = bytes(content)
        return response


class OtgClient:
    """Drives one generator. Not thread-safe."""

    def __init__(self, url: str, access: Access | None = None) -> None:
        self.url = url
        import snappi  # noqa: PLC0415 - a slow import, and links without a generator need none

        self._access = access or Access()
        self.name = self._access.name or f"generator {url}"
        self._api = snappi.api(
            location=url, verify=self._access.verify is not False, loglevel=logging.ERROR
        )
        session = requests.Session()
        session.trust_env = False  # a proxy from the environment is not for the test setup
        session.max_redirects = 0
        if self._access.user:
            # requests would send text in Latin-1.
            user, password = (word.encode() for word in self._access.user)
            session.auth = HTTPBasicAuth(user, password)
        session.mount("http://", _Adapter(self._access))
        session.mount("https://", _Adapter(self._access))
        self._api._transport._session = session
        self._configured: Traffic | None = None

    def _call(self, what: str, function: Callable[[], _T]) -> _T:
        try:
            return function()
        except Exception as error:  # snappi raises bare Exceptions
            reason = _reason(error)
            if "Read timed out" in reason:  # requests and urllib3 have an exception each for it
                reason = f"no answer within {self._access.timeout_s:g} s"
            raise GeneratorError(f"{self.name}: {what}: {reason}") from error

    @property
    def user(self) -> tuple[str, str] | None:
        """Return the name and password with which it connects, if it has any."""
        return self._access.user

    def version(self) -> str:
        """Return its version; raises `GeneratorError` if it does not speak OTG."""
        found = self._call("get version", self._api.get_version)
        spec = getattr(found, "api_spec_version", None)
        if not spec:
            raise GeneratorError(f"{self.name}: get version: the answer is not OTG's")
        return f"version {found.app_version or 'unknown'}, OTG {spec}"

    def configure(self, traffic: Traffic) -> None:
        """Set ports and flows; keeps the ports when nothing has changed."""
        if traffic != self._configured:
            self.reconfigure(traffic)

    def reconfigure(self, traffic: Traffic) -> list[str]:
        """Set ports and flows in any case; return the generator's warnings."""
        self._configured = None
        config = self._configuration(traffic)
        answer = self._call("set_config", lambda: self._api.set_config(config))
        self._configured = traffic
        return [str(each) for each in getattr(answer, "warnings", None) or []]

    def clear(self) -> None:
        """Remove all ports and flows."""
        self._configured = None
        self._call("set_config", lambda: self._api.set_config(self._api.config()))

    def _configuration(self, traffic: Traffic) -> Any:
        config = self._api.config()
        names = [f"p{index}" for index in range(len(traffic.locations))]
        for name, location in zip(names, traffic.locations, strict=True):
            config.ports.port(name=name, location=location)
        for index, name in enumerate(names[: traffic.senders]):
            for part, cut in enumerate(traffic.parts):
                flow = config.flows.flow(name=flow_name(index, part))[-1]
                self._describe(flow, traffic, index, cut)
                flow.tx_rx.port.tx_name = name
                # An echo returns frames to the port they came from, a forwarder to the other one.
                flow.tx_rx.port.rx_names = names
        return config

    def _describe(self, flow: Any, traffic: Traffic, index: int, cut: Slice | None) -> None:
        """Set everything of a flow but its ports."""
        flow.size.fixed = traffic.size
        if cut is not None:
            flow.duration.fixed_packets.packets = cut.frames
        elif traffic.frames is not None:
            flow.duration.fixed_packets.packets = traffic.frames
        else:
            flow.duration.fixed_seconds.seconds = traffic.seconds
        # A generator that knows no delay need not hear of none.
        if lead_s := traffic.lead_s + (cut.start_s if cut else 0.0):
            duration = flow.duration
            chosen = (
                duration.fixed_packets if traffic.frames is not None else duration.fixed_seconds
            )
            chosen.delay.nanoseconds = lead_s * 1e9
        flow.rate.pps = whole_pps((cut.pps if cut else traffic.pps) or FLOOD_PPS)
        flow.metrics.enable = traffic.numbered
        if traffic.latency:
            flow.metrics.latency.enable = True
            flow.metrics.latency.mode = self._access.latency_mode
        ethernet = flow.packet.ethernet()[-1]
        ethernet.src.value = flows.sender_mac(index)
        ethernet.dst.value = flows.forwarder_mac(index)
        if traffic.protocol == "arp":
            arp = flow.packet.arp()[-1]
            arp.sender_hardware_addr.value = flows.sender_mac(index)
            self._count_up((arp.sender_protocol_addr, arp.target_protocol_addr), 4, traffic.flows)
            return
        layer3 = flow.packet.ipv4()[-1] if traffic.ip == 4 else flow.packet.ipv6()[-1]
        udp = flow.packet.udp()[-1]
        self._count_up((layer3.src, layer3.dst), traffic.ip, traffic.flows)
        for field in (udp.src_port, udp.dst_port):
            field.increment.start = flows.FIRST_UDP_PORT
            field.increment.step = 1
            field.increment.count = traffic.flows

    @staticmethod
    def _count_up(addresses: tuple[Any, Any], ip: Ip, count: int) -> None:
        """Set source and destination to count up from the first address of their networks."""
        for field, start in zip(addresses, _NETWORKS[ip], strict=True):
            field.increment.start = str(start)
            field.increment.step = _STEPS[ip]
            field.increment.count = count

    def start(self) -> None:
        self._transmit("START")

    def stop(self) -> None:
        self._transmit("STOP")

    def _transmit(self, state: str) -> None:
        control = self._api.control_state()
        transmit = control.traffic.flow_transmit
        transmit.state = getattr(transmit, state)
        self._call(f"{state.lower()} traffic", lambda: self._api.set_control_state(control))

    def flow_metrics(self) -> Any:
        request = self._api.metrics_request()
        request.flow.flow_names = []
        return self._metrics(request, "flow_metrics")

    def port_metrics(self) -> Any:
        request = self._api.metrics_request()
        request.port.port_names = []
        return self._metrics(request, "port_metrics")

    def _metrics(self, request: Any, choice: str) -> Any:
        answer = self._call("get metrics", lambda: self._api.get_metrics(request))
        if getattr(answer, "choice", None) != choice:
            raise GeneratorError(f"{self.name}: get metrics: the answer has no {choice}")
        return getattr(answer, choice)

    def wait_stopped(self, timeout_s: float, alive: Callable[[], None]) -> None:
        """Wait until every flow has stopped by itself."""
        deadline = time.monotonic() + timeout_s
        while True:
            alive()
            if all(metric.transmit == "stopped" for metric in self.flow_metrics()):
                return
            if time.monotonic() >= deadline:
                raise GeneratorError(f"{self.name} still sends after {timeout_s:g} s")
            time.sleep(0.01)

    def close(self) -> None:
        self._api._transport._session.close()


def _reason(error: Exception) -> str:
    detail: Any = error.args[0] if error.args else error
    errors = getattr(detail, "errors", None)
    if errors:
        return f"{'; '.join(map(str, errors))} (HTTP {detail.code})"
    # requests and urllib3 wrap the cause once each.
    reason = str(getattr(detail, "reason", None) or detail) or type(error).__name__
    if isinstance(error, requests.exceptions.SSLError):
        return f"{UNTRUSTED}: {reason}"
    if "Network is unreachable" in reason:  # to 127.0.0.1
        return f"{reason}; in a new network namespace loopback is down: ip link set lo up"
    return reason
