# SPDX-License-Identifier: BSD-3-Clause
"""The link `tap`: what it makes, which programs can use it, and that nothing stays behind."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_host import inside

from linerate.experiments.paths import plan as paths
from linerate.experiments.paths.options import PRESETS, Options
from linerate.forwarders import FORWARDERS
from linerate.host import netns
from linerate.host.errors import LabError, MachineError, UsageError
from linerate.host.host import Host
from linerate.host.netns import Interface
from linerate.links import LinkContext, Wire, link, tap
from linerate.runs.plans.blocks import check_fit, takes
from linerate.trial import link_drops
from linerate.trial.link_drops import Passed

TAPS = ["tap1", "tap"]
# ioctl TUNSETIFF with the flags that net_tap gives, and a frame after `struct tun_pi`.
TUNSETIFF, IFF_TAP, IFF_MULTI_QUEUE = 0x400454CA, 0x0002, 0x0100
PI, FRAME = bytes(4), bytes(12) + b"\x88\xb5" + bytes(46)

KILLED = """
import sys
from pathlib import Path
from linerate.links import LinkContext, link
with link("tap").open(LinkContext(Path("."), 64)):
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Wire]:
    with opened(tmp_path, getattr(request, "param", "tap")) as wire:
        yield wire


@contextmanager
def opened(directory: Path, name: str) -> Iterator[Wire]:
    may()
    with link(name).open(LinkContext(directory, 64)) as wire:
        yield wire


def may() -> None:
    try:
        link("tap").prepare()
    except LabError as error:
        pytest.skip(str(error))


@contextmanager
def queue(port: Interface) -> Iterator[int]:
    """A program at the other end, as net_tap is one."""
    with inside(port.host):
        file = os.open(tap.TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        request = struct.pack("16sH22x", port.name.encode(), IFF_TAP | IFF_MULTI_QUEUE)
        fcntl.ioctl(file, TUNSETIFF, request)
        yield file
    finally:
        os.close(file)


def ours() -> set[str]:
    return {path.name for path in Path("/run/netns").glob("linerate-*")}


@pytest.mark.parametrize("made", TAPS, indirect=True)
def test_its_interfaces_are_up_and_both_ends_are_told_of_them(made: Wire) -> None:
    ports = made.of(Interface.GENERATOR)
    assert made.interfaces == ports
    assert made.ports == len(made.locations) == len(ports)
    assert made.host == made.sender_host
    assert not made.threads
    for n, port in enumerate(ports):
        assert made.vdevs[n] == f"net_tap{n},iface={port.name}"
        assert made.locations[n] == f"af_packet:{port.name}"
        told = netns.ip("link", "show", "dev", port.name, host=port.host)
        assert "UP" in told
        assert "mtu 1500" in told


def test_what_the_program_reads_was_sent_and_what_it_writes_was_received(made: Wire) -> None:
    """So books close: frames in the interface's queue count as sent by nobody."""
    port = made.interfaces[0]
    with (
        queue(port) as file,
        inside(port.host),
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5)) as sender,
    ):
        sender.bind((port.name, 0x88B5))
        sender.send(FRAME)
        assert link_drops.read([port]) == {"generator": Passed()}
        assert select.select([file], [], [], 5)[0]
        assert os.read(file, 2048)[len(PI) :] == FRAME
        assert link_drops.read([port]) == {"generator": Passed(sent=1)}
        os.write(file, PI + FRAME)
        # Within the write call, so it was the writer's core.
        assert link_drops.read([port]) == {"generator": Passed(received=1, sent=1)}
        assert sender.recv(2048, socket.MSG_DONTWAIT) == FRAME


def test_interfaces_stay_when_a_forwarder_ends_and_go_with_the_link(tmp_path: Path) -> None:
    before = ours()
    with opened(tmp_path, "tap") as wire:
        port = wire.interfaces[0]
        for _ in range(2):
            with queue(port):
                assert netns.is_up(port)
            assert not netns.is_up(port)
    assert ours() == before


def test_an_error_on_the_way_leaves_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    may()
    before = ours()
    real = netns.ip

    def interrupted(*words: str, host: Host) -> str:
        if "tap1" in words:
            raise KeyboardInterrupt
        return real(*words, host=host)

    monkeypatch.setattr(tap, "ip", interrupted)
    with pytest.raises(KeyboardInterrupt), opened(tmp_path, "tap"):
        pytest.fail("was opened")
    assert ours() == before


def test_those_of_a_killed_lab_go_with_the_next_one(tmp_path: Path) -> None:
    may()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout
        assert lab.stdout.readline() == "made\n"
        (left,) = {name for name in ours() if f"-{lab.pid}-" in name}
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    assert left in ours()
    with opened(tmp_path, "tap1"):
        assert left not in ours()


def test_only_programs_that_take_dpdk_s_devices_sit_on_it() -> None:
    for name in ("c-l2fwd", "rust-l2fwd", "reflect", "testpmd-io", "c-l3fwd-lpm"):
        assert takes(name, link("tap"))
    refused = [name for name, each in FORWARDERS.items() if each.interfaces_only]
    assert {"af-packet-mmap", "af-xdp", "xdp-tx", "testpmd-af-xdp", "kernel-route"} <= set(refused)
    for name in refused:
        with pytest.raises(UsageError, match=f"{name}: it does not work on link tap .its ports"):
            check_fit(["c-l2fwd", name], [link("tap")])
    with pytest.raises(UsageError, match="c-skeleton: it does not work on link tap1"):
        check_fit(["c-skeleton"], [link("tap1")])
    # No kernel thread there belongs to the forwarder.
    with pytest.raises(UsageError, match="--link tap: not supported; run paths"):
        paths.cells(Options(preset=PRESETS["quick"], links=["tap"]))


@pytest.mark.parametrize(
    ("number", "why"), [(errno.ENOENT, "No such file"), (errno.EPERM, "not p")]
)
def test_a_machine_without_the_device_is_told_so(
    monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    def refuse(path: object, _: int) -> int:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(netns, "prepare", lambda: None)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(MachineError, match=rf"/dev/net/tun: .*{why}(.|\n)*modprobe tun"):
        link("tap").prepare()
