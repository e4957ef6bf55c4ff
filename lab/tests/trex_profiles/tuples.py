# SPDX-License-Identifier: BSD-3-Clause
"""Tuple generators: few clients with many ports, a limit of flows, and one client."""

from trex.stl.api import *


class Profile:
    def get_streams(self, direction=0, **kwargs):
        base = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01")
        base /= IP(src="16.0.0.1", dst="48.0.0.1") / UDP(sport=1025, dport=12) / ("x" * 22)
        found = []
        for name, clients, ports, limit in (
            ("square", "16.0.0.5", 1028, 0), ("limited", "16.0.0.3", 1200, 7),
            ("one", "16.0.0.1", 1030, 100_000), ("few", "16.0.0.200", 1100, 9),
        ):
            vm = STLScVmRaw(
                [
                    STLVmTupleGen(name="tuple", ip_min="16.0.0.1", ip_max=clients, port_min=1025,
                                  port_max=ports, limit_flows=limit),
                    STLVmWrFlowVar(fv_name="tuple.ip", pkt_offset="IP.src"),
                    STLVmFixIpv4(offset="IP"),
                    STLVmWrFlowVar(fv_name="tuple.port", pkt_offset="UDP.sport"),
                ],
                split_by_field="tuple",
                cache_size=255,
            )
            found.append(STLStream(name=name, packet=STLPktBuilder(pkt=base, vm=vm),
                                   mode=STLTXCont(pps=1000)))
        return found


def register():
    return Profile()
