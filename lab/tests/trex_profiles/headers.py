# SPDX-License-Identifier: BSD-3-Clause
"""Stacks of headers, options, packets as bytes, padding, and addresses that a profile leaves open."""

from trex_stl_lib.api import *


class Profile:
    def get_streams(self, direction=0, **kwargs):
        ether = Ether(src="00:00:00:01:00:01", dst="00:00:00:02:00:01")
        ip = IP(src="16.0.0.1", dst="48.0.0.1")
        packets = {
            "short": Ether() / ip / UDP(sport=1, dport=2),
            "ipv6": ether / IPv6(src="2001:db8::1", dst="2001:db8::2", fl=9, tc=3) / UDP() / ("x" * 20),
            "qinq": Ether(src="00:00:00:01:00:01", type=0x88A8) / Dot1Q(vlan=3, type=0x8100) / Dot1Q(vlan=4) / ip / ("x" * 30),
            "mpls": ether / MPLS(label=17, s=0, ttl=3) / MPLS(label=18, s=1, cos=2) / ip / UDP() / ("x" * 20),
            "vxlan": ether / ip / UDP(sport=9, chksum=0) / VXLAN(vni=42) / ether / ip / TCP(flags="SA", seq=7),
            "gre": ether / ip / GRE(chksum_present=1) / IP(src="1.1.1.1", dst="2.2.2.2") / ICMP(id=3, seq=4),
            "arp": ether / ARP(psrc="16.0.0.1", pdst="16.0.0.2", hwsrc="00:00:00:01:00:01"),
            "icmpv6": ether / IPv6(dst="2001:db8::2") / ICMPv6EchoRequest(id=5, seq=6) / ("x" * 10),
            "tcp options": ether / ip / TCP(options=[("MSS", 1460), ("NOP", None), ("NOP", None)]) / ("x" * 9),
            "ip options": ether / IP(dst="48.0.0.1", options=IPOption(b"\x94\x04\0\0")) / UDP() / ("x" * 20),
            "fragment": ether / IP(dst="48.0.0.1", frag=100, flags="MF") / ("x" * 40),
            "second fragment": ether / IP(dst="48.0.0.1", frag=31) / ("x" * 40),
            "bad checksum": ether / IP(dst="48.0.0.1", chksum=0x1234) / UDP(chksum=7) / ("x" * 40),
            "wrong length": ether / IP(dst="48.0.0.1", len=999) / UDP(len=77) / ("x" * 40),
            "teid": ether / ip / UDP(dport=2152) / GTP_U_Header(teid=99, gtp_type=255) / IP(dst="9.9.9.9") / UDP(),
            "unknown type": Ether(dst="00:00:00:02:00:01", type=0x88B5) / bytes(range(70)),
        }
        found = [
            STLStream(name=name, packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=1000))
            for name, packet in packets.items()
        ]
        raw = bytes(packets["ipv6"])
        found.append(STLStream(name="bytes", packet=STLPktBuilder(pkt_buffer=raw)))
        return found


def register():
    return Profile()
