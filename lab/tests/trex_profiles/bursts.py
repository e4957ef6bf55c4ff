# SPDX-License-Identifier: BSD-3-Clause
"""Single and multi bursts, streams that start others, gaps, and rates in every unit."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, tunables, direction=0, **kwargs):
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--fsize", type=int, default=64)
        fsize = parser.parse_args(tunables).fsize
        packet = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01") / IP() / UDP()
        packet /= "x" * max(0, fsize - 4 - len(packet))
        builder = STLPktBuilder(pkt=packet)
        return STLProfile(
            [
                STLStream(name="first", packet=builder, isg=500.0, next="second",
                          mode=STLTXSingleBurst(pps=1000, total_pkts=11)),
                STLStream(name="second", packet=builder, self_start=False, isg=1000.0, next="third",
                          mode=STLTXSingleBurst(bps_L1=672000, total_pkts=5)),
                STLStream(name="third", packet=builder, self_start=False,
                          mode=STLTXCont(bps_L2=512000)),
                STLStream(name="multi", packet=builder,
                          mode=STLTXMultiBurst(pps=10000, pkts_per_burst=4, ibg=500.0, count=3)),
                STLStream(name="again", packet=builder, next="again", action_count=6,
                          mode=STLTXSingleBurst(pps=10000, total_pkts=2)),
                STLStream(name="slow", packet=builder, mode=STLTXCont(pps=1.5)),
                STLStream(name="off", packet=builder, enabled=False),
            ]
        ).get_streams()


def register():
    return Profile()
