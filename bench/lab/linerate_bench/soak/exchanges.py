# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges of rules, routes and XDP programs under traffic, each verified by what is forwarded.

Rules are those of l3fwd-graph, by telemetry; XDP programs those of xdp-fwd, by telemetry; routes
are the kernel's, by which `xdp-fwd --action fib` forwards. (l3fwd-graph does not exchange routes.)
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from linerate.host import netns
from linerate.host.netns import ip
from linerate.host.places import rust_binary
from linerate.links import flows, link
from linerate.telemetry.client import Telemetry, ask_when_known
from linerate_bench.soak.bench import TIMEOUT_S, Bench, Started, Until, started
from linerate_bench.soak.plan import Row
from linerate_bench.soak.programs import await_traffic
from linerate_bench.soak.records import Counted
from linerate_bench.soak.wires import Wires, heard, marked, packet_socket, traffic, wires

GOAL = 10_000
# The longest wait for a frame; a busy machine may keep a program waiting.
PATIENCE_S = 5.0
QUIET_S = 0.002
# In no frame: all that has come is read and let go.
NOBODYS = b"in no frame of anybody's"
Frames = tuple[int, ...]

# -- rules ----------------------------------------------------------------------------------------

HOSTS = (IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"))
_TO = IPv4Address("198.18.1.1")
_ANY = "0 : 65535 0 : 65535 0/0"


def rules_that_deny(host: IPv4Address) -> str:
    return f"@{host}/32 0.0.0.0/0 {_ANY}\nR0.0.0.0/0 0.0.0.0/0 {_ANY} 0\n"


def judged_rules(before: Frames, after: Frames, denied: int) -> str | None:
    """Judge new rules by the frames of each flow, sent when they came into force (`before`) and
    some time later (`after`). `denied`: the index of the flow that may send none.
    """
    if after[denied] != before[denied]:
        return f"{after[denied] - before[denied]} frames of the denied flow were sent"
    if any(after[flow] <= before[flow] for flow in range(len(after)) if flow != denied):
        return "no frame of the flow that may pass was sent"
    return None


def judged_books(packets: dict[str, int]) -> str | None:
    """Check the counts of l3fwd-graph's nodes: each received packet was sent or denied."""
    came, sent, denied = packets["rx"], packets["tx"], packets["denied"]
    if came != sent + denied:
        lost = came - sent - denied
        return f"{came} packets came, {sent} were sent and {denied} denied: {lost} lost"
    return None


def _nodes(telemetry: Telemetry) -> dict[str, int]:
    """Return the packets that each node of the worker counted."""
    return {each["node"]: int(each["packets"]) for each in telemetry.ask("/linerate/graph/nodes,1")}


def _exchange_rules(telemetry: Telemetry, running: Started, file: Path, denied: int) -> str | None:
    told = telemetry.ask(f"/linerate/rules/replace,ipv4,{file}")
    if "error" in told:
        return f"refused: {''.join(told['error'])}"

    def asked() -> bool:
        """Return True if the worker uses the new rules: their counters started at 0."""
        return all(telemetry.ask("/linerate/rules/hits,ipv4")["hits"])

    patience = running.patience(PATIENCE_S)
    while not asked():
        running.child.check()
        if patience.over:
            return f"new rules: not asked within {patience}"
        time.sleep(QUIET_S)

    def sent() -> Frames:
        return tuple(telemetry.ask("/net_nearfree/flows,net_nearfree0,0"))

    before = sent()
    patience = running.patience(PATIENCE_S)
    while True:
        time.sleep(QUIET_S)
        wrong = judged_rules(before, sent(), denied)
        if wrong is None or not wrong.startswith("no frame"):
            return wrong
        if patience.over:
            return f"{wrong} within {patience}"


def count_rules(bench: Bench, seconds: float, wanted: int) -> Counted:
    chosen = link("frames2")
    chosen.prepare()
    plugin = chosen.plugin()
    prefix = bench.run.new_prefix("rules")
    folder = bench.run.path / prefix
    folder.mkdir()
    files = []
    for host in HOSTS:
        files.append(folder / f"deny-{host}")
        files[-1].write_text(rules_that_deny(host))
    frames = folder / "frames.pcap"
    frames.write_bytes(flows.capture([flows.frame(flows.Flow(host, _TO, 1000)) for host in HOSTS]))
    devices = [f"net_nearfree{port},frames={frames},check=1" for port in range(2)]
    argv = [
        str(rust_binary("l3fwd-graph")), *bench.eal(prefix, *devices), "-d", str(plugin), "--",
        "-p", "3", "-P", "--config", "(0,0,1),(1,0,1)", "--rule_ipv4", str(files[0]),
    ]  # fmt: skip
    until = Until(seconds, wanted)
    with (
        until.going_on(),
        started(bench, argv, prefix) as running,
        running.connect() as telemetry,
    ):
        ask_when_known(telemetry, "/linerate/rules", TIMEOUT_S, running.child.check)
        await_traffic(running)
        while until.on:
            denied = (until.number + 1) % 2
            wrong = _exchange_rules(telemetry, running, files[denied], denied)
            until.faults += [wrong] if wrong else []
            until.number += 1
        lost = judged_books(_nodes(telemetry))
        until.faults += [lost] if lost else []
    return Counted(until.number, tuple(until.faults))


# -- XDP programs ---------------------------------------------------------------------------------

# The interface that receives a frame after f0, by XDP mode and action. XDP_TX of a native veth does
# not wake a peer that has no program.
PLACES = {
    "native": {"redirect": "r0", "pass": "f0"},
    "generic": {"redirect": "r0", "tx": "l0", "pass": "f0"},
}
# Counters of `/ethdev/xstats`: each received frame is in one of them.
_NEXT = (
    "tx_good_packets",
    "tx_refused",
    "tx_down",
    "tx_no_port",
    "rx_passed",
    "rx_unroutable",
    "rx_runt",
)


def judged_places(expected: str, found: dict[str, bool]) -> str | None:
    """Judge the interfaces (`l0`, `f0`, `r0`) that received the frame."""
    if found == {place: place == expected for place in found}:
        return None
    at = [place for place, here in found.items() if here]
    return f"a frame for {expected} was heard at {' and '.join(at) or 'none'}"


def judged_xdp_books(xstats: list[dict[str, Any]]) -> str | None:
    """Check that each received frame is in a counter; return what is wrong."""
    came = sum(int(each["rx_good_packets"]) for each in xstats)
    named = sum(int(each.get(name, 0)) for each in xstats for name in _NEXT)
    if came != named:
        return f"{came} frames came, {named} are in a counter: {came - named} lost"
    return None


@contextmanager
def _xdp(bench: Bench, made: Wires, *options: str) -> Iterator[tuple[Started, Telemetry]]:
    prefix = bench.run.new_prefix("xdp")
    argv = [
        str(rust_binary("xdp-fwd")), "--no-pci", "--file-prefix", prefix, "--vdev",
        "net_xdp0,iface=f0", "--vdev", "net_xdp1,iface=f1", "--", "-p", "3", "-T", "0", *options,
    ]  # fmt: skip
    with (
        started(bench, argv, prefix, made.middle) as running,
        running.connect() as telemetry,
    ):
        ask_when_known(telemetry, "/linerate/xdp", TIMEOUT_S, running.child.check)
        yield running, telemetry


def _books(telemetry: Telemetry) -> str | None:
    """Check the counters when no more frames arrive."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        lost = judged_xdp_books([telemetry.ask(f"/ethdev/xstats,{port}") for port in range(2)])
        if lost is None or time.monotonic() >= deadline:
            return lost
        time.sleep(0.05)


def count_programs(bench: Bench, seconds: float, wanted: int) -> Counted:
    mode = bench.source.choice(tuple(PLACES))
    actions = PLACES[mode]
    until = Until(seconds, wanted)
    with (
        until.going_on(),
        wires() as made,
        _xdp(bench, made, "--mode", mode) as (running, telemetry),
    ):
        with (
            traffic(made.left, "l0"),
            packet_socket(made.left, "l0") as left,
            packet_socket(made.middle, "f0") as stack,
            packet_socket(made.right, "r0") as right,
        ):
            heard_at = {"l0": left, "f0": stack, "r0": right}
            action = "redirect"
            while until.on:
                running.child.check()
                action = bench.source.choice([each for each in actions if each != action])
                told = telemetry.ask(f"/linerate/xdp/replace,{action}")
                if told.get("action") != action:
                    until.faults.append(f"{action}: refused: {told}")
                for by in heard_at.values():
                    heard(by, NOBODYS, 0)
                word = marked(until.number)
                left.send(word)
                wrong = judged_places(actions[action], _heard(heard_at, word[14:], actions[action]))
                until.faults += [f"{mode} {action}: {wrong}"] if wrong else []
                until.number += 1
        lost = _books(telemetry)
        until.faults += [lost] if lost else []
    return Counted(until.number, tuple(until.faults))


def _heard(at: dict[str, socket.socket], word: bytes, expected: str) -> dict[str, bool]:
    """Find where a frame with these bytes comes out: wait for it at the expected place, then look
    at the others.
    """
    there = heard(at[expected], word, PATIENCE_S) is not None
    return {
        place: there if place == expected else heard(by, word, 0) is not None
        for place, by in at.items()
    }


# -- routes ---------------------------------------------------------------------------------------

_GATEWAYS = {"10.2.0.2": bytes.fromhex("0211000000aa"), "10.2.0.3": bytes.fromhex("0211000000ab")}
_BEHIND = "10.6.0.0/16"


def judged_route(gateway: str, frame: bytes | None) -> str | None:
    """Judge a new route by the frame that came out; return what is wrong."""
    if frame is None:
        return f"nothing came out by the route over {gateway}"
    if frame[:6] != _GATEWAYS[gateway]:
        return f"a frame over {gateway} was sent to {frame[:6].hex(':')}"
    return None


def _routed(number: int, to: bytes) -> bytes:
    flow = flows.Flow(IPv4Address("10.1.0.2"), IPv4Address("10.6.0.1"), 1000)
    frame = flows.frame(flow)
    return to + marked(0)[6:12] + frame[12:-8] + number.to_bytes(8, "big")


def count_routes(bench: Bench, seconds: float, wanted: int) -> Counted:
    until = Until(seconds, wanted)
    with until.going_on(), wires() as made:
        for interface in ("all", "f0", "f1"):
            path = f"/proc/sys/net/ipv4/conf/{interface}/forwarding"
            netns.set_value(made.middle, path, "1")
        ip("addr", "add", "10.1.0.1/24", "dev", "f0", host=made.middle)
        ip("addr", "add", "10.2.0.1/24", "dev", "f1", host=made.middle)
        for gateway, mac in _GATEWAYS.items():
            ip("neigh", "add", gateway, "lladdr", mac.hex(":"), "dev", "f1", host=made.middle)
        to = made.mac("f0")
        with _xdp(bench, made, "--action", "fib") as (running, telemetry):
            with (
                traffic(made.left, "l0"),
                packet_socket(made.left, "l0") as left,
                packet_socket(made.right, "r0") as right,
            ):
                while until.on:
                    running.child.check()
                    gateway = list(_GATEWAYS)[until.number % 2]
                    ip("route", "replace", _BEHIND, "via", gateway, host=made.middle)
                    left.send(_routed(until.number, to))
                    frame = heard(right, until.number.to_bytes(8, "big"), PATIENCE_S)
                    wrong = judged_route(gateway, frame)
                    until.faults += [wrong] if wrong else []
                    until.number += 1
            lost = _books(telemetry)
            until.faults += [lost] if lost else []
    return Counted(until.number, tuple(until.faults))


def rows() -> list[Row]:
    counts = {"rules": count_rules, "routes": count_routes, "xdp-programs": count_programs}
    return [
        Row("exchanges", subject, "exchanges", GOAL, count) for subject, count in counts.items()
    ]
