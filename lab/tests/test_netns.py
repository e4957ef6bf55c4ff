# SPDX-License-Identifier: BSD-3-Clause
"""The lab's own network namespaces: made, entered, read and removed, also after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need_veth
from fake_host import Instead, inside

from linerate.experiments.cloud.tenants import packages
from linerate.forwarders.routing import routed
from linerate.host import netns
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, LinkError, MachineError
from linerate.host.host import InNamespace
from linerate.host.netns import Namespaces
from linerate.host.process import Command, RunDirectory
from linerate.links import LinkContext, flows, link
from linerate.links.veth import _name as veth_name
from linerate.links.veth import sees_kernel_threads
from linerate.trial import link_drops

KILLED = """
import sys
from linerate.host.netns import Namespaces
Namespaces(("x",)).__enter__()
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _may() -> None:
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))


def ours() -> set[str]:
    """Namespaces of this process: other tests make some meanwhile."""
    return {name for name in every() if name.startswith(f"linerate-{os.getpid()}-")}


def every() -> set[str]:
    return {path.name for path in Path("/run/netns").glob("linerate-*")}


def devices() -> list[str]:
    told = Path("/proc/thread-self/net/dev").read_text()
    return [line.split(":")[0].strip() for line in told.splitlines()[2:]]


def test_ctrl_c_in_a_terminal_ends_no_command_that_the_lab_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "ip"
    group.write_text("#!/bin/sh\ncut -d' ' -f5 /proc/$$/stat\n")
    group.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert int(netns.ip("link")) != os.getpgrp()
    assert int(packages.told(str(group)) or 0) not in {0, os.getpgrp()}


def test_flows_are_routed_to_the_other_port_and_their_sources_to_the_port_they_come_by() -> None:
    """An XDP program that routes leaves frames to the kernel if it finds no route to the source."""
    flow = next(flows.flows())
    with Namespaces(("router",)) as made:
        host = made.host("router")
        ports = netns.Interface(host, "f0", "forwarder"), netns.Interface(host, "f1", "forwarder")
        for port in ports:
            netns.ip("link", "add", port.name, "type", "veth", "peer", f"p{port.name}", host=host)
            netns.ip("link", "set", port.name, "up", host=host)
            netns.ip("link", "set", f"p{port.name}", "up", host=host)

        def way(to: object, by: object, port: netns.Interface) -> str:
            """The interface by which the kernel would send a packet that came in on `port`."""
            words = ("route", "get", str(to), "from", str(by), "iif", port.name)
            return netns.ip(*words, host=host).split(" dev ")[1].split()[0]

        with routed(ports):
            for port, other in (ports, ports[::-1]):
                assert way(flow.destination, flow.source, port) == other.name
                assert way(flow.source, flow.destination, port) == port.name


def test_they_go_with_their_context() -> None:
    before = ours()
    here = devices()
    with Namespaces(("a", "b")) as made:
        assert ours() - before == {made.name("a"), made.name("b")}
        with inside(made.host("a")):
            assert devices() == ["lo"]
        assert devices() == here
    assert ours() == before
    with pytest.raises(LinkError, match="netns add"), Namespaces(("c", "c")):
        pass
    assert ours() == before


def test_those_of_a_killed_lab_go_with_the_next_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout
        assert lab.stdout.readline() == "made\n"
        (left,) = {name for name in every() if f"-{lab.pid}-" in name}
        # Those of a living lab stay.
        assert left not in netns.remove_stale()
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    assert left in every()
    with Namespaces(("y",)):
        assert left not in every()


def test_those_of_a_lab_that_cannot_be_seen_from_here_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example from another container that shares /run/netns: this pid does not exist there."""
    with Namespaces(("z",)) as made:
        name = made.name("z")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(netns, "start_time", lambda _: None)
            assert name not in netns.remove_stale()
        assert name in every()
    assert name not in every()


def test_an_interruption_between_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ours()

    def interrupted(path: Path) -> int | None:
        raise KeyboardInterrupt

    monkeypatch.setattr(netns, "hold", interrupted)
    with pytest.raises(KeyboardInterrupt), Namespaces(("a",)):
        pass
    assert ours() == before


def test_who_may_not_make_them_is_told_which_capability_is_missing(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t0000000000001000\n")
    with pytest.raises(MachineError, match="need the capabilities CAP_SYS_ADMIN\n"):
        netns.prepare(Instead({"/proc/self/status": status}))


def test_a_child_starts_inside(tmp_path: Path) -> None:
    with (
        Namespaces(("a",)) as made,
        RunDirectory(tmp_path) as run,
        made.host("a").start(
            Command("forwarder", ("sleep", "20"), tuple(os.sched_getaffinity(0))), run
        ) as child,
    ):

        def same(path: str) -> bool:
            return Path(path).samefile(f"/run/netns/{made.name('a')}")

        assert same(f"/proc/{child.pid}/ns/net")
        assert not same("/proc/self/ns/net")
    with RunDirectory(tmp_path) as run, pytest.raises(LinkError, match="gone"):
        InNamespace("linerate-none").start(Command("forwarder", ("sleep", "20"), (0,)), run)


def test_a_container_s_own_pids_hide_the_kernel_s_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = tmp_path / "comm"
    host = Instead({"/proc/2/comm": comm})
    assert not sees_kernel_threads(host)
    comm.write_text("kthreadd\n")
    assert sees_kernel_threads(host)
    comm.write_text("bash\n")
    assert not sees_kernel_threads(host)
    monkeypatch.setattr("linerate.links.veth.sees_kernel_threads", lambda: False)
    with pytest.raises(MachineError, match="PID namespace"):
        link("veth").prepare()


@pytest.mark.parametrize("name", ["veth1", "veth", "veth-af-xdp"])
def test_a_link_of_veths_is_up_and_received_by_threads_on_their_cores(
    tmp_path: Path, name: str
) -> None:
    before = ours()
    need_veth()
    chosen = link(name)
    chosen.prepare()
    with chosen.open(LinkContext(tmp_path, 64)) as wire:
        assert wire.ports == len(wire.locations) == chosen.ports
        kind = "af_xdp:" if name == "veth-af-xdp" else "af_packet:"
        assert wire.sender_has_xdp == (name == "veth-af-xdp")
        assert all(location.startswith(kind) for location in wire.locations)
        assert wire.host.namespace
        assert wire.sender_host.namespace
        assert len(wire.interfaces) == 2 * chosen.ports
        # Threads are found only by name: no other interface may have it.
        assert all(end.name.endswith(f"{os.getpid():x}") for end in wire.interfaces)
        assert link_drops.read(wire.interfaces) == {
            "generator": link_drops.Passed(),
            "forwarder": link_drops.Passed(),
        }
        cores = Cores.choose()
        pinned = {(thread.name, thread.cpu) for thread in wire.threads}
        assert pinned == {
            (
                f"napi/{end.name[0]}{end.name[2]}",
                cores.control if end.end == "generator" else cores.forwarder,
            )
            for end in wire.interfaces
        }
        for thread in wire.threads:
            assert os.sched_getaffinity(thread.pid) == {thread.cpu}
            # The whole name, so that a longer one does not match.
            told = Path(f"/proc/{thread.pid}/comm").read_text()
            assert told.split("-")[0][5:] in {end.name for end in wire.interfaces}
        for end in wire.interfaces:
            told = netns.ip("link", "show", "dev", end.name, host=end.host)
            assert "state UP" in told
    assert ours() == before


def test_no_two_interfaces_of_as_many_links_as_a_duel_has_are_alike() -> None:
    names = [veth_name(role, number) for role in ("gen", "fwd") for number in range(2 * 32)]
    assert len(set(names)) == len(names)
    # After `napi/` and before `-`, where the kernel truncates a thread's name to 15 characters.
    pid = f"{os.getpid():x}"
    assert all(len(name.removesuffix(pid)) == 3 and len(f"napi/{name}-") <= 15 for name in names)
