# SPDX-License-Identifier: BSD-3-Clause
"""Variables that count: up, down, by steps, from a value in the middle, and lists."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, op="inc", **kwargs):
        packet = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01")
        packet /= IP(src="16.0.0.1", dst="48.0.0.1", ttl=9) / UDP(sport=1025, dport=12) / ("x" * 40)
        vm = STLVM()
        vm.var(name="src", min_value="16.0.0.1", max_value="16.0.0.20", size=4, op=op)
        vm.var(name="dst", min_value="48.0.0.0", max_value="48.0.3.255", size=4, step=256, op="dec")
        vm.var(name="sport", min_value=1000, max_value=1009, init_value=1007, size=2)
        vm.var(name="dport", value_list=[80, 443, 53], size=2)
        vm.var(name="ttl", value_list=[1, 64, 128, 255], size=1, op="dec")
        vm.write(fv_name="src", pkt_offset="IP.src")
        vm.write(fv_name="dst", pkt_offset="IP.dst")
        vm.write(fv_name="sport", pkt_offset="UDP.sport", add_val=5)
        vm.write(fv_name="dport", pkt_offset="UDP", offset_fixup=2)
        vm.write(fv_name="ttl", pkt_offset=22)
        vm.fix_chksum_hw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)
        return [STLStream(name="counters", packet=STLPktBuilder(pkt=packet, vm=vm),
                          mode=STLTXCont(pps=1000))]


def register():
    return Profile()
