# SPDX-License-Identifier: BSD-3-Clause
"""Random values: in fields that have them in the model, in others, of a list, and repeated."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, **kwargs):
        packet = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01")
        packet /= IP(src="16.0.0.1", dst="48.0.0.1") / TCP(sport=1, dport=80, flags="A") / ("y" * 20)
        vm = STLVM()
        vm.var(name="src", min_value="16.0.0.0", max_value="16.0.255.255", size=4, op="random")
        vm.var(name="ttl", min_value=10, max_value=19, size=1, op="random")
        vm.var(name="dport", value_list=[80, 443], size=2, op="random")
        vm.repeatable_random_var(fv_name="sport", size=2, limit=5, seed=7, min_value=1, max_value=9)
        vm.write(fv_name="src", pkt_offset="IP.src")
        vm.write(fv_name="ttl", pkt_offset="IP.ttl")
        vm.write(fv_name="dport", pkt_offset="TCP.dport")
        vm.write(fv_name="sport", pkt_offset="TCP.sport")
        vm.fix_chksum_hw(l3_offset="IP", l4_offset="TCP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_TCP)
        vm.set_cached(255)
        return [STLStream(name="random", packet=STLPktBuilder(pkt=packet, vm=vm), random_seed=3,
                          mode=STLTXCont(pps=1000))]


def register():
    return Profile()
