# SPDX-License-Identifier: BSD-3-Clause
"""Ports at interfaces of the kernel, and what keeps frames from passing there.

Each test has two network namespaces of its own with a veth between them; it needs root and is
skipped where none can be made. Frames that the kernel drops are not all counted: what arrived is
compared with the interfaces' own counters.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import BIN, TIMEOUT_S, environment

A, B = (f"lrt{os.getpid()}{end}" for end in "ab")


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


@pytest.fixture
def veth() -> Iterator[None]:
    """`va` in one namespace, `vb` in the other, both up, without IPv6's own frames."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    try:
        probe = subprocess.run(
            ["ip", "netns", "add", A], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no ip here: install iproute2")
    if probe.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {probe.stderr.strip()}")
    try:
        ip("netns", "add", B)
        ip("link", "add", "va", "netns", A, "type", "veth", "peer", "name", "vb", "netns", B)
        for namespace, interface in ((A, "va"), (B, "vb")):
            off = f"net.ipv6.conf.{interface}.disable_ipv6=1"
            ip("netns", "exec", namespace, "sysctl", "-qw", off)
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", interface, "up")
        yield
    finally:
        for namespace in (A, B):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


# Runs in the namespace: configures one flow, starts it, and prints what came of it.
SCRIPT = """
import json, sys, tempfile, time
from pathlib import Path
import harness as t

location, size = sys.argv[1], int(sys.argv[2])
with tempfile.TemporaryDirectory(prefix="otg") as path, t.generator(Path(path)) as running:
    api, result = running.api, {}
    config = t.published(location)
    flow = config.flows[0]
    flow.size.fixed, flow.rate.pps, flow.duration.fixed_packets.packets = size, 5000, 1000
    try:
        api.set_config(config)
        control = t.snappi.ControlState()
        control.choice = control.TRAFFIC
        control.traffic.choice = control.traffic.FLOW_TRANSMIT
        control.traffic.flow_transmit.state = "start"
        result["warnings"] = list(api.set_control_state(control).warnings)
        t.eventually(lambda: t.stopped(api))
        time.sleep(0.3)  # what is under way
    except Exception as error:
        if not isinstance(error.args[0], t.snappi.Error):
            raise
        result["errors"] = list(error.args[0].errors)
    result["port"] = running.ask("/linerate/generator/port,p1")
    print(json.dumps(result))
"""


def in_namespace(script: str, *arguments: str) -> str:
    """The last line that a script prints, run where `va` is."""
    done = subprocess.run(
        ["ip", "netns", "exec", A, sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "LINERATE_BIN": str(BIN)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def send(location: str, size: int = 64) -> dict[str, Any]:
    """1000 frames from that port."""
    return dict(json.loads(in_namespace(SCRIPT, location, str(size))))


def counters(namespace: str, interface: str) -> dict[str, Any]:
    (found,) = json.loads(ip("-n", namespace, "-s", "-j", "link", "show", "dev", interface))
    return dict(found["stats64"])


@contextmanager
def reflecting(device: str, directory: Path) -> Iterator[None]:
    """Our echo at the far end."""
    command = [
        "ip", "netns", "exec", B, str(BIN / "reflect"), "-l", "0", "--no-pci", "--no-huge",
        "--no-shconf", "-m", "256", "--file-prefix", B, "--vdev", device,
    ]  # fmt: skip
    log = directory / "reflect.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment(directory)
        )
    try:
        end = time.monotonic() + TIMEOUT_S
        while "Port 0 Link up" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


@pytest.mark.parametrize(
    ("location", "device"),
    [
        ("va", "net_af_packet0,iface=vb"),
        ("af_xdp:va", "net_af_packet0,iface=vb"),
        ("af_xdp:va,mode=copy", "net_af_xdp0,iface=vb"),
    ],
)
def test_frames_go_there_and_back(veth: None, tmp_path: Path, location: str, device: str) -> None:
    with reflecting(device, tmp_path):
        result = send(location, size=512)
    assert result["port"].get("obstacle") is None
    sent, far = result["port"]["accepted"], counters(B, "vb")
    assert sent == far["rx"]["packets"] == 1000 - result["port"]["lost_at_ingress"]
    # The kernel drops frames when nobody polls for a moment; all others come back.
    returned = counters(A, "va")["rx"]["packets"]
    assert 0 < result["port"]["received"] <= returned == far["tx"]["packets"] <= sent
    assert result["port"]["foreign"] == 0


@pytest.mark.parametrize("location", ["va", "af_xdp:va"])
@pytest.mark.parametrize(
    ("change", "size", "what"),
    [
        ((B, "vb", "down"), 64, "va: its peer vb in another namespace is down: every frame"),
        ((A, "va", "down"), 64, "va is down"),
        ((B, "vb", "mtu", "1000"), 1518, "va: its peer vb in another namespace: a frame of 1518"),
        (
            (A, "va", "mtu", "1000"),
            1518,
            "va: a frame of 1518 bytes is longer than its MTU of 1000",
        ),
    ],
)
def test_a_start_into_the_void_is_refused(
    veth: None, location: str, change: tuple[str, ...], size: int, what: str
) -> None:
    namespace, *link = change
    ip("-n", namespace, "link", "set", *link)
    result = send(location, size)
    (error,) = result["errors"]
    assert error.startswith(f'port "p1": {what}'), error
    assert result["port"]["obstacle"].startswith(what)
    assert result["port"]["link"] == ("up" if "mtu" in change else "down")
    assert (result["port"]["attempted"], counters(B, "vb")["rx"]["packets"]) == (0, 0)


def test_a_bridge_that_is_down_at_the_far_end_is_a_warning(veth: None) -> None:
    ip("-n", B, "link", "add", "br0", "type", "bridge")
    ip("-n", B, "link", "set", "vb", "master", "br0")
    what = "va: its peer vb in another namespace belongs to br0, which is down"
    result = send("va")
    assert result["warnings"][0].startswith(f'port "p1": {what}')
    assert result["port"]["obstacle"].startswith(what)
    ip("-n", B, "link", "set", "br0", "up")
    assert send("va")["warnings"] == []


def test_af_xdp_without_all_queues_is_a_warning(veth: None) -> None:
    ip("-n", A, "link", "del", "va")
    queues = ("numrxqueues", "2", "numtxqueues", "2")
    ip("link", "add", "va", "netns", A, *queues, "type", "veth", "peer", "name", "vb", "netns", B,
       *queues)  # fmt: skip
    ip("-n", A, "link", "set", "va", "up")
    ip("-n", B, "link", "set", "vb", "up")
    (warning,) = send("af_xdp:va")["warnings"]
    assert warning.startswith('port "p1": va has 2 receive queues and the port takes 1')


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("af_xdp:va,mode=zero-copy", "ports[0].location: af_xdp: va cannot do without copying"),
        ("af_packet:va,queues=2", "ports[0].location: queues=2: 1 would be polled; start the"),
        ("tap:va", 'ports[0].location: there is a network interface "va" already'),
    ],
)
def test_what_cannot_be_opened_is_named(veth: None, location: str, error: str) -> None:
    result = send(location)
    assert result["errors"][0].startswith(error), result


def test_a_tap_port_makes_its_interface_and_takes_it_along(veth: None) -> None:
    if not Path("/dev/net/tun").exists():
        pytest.skip("there is no /dev/net/tun here")
    result = send("tap:made")
    assert (result["port"]["accepted"], result["port"]["link"]) == (1000, "up")
    assert "made" not in ip("-n", A, "link")


TOO_LONG = """
import sys, tempfile
from pathlib import Path
import harness as t

with tempfile.TemporaryDirectory(prefix="otg") as path:
    with t.generator(Path(path), "--max-frame", "9216") as running:
        print(*t.errors(lambda: running.api.set_config(t.published(sys.argv[1]))))
"""


@pytest.mark.usefixtures("veth")
def test_what_a_driver_takes_at_most_is_told() -> None:
    wanted = (
        "frames of at most 1518 bytes; start the generator with a smaller --max-frame than 9216"
    )
    assert wanted in in_namespace(TOO_LONG, "af_packet:va")


# Runs in the namespace of `va`: the interface goes while traffic runs, and another gets its name.
REPLACED = """
import json, subprocess, sys, tempfile
from pathlib import Path
import harness as t

location, other = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="otg") as path, t.generator(Path(path)) as running:
    api = running.api
    config = t.published(location)
    config.flows[0].duration.choice = "continuous"
    api.set_config(config)
    t.transmit(api, "start")
    sent = lambda: t.flow_metrics(api)["f0"].frames_tx
    t.eventually(lambda: sent() > 0)
    subprocess.run(["ip", "link", "del", "va"], check=True)
    gone = running.ask("/linerate/generator/port,p1")["obstacle"]
    add = ["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", other]
    subprocess.run(add, check=True)
    subprocess.run(["ip", "-n", other, "link", "set", "vb", "up"], check=True)
    subprocess.run(["ip", "link", "set", "va", "up"], check=True)
    replaced = running.ask("/linerate/generator/port,p1")["obstacle"]
    api.set_config(config)
    t.transmit(api, "start")
    t.eventually(lambda: sent() > 1000)
    port = running.ask("/linerate/generator/port,p1")
    print(json.dumps([gone, replaced, port["link"], port.get("obstacle")]))
"""


@pytest.mark.usefixtures("veth")
@pytest.mark.parametrize("location", ["af_packet:va", "af_xdp:va"])
def test_an_interface_that_was_made_again_is_opened_again(location: str) -> None:
    done = in_namespace(REPLACED, location, B)
    gone, replaced, link, obstacle = json.loads(done)
    assert gone.startswith("there is no interface va any more")
    assert replaced.startswith("va is not the interface that it was")
    assert (link, obstacle) == ("up", None)
    # What was said to be sent has arrived.
    assert counters(B, "vb")["rx"]["packets"] > 1000
