# SPDX-License-Identifier: BSD-3-Clause
"""The names that `from trex_stl_lib.api import *` gives a profile: TRex's, and scapy's."""

from __future__ import annotations

from typing import Any

from linerate.traffic.trex.profile import packets, streams, vm
from linerate.traffic.trex.profile.errors import ProfileError

# What older profiles call the same.
_OLD = {
    "CScapyTRexPktBuilder": streams.STLPktBuilder,
    "CTRexScRaw": vm.STLScVmRaw,
    "CTRexVmDescFlowVar": vm.STLVmFlowVar,
    "CTRexVmDescTupleGen": vm.STLVmTupleGen,
    "CTRexVmDescWrFlowVar": vm.STLVmWrFlowVar,
    "CTRexVmDescWrMaskFlowVar": vm.STLVmWrMaskFlowVar,
    "CTRexVmDescFixIpv4": vm.STLVmFixIpv4,
    "CTRexVmDescTrimPktSize": vm.STLVmTrimPktSize,
    "STLError": ProfileError,
}


class STLStreamDstMAC:
    """How TRex finds the destination address of Ethernet."""

    STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT, STLStreamDstMAC_ARP = 0, 1, 2


def names() -> dict[str, Any]:
    """Later ones hide earlier ones, as TRex's hide scapy's."""
    own = {
        name: value
        for module in (streams, vm)
        for name, value in vars(module).items()
        if name.startswith(("STL", "CTRex"))
    }
    addresses = {
        name: value
        for name, value in vars(STLStreamDstMAC).items()
        if name.startswith("STLStreamDstMAC_")
    }
    return {**packets.names(), **own, **_OLD, **addresses}
