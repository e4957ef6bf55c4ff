# SPDX-License-Identifier: BSD-3-Clause
"""Writes to parts of a field, over several fields, masked, and with the bytes in reverse order."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, **kwargs):
        packet = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01") / Dot1Q(vlan=7, prio=2)
        packet /= IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=0x1234, dport=0x5678, chksum=0)
        packet /= bytes(range(30))
        vm = [
            STLVmFlowVar(name="host", min_value=1, max_value=10, size=1, op="inc"),
            STLVmFlowVar(name="net", min_value=3, max_value=5, size=1, op="dec"),
            STLVmFlowVar(name="tag", min_value=100, max_value=107, size=2, op="inc"),
            STLVmFlowVar(name="ports", min_value=0x10001, max_value=0x10006, size=4, op="inc"),
            STLVmFlowVar(name="mac", min_value=0, max_value=6, size=4, step=2, op="inc"),
            STLVmFlowVar(name="ident", min_value=0x102, max_value=0x106, size=2, op="inc"),
            STLVmWrFlowVar(fv_name="host", pkt_offset="IP.src", offset_fixup=3),
            STLVmWrFlowVar(fv_name="net", pkt_offset="IP.src", offset_fixup=2),
            STLVmWrFlowVar(fv_name="net", pkt_offset="IP.dst", offset_fixup=1),
            STLVmWrMaskFlowVar(fv_name="tag", pkt_offset="Dot1Q.vlan", pkt_cast_size=2, mask=0xFFF),
            STLVmWrMaskFlowVar(fv_name="net", pkt_offset="Dot1Q", mask=0xE0, shift=5),
            STLVmWrFlowVar(fv_name="ports", pkt_offset="UDP.sport"),
            STLVmWrMaskFlowVar(fv_name="mac", pkt_offset=2, pkt_cast_size=4, mask=0xFF0000, shift=16),
            STLVmWrFlowVar(fv_name="ident", pkt_offset="IP.id", is_big=False),
            STLVmWrMaskFlowVar(fv_name="ident", pkt_offset="IP.tos", mask=0x0F, shift=-1, add_value=6),
            STLVmFixIpv4(offset="IP"),
        ]
        return [STLStream(name="parts", packet=STLPktBuilder(pkt=packet, vm=STLScVmRaw(vm)),
                          mode=STLTXCont(pps=1000))]


def register():
    return Profile()
