# SPDX-License-Identifier: BSD-3-Clause
"""Streams that have no counterpart in OTG, one for each reason."""

from trex_stl_lib.api import *

PACKET = Ether() / IP(dst="48.0.0.1") / UDP() / ("x" * 60)


def stream(name, instructions=(), **further):
    builder = STLPktBuilder(pkt=PACKET, vm=list(instructions))
    return STLStream(name=name, packet=builder, **further)


def write(name, offset, **further):
    return STLVmWrFlowVar(fv_name=name, pkt_offset=offset, **further)


class Profile:
    def get_streams(self, direction=0, only="", **kwargs):
        found = [
            stream("payload", [STLVmFlowVar("v", 0, 9), write("v", 50)]),
            stream("nested", [STLVmFlowVar("v", 0, 9, next_var="w")]),
            stream("checksum", [STLVmFlowVar("v", 0, 9, size=2), write("v", "UDP.chksum")]),
            stream("middle", [STLVmFlowVar("v", 0, 1 << 20, init_value=5), write("v", "IP.src")]),
            stream("unknown", [write("v", "IP.src")]),
            stream("layer", [STLVmFlowVar("v"), write("v", "TCP.sport")]),
            stream("size", [STLVmFlowVar("v", 40, 70, size=2), STLVmTrimPktSize("v")]),
            stream("late", isg=10.0, mode=STLTXMultiBurst(pps=10, pkts_per_burst=2, count=2)),
            stream("there", next="back", mode=STLTXSingleBurst(total_pkts=1)),
            stream("back", next="there", mode=STLTXSingleBurst(total_pkts=1), self_start=False),
            stream("rare", mode=STLTXCont(pps=0.25)),
            stream("endless", next="back", mode=STLTXCont()),
        ]
        return [each for each in found if not only or each.name in only.split("+")]


def register():
    return Profile()
