# SPDX-License-Identifier: BSD-3-Clause
"""Starts each program for the soak, on ports that need no other program, and under traffic."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

from linerate.host.errors import LabError
from linerate.host.host import LOCAL, Host
from linerate.host.places import rust_binary
from linerate.host.process import pause
from linerate_bench.soak.bench import Bench, Started
from linerate_bench.soak.wires import Wires, traffic, wires

# The longest random waits after a start. EAL needs some tenths of a second, so a moment may be
# before EAL is up or long after.
EARLY_S, LATE_S = 0.5, 0.2


@dataclass(frozen=True)
class Program:
    """A program under test.

    `argv` returns its command line for a file prefix. `forwards`: its port 0 receives traffic.
    `prefixed`: it has a telemetry socket, as programs on EAL do. `on_interfaces`: its ports are
    interfaces of the kernel (`wires`). `after` returns its exit code after a signal.
    """

    name: str
    argv: Callable[[Bench, str], list[str]]
    forwards: bool = True
    prefixed: bool = True
    on_interfaces: bool = False
    after: Callable[[signal.Signals], int] = lambda _: 0

    @property
    def goal(self) -> int:
        """The number of starts and stops to count."""
        return 10_000 if self.name in ("l2fwd", "generator", "generator-server") else 1000


def _on_null(name: str, *options: str) -> Program:
    """A DPDK program between two net_null ports, which make packets up."""

    def argv(bench: Bench, prefix: str) -> list[str]:
        devices = bench.eal(prefix, "net_null0", "net_null1")
        return [str(rust_binary(name)), *devices, "--", "-p", "3", *options]

    return Program(name, argv)


def _on_interfaces(name: str, driver: str, *options: str) -> Program:
    """A program between the interfaces f0 and f1 of `wires`."""

    def argv(bench: Bench, prefix: str) -> list[str]:
        return [
            str(rust_binary(name)), "-l", str(bench.cpu), "--no-pci", "--no-huge", "-m", "512",
            "--file-prefix", prefix, "--vdev", f"{driver}0,iface=f0", "--vdev",
            f"{driver}1,iface=f1", "--", "-p", "3", "-q", "4", "-T", "0", *options,
        ]  # fmt: skip

    return Program(name, argv, on_interfaces=True)


def _generator(bench: Bench, prefix: str) -> list[str]:
    return [
        str(rust_binary("generator")), *bench.eal(prefix, lcores=1), "--", "--port", "p=ring:r",
        "--rate", "10kpps", "--duration", "continuous",
    ]  # fmt: skip


def _server(bench: Bench, prefix: str) -> list[str]:
    eal = bench.eal(prefix, lcores=1)
    return [str(rust_binary("generator")), *eal, "--", "--otg-listen", "127.0.0.1:0"]


def _ping(bench: Bench, prefix: str) -> list[str]:
    return [
        str(rust_binary("af-packet-ping")), "--iface", "f0", "--count", "1000000", "--interval",
        "1000", "--deadline", "1000",
    ]  # fmt: skip


PROGRAMS = (
    _on_null("l2fwd", "-q", "2", "-T", "0"),
    Program("generator", _generator, after=lambda number: 128 + number),
    Program("generator-server", _server, forwards=False),
    _on_null("reflect"),
    _on_null("impair", "-T", "0", "--delay", "100", "--reorder", "10"),
    _on_null("l3fwd-graph", "--config", "(0,0,1),(1,0,1)"),
    _on_interfaces("af-packet-fwd", "net_af_packet", "-P"),
    _on_interfaces("af-xdp-fwd", "net_af_xdp"),
    _on_interfaces("xdp-fwd", "net_xdp"),
    Program("af-packet-ping", _ping, forwards=False, prefixed=False, on_interfaces=True),
)


@contextmanager
def surroundings(program: Program) -> Iterator[tuple[Host, Wires | None]]:
    """Yield the host that the program runs on, and the interfaces that it uses; None: it uses none.
    A program that forwards between them receives traffic on f0.
    """
    if not program.on_interfaces:
        yield LOCAL, None
        return
    with wires() as made, traffic(made.left, "l0") if program.forwards else nullcontext():
        yield made.middle, made


def await_moment(bench: Bench, program: Program, running: Started) -> str:
    """Wait for a random moment: before EAL is up, when telemetry begins, or under traffic. Raises
    `ProcessError` if it does not come in time, or if the program ended.
    """
    moment = bench.source.choice(("early", "socket", "traffic"))
    if moment == "early" or not program.prefixed:
        pause(bench.source.uniform(0, EARLY_S))
        return moment
    if moment == "traffic" and program.forwards:
        await_traffic(running)
    else:
        running.wait_until(running.socket.exists, "no telemetry")
    pause(bench.source.uniform(0, LATE_S))
    return moment


def await_handler(running: Started) -> None:
    """Wait until the program handles SIGTERM: before, the signal ends it, and files of a killed one
    stay. Raises `ProcessError` if it does not in time.
    """
    running.wait_until(lambda: running.hears(signal.SIGTERM), "no handler of SIGTERM")


def await_traffic(running: Started) -> None:
    """Wait until port 0 has received packets. Raises `ProcessError` if it has not in time, or if
    the program ended.
    """
    with running.connect() as telemetry:

        def received() -> bool:
            # Until the port is attached and configured there is no answer.
            with suppress(LabError):
                return int(telemetry.ask("/ethdev/stats,0")["ipackets"]) > 0
            return False

        running.wait_until(received, "no traffic")
