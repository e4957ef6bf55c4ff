# SPDX-License-Identifier: BSD-3-Clause
"""Ports at interfaces of the kernel, and what keeps frames from passing there.

Each test has two network namespaces of its own with a veth between them; it needs root and is
skipped where none can be made. Frames that the kernel drops are not all counted: what arrived is
compared with the interfaces' own counters.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import snappi
from farend import forwarder
from harness import Generator, eventually, generator
from netns import FAR, NEAR, counters, inside, ip
from traffic import errors, published

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")
# The same number on all architectures.
SYS_PIDFD_GETFD = 438


def send(directory: Path, location: str, size: int = 64) -> dict[str, Any]:
    """1000 frames from that port of a new generator: the port's books, warnings or errors."""
    config = published(location)
    flow = config.flows[0]
    flow.size.fixed, flow.rate.pps, flow.duration.fixed_packets.packets = size, 5000, 1000
    result: dict[str, Any] = {}
    # By `ip`, for that shows it the /sys of its namespace.
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        try:
            running.api.set_config(config)
            result["warnings"] = running.transmit("start")
            eventually(running.stopped)
            time.sleep(0.3)  # what is under way
        except Exception as error:  # snappi raises nothing finer
            if not isinstance(error.args[0], snappi.Error):
                raise
            result["errors"] = list(error.args[0].errors)
        # Null when there is no such port.
        result["port"] = running.ask("/linerate/generator/port,p1")
    return result


@pytest.mark.parametrize(
    ("location", "device"),
    [
        ("va", "net_af_packet0,iface=vb"),
        ("af_xdp:va", "net_af_packet0,iface=vb"),
        ("af_xdp:va,mode=copy", "net_af_xdp0,iface=vb"),
    ],
)
def test_frames_go_there_and_back(directory: Path, location: str, device: str) -> None:
    with inside(FAR), forwarder(directory, "reflect", [device]) as echo:
        echo.wait()
        result = send(directory, location, size=512)
    assert result["port"].get("obstacle") is None
    sent, far = result["port"]["accepted"], counters(FAR, "vb")
    assert sent == far["rx"]["packets"] == 1000 - result["port"]["lost_at_ingress"]
    # The kernel drops frames when nobody polls for a moment; all others come back.
    returned = counters(NEAR, "va")["rx"]["packets"]
    assert 0 < result["port"]["received"] <= returned == far["tx"]["packets"] <= sent
    assert result["port"]["foreign"] == 0


@pytest.mark.parametrize(
    ("change", "size", "what"),
    [
        ((FAR, "vb", "down"), 64, "va: its peer vb in another namespace is down: every frame"),
        pytest.param((NEAR, "va", "down"), 64, "va is down", marks=pytest.mark.second_tier),
        pytest.param(
            (FAR, "vb", "mtu", "1000"),
            1518,
            "va: its peer vb in another namespace: a frame of 1518",
            marks=pytest.mark.second_tier,
        ),
        pytest.param(
            (NEAR, "va", "mtu", "1000"),
            1518,
            "va: a frame of 1518 bytes is longer than its MTU of 1000",
            marks=pytest.mark.second_tier,
        ),
    ],
)
def test_a_start_into_the_void_is_refused(
    directory: Path, change: tuple[str, ...], size: int, what: str
) -> None:
    """By both drivers at once, for each waits some seconds for the link to come up."""
    namespace, *link = change
    ip("-n", namespace, "link", "set", *link)
    places = {"va": directory / "p", "af_xdp:va": directory / "x"}
    for place in places.values():
        place.mkdir()
    with ThreadPoolExecutor() as pool:
        asked = {
            location: pool.submit(send, place, location, size) for location, place in places.items()
        }
    for location, answer in asked.items():
        result = answer.result()
        (error,) = result["errors"]
        assert error.startswith(f'port "p1": {what}'), (location, error)
        assert result["port"]["obstacle"].startswith(what)
        assert result["port"]["link"] == ("up" if "mtu" in change else "down"), location
        assert result["port"]["attempted"] == 0
    assert counters(FAR, "vb")["rx"]["packets"] == 0


def test_a_link_that_goes_down_is_told_while_figures_are_asked_for(directory: Path) -> None:
    config = published("va")
    config.flows[0].duration.choice = "continuous"
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        running.api.set_config(config)
        running.transmit("start")
        for state in ("up", "down", "up"):
            ip("-n", FAR, "link", "set", "vb", state)
            # Asked for again and again, as by who waits for it.
            eventually(partial(has_link, running, state))
            found = running.port()
            assert (found["link"], "obstacle" in found) == (state, state == "down"), found
        running.transmit("stop")


@pytest.mark.parametrize("location", ["va", "af_xdp:va"])
def test_a_link_is_set_down_and_up_and_is_up_again_at_the_end(
    directory: Path, location: str
) -> None:
    def is_up() -> bool:
        return "UP" in json.loads(ip("-n", NEAR, "-j", "link", "show", "va"))[0]["flags"]

    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        running.api.set_config(published(location))
        for _ in range(2):
            set_link(running, "down")
            assert (is_up(), running.link()) == (False, "down")
        set_link(running, "up")
        eventually(lambda: running.link() == "up")
        assert is_up()
        # Frames pass as before.
        running.transmit("start")
        eventually(running.stopped)
        eventually(lambda: counters(FAR, "vb")["rx"]["packets"] >= 10)
        set_link(running, "down")
    assert is_up()


def set_link(running: Generator, state: str) -> None:
    asked = snappi.ControlState()
    asked.port.link.state, asked.port.link.port_names = state, ["p1"]
    running.api.set_control_state(asked)


def has_link(running: Generator, state: str) -> bool:
    return running.link() == state


def test_a_bridge_that_is_down_at_the_far_end_is_a_warning(directory: Path) -> None:
    ip("-n", FAR, "link", "add", "br0", "type", "bridge")
    ip("-n", FAR, "link", "set", "vb", "master", "br0")
    what = "va: its peer vb in another namespace belongs to br0, which is down"
    result = send(directory, "va")
    assert result["warnings"][0].startswith(f'port "p1": {what}')
    assert result["port"]["obstacle"].startswith(what)
    ip("-n", FAR, "link", "set", "br0", "up")
    assert send(directory, "va")["warnings"] == []


def test_af_xdp_without_all_queues_is_a_warning(directory: Path) -> None:
    ip("-n", NEAR, "link", "del", "va")
    queues = ("numrxqueues", "2", "numtxqueues", "2")
    near, far = ("va", "netns", NEAR, *queues), ("vb", "netns", FAR, *queues)
    ip("link", "add", *near, "type", "veth", "peer", "name", *far)
    ip("-n", NEAR, "link", "set", "va", "up")
    ip("-n", FAR, "link", "set", "vb", "up")
    (warning,) = send(directory, "af_xdp:va")["warnings"]
    assert warning.startswith('port "p1": va has 2 receive queues and the port takes 1')


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("af_xdp:va,mode=zero-copy", "ports[0].location: af_xdp: va cannot do without copying"),
        ("af_packet:va,queues=2", "ports[0].location: queues=2: 1 would be polled; start the"),
        ("tap:va", 'ports[0].location: there is a network interface "va" already'),
    ],
)
def test_what_cannot_be_opened_is_named(directory: Path, location: str, error: str) -> None:
    result = send(directory, location)
    assert result["errors"][0].startswith(error), result


def test_a_tap_port_makes_its_interface_and_takes_it_along(directory: Path) -> None:
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun here")
    result = send(directory, "tap:made")
    assert (result["port"]["accepted"], result["port"]["link"]) == (1000, "up")
    assert "made" not in ip("-n", NEAR, "link")


def packet_sockets(pid: int) -> list[int]:
    """The limits on unsent frames (SO_SNDBUF, bytes) of that process's packet sockets."""
    kernel = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        copy = kernel.syscall(SYS_PIDFD_GETFD, process, int(entry.name), 0)
        if copy < 0:  # it was closed meanwhile
            continue
        try:
            with socket.socket(fileno=copy) as held:
                # One that is bound to no interface is for promiscuous mode alone.
                if held.family == socket.AF_PACKET and held.getsockname()[0]:
                    found.append(held.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        except OSError:
            os.close(copy)
    os.close(process)
    return found


@pytest.mark.parametrize("waits", [False, True])
def test_only_a_flood_waits_for_the_far_end(directory: Path, waits: bool) -> None:
    """By default net_af_packet sleeps in poll when some 250 frames are on the link. A flood then
    leaves the CPU to the kernel's thread of the link.
    """
    with inside(NEAR), generator(directory, *["--flood"] * waits) as running:
        running.api.set_config(published("af_packet:va"))
        limits = packet_sockets(running.process.pid)
    assert limits
    # More than its 512 slots of 2048 bytes, with what the kernel needs for each.
    assert [limit > 8 << 20 for limit in limits] == [not waits] * len(limits)


@pytest.mark.parametrize("location", ["af_packet:va", "af_xdp:va"])
def test_an_interface_that_was_made_again_is_opened_again(directory: Path, location: str) -> None:
    """It goes while traffic runs, and another gets its name."""
    config = published(location)
    config.flows[0].duration.choice = "continuous"
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        running.api.set_config(config)
        running.transmit("start")
        eventually(lambda: running.flows()["f0"].frames_tx > 0)
        ip("link", "del", "va")
        assert running.port()["obstacle"].startswith("there is no interface va any more")
        ip("link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", FAR)
        ip("-n", FAR, "link", "set", "vb", "up")
        ip("link", "set", "va", "up")
        # The kernel is asked once a second.
        replaced = "va is not the interface that it was"
        eventually(lambda: running.port()["obstacle"].startswith(replaced))
        running.api.set_config(config)
        running.transmit("start")
        eventually(lambda: running.flows()["f0"].frames_tx > 1000)
        port = running.port()
        assert (port["link"], port.get("obstacle")) == ("up", None)
    # What was said to be sent has arrived.
    assert counters(FAR, "vb")["rx"]["packets"] > 1000


def sends(running: Generator, config: snappi.Config) -> None:
    """Sends a configuration's frames, of which most reach `vb`.

    A few buffers of a pool on huge pages are none for AF_XDP: what is sent from them is lost.
    """
    before = counters(FAR, "vb")["rx"]["packets"]
    running.api.set_config(config)
    assert running.transmit("start") == []
    eventually(running.stopped)
    sent = running.port()["accepted"]
    assert sent > 0, running.port()

    def counted() -> object:
        driver = [running.ask(f"/ethdev/stats,{port}") for port in ethernet_ports(running)]
        return before, counters(NEAR, "va"), counters(FAR, "vb"), driver, running.port()

    eventually(lambda: counters(FAR, "vb")["rx"]["packets"] - before >= sent / 2, counted)


def test_af_xdp_is_opened_again_and_again(directory: Path) -> None:
    """DPDK's driver keeps 2048 buffers of each queue's pool: that of a closed port has too few."""
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        for _ in range(3):
            config = published("af_xdp:va")
            flow = config.flows[0]
            flow.rate.pps, flow.duration.fixed_packets.packets = 5000, 200
            sends(running, config)
            running.api.set_config(snappi.Config())
        # What is left of those pools does for others.
        running.api.set_config(published("af_packet:va"))


def ethernet_ports(running: Generator) -> list[int]:
    return list(running.ask("/ethdev/list"))


def refusal(running: Generator, location: str) -> str:
    (error,) = errors(lambda: running.api.set_config(published(location)))
    return error


@pytest.mark.parametrize("location", ["af_xdp:lo", "vdev:net_af_xdp0,iface=lo"])
def test_af_xdp_is_refused_before_dpdk_makes_a_port(directory: Path, location: str) -> None:
    """Where no XDP program can run, DPDK's driver fails late, and could not be removed."""
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        for _ in range(40):
            error = refusal(running, location)
            if "rte_eth_rx_queue_setup" in error:
                pytest.skip("the kernel does not say which drivers run XDP programs")
            assert "af_xdp: the driver of lo runs no XDP programs" in error
        assert ethernet_ports(running) == []


def test_an_af_xdp_queue_of_another_program_is_named(directory: Path) -> None:
    """DPDK's driver would fail late, and its port could not be removed."""
    there = ["ip", "netns", "exec", NEAR]
    # libxdp puts a second XDP program beside the first with its help. Only this process sees it.
    with_bpf = [*there, "sh", "-c", 'mount -t bpf bpf /sys/fs/bpf; exec "$0" "$@"']
    other = directory / "other"
    other.mkdir()
    with inside(NEAR), generator(directory, before=with_bpf) as running:
        with generator(other, before=there) as first:
            first.api.set_config(published("af_xdp:va"))
            error = refusal(running, "af_xdp:va")
            if "rte_eth_rx_queue_setup" in error:
                pytest.skip("the kernel does not say which queues have AF_XDP sockets")
            assert "receive queue 0 already has an AF_XDP socket" in error
            assert ethernet_ports(running) == []
        # It has only just ended.
        running.api.set_config(published("af_xdp:va"))


def test_af_xdp_leaves_ports_to_others(directory: Path) -> None:
    """A queue that is not there fails, and each time a port of DPDK's stays: a few, not all 32."""
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        for number in range(4):
            device = f"vdev:net_af_xdp{number},iface=va,start_queue=1000"
            assert "rte_eth_rx_queue_setup" in refusal(running, device)
            # The same again takes no other port, and another of its name is not mistaken for it.
            assert len(ethernet_ports(running)) == number + 1
            if number == 0:
                assert "rte_eth_rx_queue_setup" in refusal(running, device)
                assert len(ethernet_ports(running)) == 1
                assert "another name" in refusal(running, "vdev:net_af_xdp0,iface=va")
        for location in ("af_xdp:va", "vdev:net_af_xdp7,iface=va", "vdev:net_af_xdp0,iface=va"):
            error = refusal(running, location)
            assert "AF_XDP is not opened any more" in error
            assert "restart the generator" in error
        assert len(ethernet_ports(running)) == 4
        for location in ("af_packet:va", "null", "ring:r"):
            running.api.set_config(published(location))


@pytest.mark.second_tier
def test_af_xdp_leaves_memory_to_others(directory: Path) -> None:
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        for _ in range(32):
            running.api.set_config(published("af_xdp:va"))
            running.api.set_config(snappi.Config())
        error = refusal(running, "af_xdp:va")
        assert "32 times" in error
        assert "restart the generator" in error
        assert ethernet_ports(running) == []
        for location in ("af_packet:va", "null", "ring:r"):
            running.api.set_config(published(location))
