# SPDX-License-Identifier: BSD-3-Clause
"""The probe in Open vSwitch: its packets are those of the ports and of OVS's own statistics.

Ports are null devices, which always have packets. A first one, which never has any, is pinned to
the only polling thread, and the others to a core without a polling thread: OVS does not poll them
until they are pinned to the thread as well. So traffic begins when the probe is there, and stops
before anything is compared.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from forwarding_programs import CPUS, numbers
from openvswitch import Vswitch, vswitch

from linerate.host.machine import hugepage_memory_mib
from linerate.host.process import RunDirectory

NEEDED_MIB = 512
PMD = CPUS[-1]
# A core that polls nothing.
NOWHERE = PMD + 1
# DPDK's ids of the ports with traffic, which are p1 and p2 in OVS.
PORTS = (1, 2)
Counts = Counter[tuple[int, int]]


def affinity(core: int, queues: int) -> str:
    pinned = ",".join(f"{queue}:{core}" for queue in range(queues))
    return f'other_config:pmd-rxq-affinity="{pinned}"'


def add_port(switch: Vswitch, port: int, device: str, core: int = NOWHERE) -> None:
    name = f"p{port}"
    interface = ["type=dpdk", f'options:dpdk-devargs="{device}"', affinity(core, 1)]
    # OpenFlow has no port 0.
    number = f"ofport_request={port or 9}"
    switch.vsctl("add-port", "br0", name, "--", "set", "Interface", name, *interface, number)


def forward(switch: Vswitch, *queues: int) -> None:
    """Let OVS poll so many queues of each port for some packets, and stop."""

    def pin(core: int) -> None:
        commands: list[str] = []
        for port, number in zip(PORTS, queues, strict=True):
            commands += ["--", "set", "Interface", f"p{port}", affinity(core, number)]
        switch.vsctl(*commands[1:])

    goals = [switch.program.received(port) + 200_000 for port in PORTS]
    pin(PMD)
    switch.program.wait(
        "packets",
        lambda: all(map(int.__ge__, (switch.program.received(port) for port in PORTS), goals)),
    )
    pin(NOWHERE)


def check(switch: Vswitch, received_before: Counts, sent_before: Counter[int]) -> None:
    """Check at rest that the packets are those of the devices, of the ports and of the polling
    thread.

    `..._before`: what the probe had counted for devices that are gone.
    """
    program = switch.program
    counted = program.packets()
    polling = program.polling()
    assert {entry["burst_limit"] for entry in polling.values()} == {32}
    assert len({entry["lcore"] for entry in polling.values()}) == 1
    pmd = switch.appctl("dpif-netdev/pmd-stats-show").partition("main thread")[0]
    assert f"core_id {PMD}:" in pmd
    assert numbers(r"packets received: (\d+)", pmd) == [counted.total()]
    for port in PORTS:
        stats = program.stats(port)
        here = [counted[port, queue] - received_before[port, queue] for queue in (0, 1)]
        assert here == stats["q_ipackets"][:2]
        shown = switch.command("ovs-ofctl", "dump-ports", "br0", f"p{port}")
        assert numbers(r"rx pkts=(\d+)", shown) == [sum(here)]
        assert numbers(r"tx pkts=(\d+)", shown) == [stats["opackets"]]
        # Every burst is stamped, and stamps outlive OVS.
        assert program.sent(port) - sent_before[port] == stats["opackets"]


def test_every_packet_is_counted_as_ports_and_queues_come_and_go() -> None:
    if hugepage_memory_mib() < NEEDED_MIB:
        pytest.skip(f"Open vSwitch needs {NEEDED_MIB} MiB of free hugepages")
    if os.geteuid() != 0:
        pytest.skip("Open vSwitch with DPDK is run by root")
    with RunDirectory() as run, vswitch(run, CPUS, PMD, one_in=1) as switch:
        program = switch.program
        bridge = ["set", "Bridge", "br0", "datapath_type=netdev", "fail-mode=secure"]
        switch.vsctl("add-br", "br0", "--", *bridge)
        for here, there in (PORTS, PORTS[::-1]):
            flow = f"in_port={here},actions=output:{there}"
            switch.command("ovs-ofctl", "add-flow", "br0", flow)
        add_port(switch, 0, "net_null0,no-rx=1", PMD)
        for port in PORTS:
            add_port(switch, port, f"net_null{port},size=64")
        program.await_queues(3)
        assert set(program.packets()) <= {(0, 0)}
        forward(switch, 1, 1)
        check(switch, Counts(), Counter())

        switch.vsctl("set", "Interface", "p1", "options:n_rxq=2", affinity(NOWHERE, 2))
        program.await_queues(4)
        forward(switch, 2, 1)
        assert program.packets()[1, 1] > 0
        check(switch, Counts(), Counter())

        gone = Counts({(2, 0): program.packets()[2, 0]})
        sent = Counter({2: program.sent(2)})
        switch.vsctl("del-port", "br0", "p2")
        assert program.ask("/linerate/probe")["rx_queues"] == 3
        assert program.packets()[2, 0] == gone[2, 0]
        add_port(switch, 2, "net_null7,size=64")
        program.await_queues(4)
        forward(switch, 2, 1)
        check(switch, gone, sent)
