# SPDX-License-Identifier: BSD-3-Clause
"""The packets of a capture file: replayed, and the first one as a stream's packet."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, ipg_usec=100.0, loops=2, **kwargs):
        first = STLStream(name="first", packet=STLPktBuilder(pkt="traffic.pcap"))
        replayed = STLProfile.load_pcap("traffic.pcap", ipg_usec=ipg_usec, loop_count=loops)
        return [first, *replayed.get_streams()]


def register():
    return Profile()
