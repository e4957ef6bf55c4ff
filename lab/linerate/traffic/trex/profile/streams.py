# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: PLR0917 - arguments are in the order of the API that profiles are written for
"""Streams, their modes and packets, as profiles write them.

Names, arguments and defaults are those of TRex's documented API.
"""

from __future__ import annotations

from typing import Any

from linerate.traffic.trex.profile import packets
from linerate.traffic.trex.profile.errors import ProfileError
from linerate.traffic.trex.profile.lines import Lines
from linerate.traffic.trex.profile.vm import instructions

_RATES = ("pps", "bps_L1", "bps_L2", "percentage")


class _Mode:
    def __init__(self, kind: str, rates: dict[str, Any], **further: Any) -> None:
        given = {name: value for name, value in rates.items() if value is not None}
        if len(given) > 1:
            raise ProfileError(f"a rate is one of {', '.join(_RATES)}, not {' and '.join(given)}")
        (unit, value), *_ = given.items() or [("pps", 1.0)]
        self.rate = {"unit": unit, "value": float(value)}
        self.further = {"kind": kind, **further}

    def description(self) -> dict[str, Any]:
        return {**self.further, "rate": self.rate}


class STLTXCont(_Mode):
    def __init__(self, **rates: Any) -> None:
        super().__init__("continuous", _known(rates))


class STLTXSingleBurst(_Mode):
    def __init__(self, total_pkts: int = 1, **rates: Any) -> None:
        super().__init__("single_burst", _known(rates), packets=total_pkts)


class STLTXMultiBurst(_Mode):
    def __init__(
        self, pkts_per_burst: int = 1, ibg: float = 0.0, count: int = 1, **rates: Any
    ) -> None:
        super().__init__(
            "multi_burst", _known(rates), packets=pkts_per_burst, gap_us=float(ibg), bursts=count
        )


def _known(rates: dict[str, Any]) -> dict[str, Any]:
    if unknown := set(rates) - set(_RATES):
        raise ProfileError(f"a mode takes no {sorted(unknown)[0]}; rates are {', '.join(_RATES)}")
    return rates


class STLFlowStats:
    kind = "statistics"

    def __init__(self, pg_id: int, **_: Any) -> None:
        self.pg_id = pg_id


class STLFlowLatencyStats(STLFlowStats):
    kind = "latency"


class STLPktBuilder:
    def __init__(
        self,
        pkt: Any = None,
        pkt_buffer: Any = None,
        vm: Any = None,
        path_relative_to_profile: bool = False,
        build_raw: bool = False,
        remove_fcs: bool = True,
    ) -> None:
        del path_relative_to_profile, build_raw, remove_fcs
        if (pkt is None) == (pkt_buffer is None):
            raise ProfileError("STLPktBuilder takes either pkt or pkt_buffer")
        try:
            self.packet = packets.content(pkt_buffer if pkt is None else pkt)
        except TypeError as error:
            raise ProfileError(str(error)) from error
        self.vm = vm

    def description(self) -> dict[str, Any]:
        return {**self.packet, "vm": instructions(self.vm)}


class STLStream:
    def __init__(
        self,
        name: str | None = None,
        packet: STLPktBuilder | None = None,
        mode: _Mode | None = None,
        enabled: bool = True,
        self_start: bool = True,
        isg: float = 0.0,
        flow_stats: STLFlowStats | None = None,
        next: str | None = None,
        stream_id: int | None = None,
        action_count: int = 0,
        random_seed: int = 0,
        mac_src_override_by_pkt: bool | None = None,
        mac_dst_override_mode: int | None = None,
        dummy_stream: bool = False,
        start_paused: bool = False,
        core_id: int = -1,
    ) -> None:
        del stream_id, core_id
        if packet is not None and not isinstance(packet, STLPktBuilder):
            raise ProfileError(f"packet is a {type(packet).__name__}, not STLPktBuilder")
        if mode is not None and not isinstance(mode, _Mode):
            raise ProfileError(f"mode is a {type(mode).__name__}, not STLTXCont or a burst")
        if flow_stats is not None and not isinstance(flow_stats, STLFlowStats):
            raise ProfileError(f"flow_stats is a {type(flow_stats).__name__}, not STLFlowStats")
        self._line = Lines.here()
        self.name = name
        self.packet = packet
        self._mode = mode or STLTXCont(pps=1)
        self._stats = flow_stats
        self._further = {
            "enabled": bool(enabled), "self_start": bool(self_start), "isg_us": float(isg),
            "next": next, "loops": action_count, "seed": random_seed,
            "src_of_packet": mac_src_override_by_pkt, "dst_mode": mac_dst_override_mode,
            "dummy": bool(dummy_stream), "paused": bool(start_paused),
        }  # fmt: skip

    def description(self) -> dict[str, Any]:
        packet = self.packet
        if packet is None:
            everything = packets.names()
            if not everything:
                raise ProfileError(f"a stream without packet needs scapy: {packets.HOW_TO_INSTALL}")
            packet = STLPktBuilder(pkt=everything["Ether"]() / everything["IP"]())
        return {
            **self._further,
            "name": self.name,
            "line": self._line,
            "packet": packet.description(),
            "mode": self._mode.description(),
            "stats": self._stats.kind if self._stats else None,
        }


class STLCaptureStream(STLStream):
    """The packets of a capture file, which TRex makes a stream each."""

    def __init__(self, **arguments: Any) -> None:
        self._line = Lines.here()
        self.name = None
        self._arguments = arguments

    def description(self) -> dict[str, Any]:
        return {"line": self._line, "name": None, "replay": self._arguments}


class STLProfile:
    def __init__(self, streams: Any = None) -> None:
        found = [streams] if isinstance(streams, STLStream) else list(streams or [])
        self._streams: list[STLStream] = found

    def get_streams(self, **_: Any) -> list[STLStream]:
        return self._streams

    @staticmethod
    def load_pcap(
        pcap_file: str,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        loop_count: int = 1,
        vm: Any = None,
        packet_hook: Any = None,
        split_mode: Any = None,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> STLProfile:
        refused = [
            name
            for name, value in (
                ("vm", vm), ("packet_hook", packet_hook), ("split_mode", split_mode),
                ("min_ipg_usec", min_ipg_usec),
            )
            if value is not None
        ]  # fmt: skip
        del src_mac_pcap, dst_mac_pcap
        return STLProfile(
            STLCaptureStream(
                capture=str(pcap_file), ipg_us=ipg_usec, speedup=float(speedup), loops=loop_count,
                refused=refused,
            )
        )  # fmt: skip

    @staticmethod
    def load_py(*_: Any, **__: Any) -> STLProfile:
        raise ProfileError("loads another profile; convert that one")

    load = load_yaml = load_json = load_py
