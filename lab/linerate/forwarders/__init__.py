# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders: the programs that are compared.

A new forwarder is one small class and one line in `FORWARDERS`.
"""

from __future__ import annotations

from linerate.forwarders.base import Forwarder
from linerate.forwarders.bench import Plain, Raw, Slowed
from linerate.forwarders.c_basic import CBasic
from linerate.forwarders.c_l2fwd import CL2fwd
from linerate.forwarders.c_l3fwd import CL3fwd, CL3fwdGraph
from linerate.forwarders.kernel import KERNEL_FORWARDERS
from linerate.forwarders.rust import Reflect, RustL2fwd
from linerate.forwarders.rust_l3fwd import RustL3fwdGraph
from linerate.forwarders.stack import STACK_FORWARDERS
from linerate.forwarders.testpmd import Testpmd, TestpmdAfXdp
from linerate.host.errors import look_up

FORWARDERS: dict[str, Forwarder] = {
    forwarder.name: forwarder
    for forwarder in (
        CL2fwd(),
        CL2fwd(native=True),
        CL2fwd(clang=True),
        CL2fwd(clang=True, native=True),
        RustL2fwd(burst=False),
        RustL2fwd(burst=True),
        Testpmd("io"),
        Testpmd("mac"),
        Testpmd("macswap"),
        Testpmd("csum"),
        Testpmd("5tswap"),
        TestpmdAfXdp(),
        Reflect(),
        CL3fwd("lpm"),
        CL3fwd("em"),
        CL3fwd("acl"),
        CL3fwd("lpm", native=True),
        CL3fwd("acl", native=True),
        CL3fwdGraph(),
        CL3fwdGraph(native=True),
        CL3fwdGraph(clang=True),
        CL3fwdGraph(clang=True, native=True),
        RustL3fwdGraph("dpdk"),
        RustL3fwdGraph("fused"),
        CBasic("skeleton"),
        CBasic("rxtx_callbacks"),
        *KERNEL_FORWARDERS,
        *STACK_FORWARDERS,
        Plain(burst=False),
        Plain(burst=True),
        Raw(burst=False),
        Raw(burst=True),
        *(Slowed(percent) for percent in (0, 2, 5, 10)),
    )
}


def forwarder(name: str) -> Forwarder:
    return look_up(FORWARDERS, name, "--forwarders", "forwarder")


__all__ = ["FORWARDERS", "Forwarder", "forwarder"]
