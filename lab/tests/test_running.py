# SPDX-License-Identifier: BSD-3-Clause
"""The kernel as a forwarder: it forwards every flow, counts what it forwarded, and is restored
afterwards.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import pytest
from fake_host import inside

from linerate.forwarders import Forwarder, forwarder
from linerate.forwarders.files import parse
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, LinkError, UsageError
from linerate.host.host import InNamespace
from linerate.host.netns import Interface, ip
from linerate.host.process import RunDirectory, wait_until
from linerate.links import LinkContext, Wire, flows, link
from linerate.links.eal import Memory
from linerate.trial.running import KernelPorts, Running, launch

STACK = ("kernel-bridge", "kernel-route")
CORES = Cores(0, 0, shared_core=True)
SMALL = Memory(hugepages=False)
ETH_P_ALL = 3
TIMEOUT_S = 5.0


@pytest.fixture
def run() -> Iterator[RunDirectory]:
    # In a directory whose path is short enough for sockets.
    with RunDirectory() as directory:
        yield directory


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    try:
        link("veth").prepare()
        opened = link("veth").open(LinkContext(tmp_path, 64, cores=CORES))
        with opened as found:
            up = KernelPorts(found.interfaces).up
            wait_until(up, lambda: None, TIMEOUT_S, "no link")
            yield found
    except LabError as error:
        pytest.skip(str(error))


def start(name: str, run: RunDirectory, wire: Wire) -> AbstractContextManager[Running]:
    return launch(forwarder(name), run, CORES, SMALL, wire)


def settings(wire: Wire) -> dict[str, str]:
    """Return everything that a forwarder may have changed in its namespace."""
    asked = (
        "link show", "-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all",
        "neigh show nud all",
    )  # fmt: skip
    told = {words: ip(*words.split(), host=wire.host) for words in asked}
    paths = ["ipv4/ip_forward", "ipv4/conf/all/rp_filter", "ipv6/conf/all/forwarding"]
    for port in wire.of(Interface.FORWARDER):
        paths += [f"ipv4/conf/{port.name}/rp_filter", f"ipv6/conf/{port.name}/disable_ipv6"]
    with inside(wire.host):
        told |= {path: Path(f"/proc/sys/net/{path}").read_text() for path in paths}
    return told


def frame_of(flow: flows.Flow, version: int, port: int) -> bytes:
    macs = bytes.fromhex((flows.forwarder_mac(port) + flows.sender_mac(port)).replace(":", ""))
    if version == 4:
        return macs + flows.frame(flow)[12:]
    udp = flow.port.to_bytes(2, "big") * 2 + bytes.fromhex("00081234")
    ipv6 = bytes.fromhex("60000000000811") + b"\x40" + flow.source.packed + flow.destination.packed
    return macs + bytes.fromhex("86dd") + ipv6 + udp


def through(wire: Wire, frame: bytes, port: int) -> bytes | None:
    """Return the frame as it leaves the other port; None if it does not."""
    (into, out) = wire.of(Interface.GENERATOR)[:: 1 if port == 0 else -1]
    with inside(into.host):
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with sender, receiver:
        sender.bind((into.name, 0))
        receiver.bind((out.name, ETH_P_ALL))
        receiver.settimeout(TIMEOUT_S)
        sender.send(frame)
        try:
            return receiver.recv(2048)
        except TimeoutError:
            return None


def counted(running: Running) -> list[tuple[int, int]]:
    readings = running.ports.readings()
    return [(each.value["ipackets"], each.value["opackets"]) for each in readings]


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("version", [4, 6])
def test_a_bridge_sends_frames_on_as_they_are(
    run: RunDirectory, wire: Wire, version: Literal[4, 6], port: int
) -> None:
    sent = frame_of(next(flows.flows(version)), version, port)
    with start("kernel-bridge", run, wire) as running:
        assert running.children == ()
        running.wait_until(running.ports.up, TIMEOUT_S, "no link")
        before = counted(running)
        assert through(wire, sent, port) == sent
        assert gained(before, running) == [[(1, 0), (0, 1)], [(0, 1), (1, 0)]][port]


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("version", [4, 6])
def test_routes_lead_every_flow_to_the_other_port(
    run: RunDirectory, wire: Wire, version: Literal[4, 6], port: int
) -> None:
    every = list(flows.flows(version))
    with start("kernel-route", run, wire) as running:
        running.wait_until(running.ports.up, TIMEOUT_S, "no link")
        before = counted(running)
        for flow in (every[0], every[-1]):
            sent = frame_of(flow, version, port)
            got = through(wire, sent, port)
            assert got is not None
            assert got[:6].hex(":") == flows.sender_mac(1 - port)
            assert got[6:12].hex(":") == flows.forwarder_mac(1 - port)
            lives = 22 if version == 4 else 21
            assert got[lives] == sent[lives] - 1
            # The checksum of IPv4 has changed with it.
            same = 26 if version == 4 else 22
            assert got[same:] == sent[same:]
        # And no frame that the kernel itself would send to neighbours.
        assert gained(before, running) == [[(2, 0), (0, 2)], [(0, 2), (2, 0)]][port]


def gained(before: list[tuple[int, int]], running: Running) -> list[tuple[int, int]]:
    """Return frames in and out by port since then; a sent frame counts when the other end
    has it.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        now = counted(running)
        found = [(a - c, b - d) for (a, b), (c, d) in zip(now, before, strict=True)]
        received, sent = (sum(figures) for figures in zip(*found, strict=True))
        if sent >= received or time.monotonic() >= deadline:
            return found


@pytest.mark.parametrize("name", [*STACK])
def test_nothing_of_it_stays(run: RunDirectory, wire: Wire, name: str) -> None:
    before = settings(wire)
    with start(name, run, wire):
        assert settings(wire) != before
    assert settings(wire) == before
    # Also if it must not end normally, and again.
    with pytest.raises(ZeroDivisionError), start(name, run, wire):
        raise ZeroDivisionError
    assert settings(wire) == before


# Possible user definitions: a bridge made by commands, and a program that only waits.
OWN = """
name = "own"
kind = "kernel"
command = "sh -c 'trap \\"\\" INT; $SAY; exec sleep 600'"
environment = {{ SAY = "{say}" }}
ports = {{ number = 2, on = "made-interfaces" }}
counted = "link"
ready = {{ {ready}, within_s = {within} }}
stop = {{ signal = "SIGTERM" }}
setup = [
  "ip link add own0 type bridge forward_delay 0 mcast_snooping 0",
  "ip link set {{rx}} master own0",
  "ip link set {{tx}} master own0",
  "ip link set {up} up",
]
teardown = ["ip link del own0"]
"""
SAYS, MAKES = 'by = "output", text = "forwarding"', 'by = "interface", interface = "made0"'


def own(say: str, ready: str, up: str = "own0", within: str = "3") -> Forwarder:
    text = OWN.format(say=say, ready=ready, up=up, within=within)
    (definition,) = parse(text, "own.toml")
    return Forwarder(definition)


@pytest.mark.parametrize(
    ("say", "ready"), [("echo forwarding", SAYS), ("ip link add made0 type bridge", MAKES)]
)
def test_a_program_without_telemetry_and_what_is_set_up_for_it(
    run: RunDirectory, wire: Wire, say: str, ready: str
) -> None:
    sent = frame_of(next(flows.flows(4)), 4, 0)
    before = settings(wire)
    with launch(own(say, ready), run, CORES, SMALL, wire) as running:
        assert running.forwarder is not None
        assert (running.children, running.telemetry) == ((running.forwarder,), None)
        running.wait_until(running.ports.up, TIMEOUT_S, "no link")
        count = counted(running)
        assert through(wire, sent, 0) == sent
        assert gained(count, running) == [(1, 0), (0, 1)]
        ending = time.monotonic()
    # By its own signal, not by those that follow if it has no effect.
    assert time.monotonic() - ending < 2
    if ready is MAKES:
        ip("link", "del", "made0", host=wire.host)
    assert settings(wire) == before


@pytest.mark.parametrize(
    ("forwarder", "complaint"),
    [
        (
            own("true", SAYS, within="0.5"),
            'the forwarder did not print "forwarding" within 0.5 s',
        ),
        (own("true", MAKES, within="0.5"), "the forwarder made no interface made0 within 0.5 s"),
        (
            own("echo forwarding", SAYS, up="none0"),
            'ip link set none0 up: Cannot find device "none',
        ),
    ],
)
def test_one_that_does_not_become_ready(
    run: RunDirectory, wire: Wire, forwarder: Forwarder, complaint: str
) -> None:
    before = settings(wire)
    with (
        pytest.raises(LinkError, match=complaint),
        launch(forwarder, run, CORES, SMALL, wire),
    ):
        pass
    assert settings(wire) == before


@pytest.mark.parametrize("name", [*STACK])
def test_on_other_links_it_is_refused_with_the_reason(run: RunDirectory, name: str) -> None:
    host = InNamespace("n")
    one = Wire(interfaces=(Interface(host, "f0", Interface.FORWARDER),), host=host)
    for wire, why in ((Wire(vdevs=("net_memif0",)), "namespace of its own"), (one, "has one")):
        with pytest.raises(UsageError, match=f"{name}.*{why}"), start(name, run, wire):
            pass


def test_the_kernel_s_threads_receive(wire: Wire) -> None:
    """They run for every frame, so the sender does not receive for the forwarder."""
    frame = frame_of(next(flows.flows()), 4, 0)
    into = wire.of(Interface.GENERATOR)[0]
    before = [_switches(thread.pid) for thread in wire.threads]
    with inside(into.host):
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with sender:
        sender.bind((into.name, 0))
        sender.send(frame)
    deadline = time.monotonic() + TIMEOUT_S
    while [_switches(thread.pid) for thread in wire.threads] == before:
        assert time.monotonic() < deadline, "no thread has run"


def _switches(pid: int) -> int:
    """Return how often a thread has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[2])


def xdp_of(wire: Wire) -> list[bool]:
    """Return True if the forwarder's interfaces have a program."""
    ports = wire.of(Interface.FORWARDER)
    return ["prog/xdp" in ip("link", "show", "dev", p.name, host=p.host) for p in ports]


def test_no_program_stays_after_one_that_was_killed(run: RunDirectory, wire: Wire) -> None:
    name = "testpmd-af-xdp"
    try:
        forwarder(name).prepare()
    except LabError as error:
        pytest.skip(str(error))
    with start(name, run, wire) as running:
        running.wait_until(lambda: all(xdp_of(wire)), TIMEOUT_S, "no program")
        os.kill(running.children[0].pid, signal.SIGKILL)
        assert running.children[0].wait(TIMEOUT_S)
    assert not any(xdp_of(wire))


def test_what_runs_beside_a_forwarder_ends_with_it(run: RunDirectory, wire: Wire) -> None:
    name = "xdp-tx"
    try:
        forwarder(name).prepare()
    except LabError as error:
        pytest.skip(str(error))
    with start(name, run, wire) as running:
        roles = [child.command.role for child in running.children]
        assert roles == ["forwarder", "companion"]
        assert wire.sender_host.namespace
        there = Path("/run/netns") / wire.sender_host.namespace
        assert Path(f"/proc/{running.children[1].pid}/ns/net").samefile(there)
    assert not any(child.running for child in running.children)
