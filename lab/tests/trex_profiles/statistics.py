# SPDX-License-Identifier: BSD-3-Clause
"""Streams that are counted, and one that measures latency; both directions; a multiplier's rates."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, port_id=0, **kwargs):
        ends = ("16.0.0.1", "48.0.0.1") if direction == 0 else ("48.0.0.1", "16.0.0.1")
        packet = Ether() / IP(src=ends[0], dst=ends[1]) / UDP(sport=1025, dport=12) / ("x" * 18)
        longer = packet / ("x" * 100)
        return [
            STLStream(name="counted", packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=3),
                      flow_stats=STLFlowStats(pg_id=7 + port_id)),
            STLStream(name="plain", packet=STLPktBuilder(pkt=longer), mode=STLTXCont(pps=1)),
            STLStream(name="latency", packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=1000),
                      flow_stats=STLFlowLatencyStats(pg_id=12 + port_id)),
        ]


def register():
    return Profile()
