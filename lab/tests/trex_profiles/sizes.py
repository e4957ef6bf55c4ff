# SPDX-License-Identifier: BSD-3-Clause
"""Frame sizes that a variable trims, with the lengths and checksums that follow them, and without."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, fsize=120, **kwargs):
        packet = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01")
        packet /= IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12)
        packet /= "z" * (fsize - len(packet))
        even = STLVM()
        even.var(name="size", min_value=60, max_value=fsize, step=4, size=2, op="inc")
        even.trim("size")
        even.write("size", "IP.len", add_val=-14)
        even.write("size", "UDP.len", add_val=-34)
        even.fix_chksum_hw()
        # Lengths that are too large by one are sent as they are.
        wrong = STLVM()
        wrong.var(name="size", min_value=64, max_value=68, size=2, op="inc")
        wrong.trim("size")
        wrong.write("size", "IP.len", add_val=-13)
        wrong.fix_chksum()
        listed = STLVM()
        listed.var(name="size", value_list=[60, 100, 60], size=2)
        listed.trim("size")
        return [
            STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=1000))
            for name, vm in (("even", even), ("wrong", wrong), ("listed", listed))
        ]


def register():
    return Profile()
