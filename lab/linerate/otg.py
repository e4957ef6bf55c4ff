# SPDX-License-Identifier: BSD-3-Clause
"""The Open Traffic Generator seam: everything the lab tells a generator goes through snappi.

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
import snappi
from requests.adapters import HTTPAdapter

from linerate import flows
from linerate.errors import GeneratorError

REQUEST_TIMEOUT_S = 5.0
# A generator that floods ignores the rate, but the model wants one: no link here is this fast.
FLOOD_PPS = 1e9
# Source and destination networks: RFC 2544 (C.2.2) and RFC 5180 (section 8) have them set aside.
_NETWORKS = {
    4: (flows.SOURCE, flows.DESTINATION),
    6: (flows.SOURCE_V6, flows.DESTINATION_V6),
}
_STEPS = {4: "0.0.0.1", 6: "::1"}
_T = TypeVar("_T")

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
    """What is sent: `pps` frames per second and port, for `seconds`. `pps` None: flood.

    `numbered`: frames carry sequence numbers, by which they are known where they arrive.
    `latency`: and time stamps. `frames`: so many per port, instead of `seconds`. `senders`: the
    first so many ports send, and all receive; None: all send. `slices`: follow on the first flow of
    each port, which has `frames` then.
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

    @property
    def parts(self) -> tuple[Slice | None, ...]:
        """The flows of each port that sends, in the order of their names; None is the first."""
        return (None, *self.slices)


def flow_name(port: int, part: int) -> str:
    """Of the generator's port, and of the place in `Traffic.parts`."""
    return f"f{port}" if part == 0 else f"f{port}.{part}"


class _Bounded(HTTPAdapter):
    """snappi gives its requests no timeout."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = REQUEST_TIMEOUT_S
        return super().send(request, *args, **kwargs)


class OtgClient:
    """Drives one generator. Not thread-safe."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._api = snappi.api(location=url, verify=False, loglevel=logging.ERROR)
        session = requests.Session()
        session.trust_env = False  # a proxy from the environment is not for the test bed
        session.mount("http://", _Bounded())
        session.mount("https://", _Bounded())
        self._api._transport._session = session
        self._configured: Traffic | None = None

    def _call(self, what: str, function: Callable[[], _T]) -> _T:
        try:
            return function()
        except Exception as error:  # snappi raises bare Exceptions
            raise GeneratorError(f"generator {self.url}: {what}: {_reason(error)}") from error

    def configure(self, traffic: Traffic) -> None:
        """Set ports and flows; keeps the ports when nothing has changed."""
        if traffic == self._configured:
            return
        self._configured = None
        config = self._configuration(traffic)
        self._call("set_config", lambda: self._api.set_config(config))
        self._configured = traffic

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

    @staticmethod
    def _describe(flow: Any, traffic: Traffic, index: int, cut: Slice | None) -> None:
        """All of a flow but its ports."""
        flow.size.fixed = traffic.size
        if cut is not None:
            flow.duration.fixed_packets.packets = cut.frames
            flow.duration.fixed_packets.delay.nanoseconds = cut.start_s * 1e9
        elif traffic.frames is not None:
            flow.duration.fixed_packets.packets = traffic.frames
        else:
            flow.duration.fixed_seconds.seconds = traffic.seconds
        flow.rate.pps = round((cut.pps if cut else traffic.pps) or FLOOD_PPS)
        flow.metrics.enable = traffic.numbered
        flow.metrics.latency.enable = traffic.latency
        ethernet = flow.packet.ethernet()[-1]
        ethernet.src.value = flows.sender_mac(index)
        ethernet.dst.value = flows.forwarder_mac(index)
        layer3 = flow.packet.ipv4()[-1] if traffic.ip == 4 else flow.packet.ipv6()[-1]
        udp = flow.packet.udp()[-1]
        for field, start in zip((layer3.src, layer3.dst), _NETWORKS[traffic.ip], strict=True):
            field.increment.start = str(start)
            field.increment.step = _STEPS[traffic.ip]
            field.increment.count = traffic.flows
        for field in (udp.src_port, udp.dst_port):
            field.increment.start = flows.FIRST_UDP_PORT
            field.increment.step = 1
            field.increment.count = traffic.flows

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
        return self._call("get metrics", lambda: self._api.get_metrics(request)).flow_metrics

    def wait_stopped(self, timeout_s: float, alive: Callable[[], None]) -> None:
        """Wait until every flow has stopped by itself."""
        deadline = time.monotonic() + timeout_s
        while True:
            alive()
            if all(metric.transmit == "stopped" for metric in self.flow_metrics()):
                return
            if time.monotonic() >= deadline:
                raise GeneratorError(f"generator {self.url} still sends after {timeout_s:g} s")
            time.sleep(0.01)

    def close(self) -> None:
        self._api._transport._session.close()


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else error
    errors = getattr(detail, "errors", None)
    reason = "; ".join(map(str, errors)) if errors else str(detail) or type(error).__name__
    if "Network is unreachable" in reason:  # to 127.0.0.1
        return f"{reason}; in a new network namespace loopback is down: ip link set lo up"
    return reason
