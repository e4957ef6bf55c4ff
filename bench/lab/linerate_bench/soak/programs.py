# SPDX-License-Identifier: BSD-3-Clause
"""How each program is started for the soak: with ports that need nobody else, and traffic."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

from linerate.host.errors import LabError, ProcessError
from linerate.host.host import LOCAL, Host
from linerate.host.places import rust_binary
from linerate.host.process import pause
from linerate_bench.soak.bench import TIMEOUT_S, Bench, Started
from linerate_bench.soak.wires import Wires, traffic, wires

# Starting takes some tenths of a second: moments from before EAL is up to long after.
EARLY_S, LATE_S = 0.5, 0.2


@dataclass(frozen=True)
class Program:
    """`argv`: its command line, by its file prefix. `prefixed`: it acts like a program on EAL.
    `forwards`: port 0 has traffic. `on_interfaces`: of the kernel (`wires`). `after`: its exit code
    after a signal.
    """

    name: str
    argv: Callable[[Bench, str], list[str]]
    forwards: bool = True
    prefixed: bool = True
    on_interfaces: bool = False
    after: Callable[[signal.Signals], int] = lambda _: 0

    @property
    def goal(self) -> int:
        """Of starts and stops."""
        return 10_000 if self.name in ("l2fwd", "generator", "generator-server") else 1000


def _on_null(name: str, *options: str) -> Program:
    """Of DPDK, between two ports that make packets up."""

    def argv(bench: Bench, prefix: str) -> list[str]:
        devices = bench.eal(prefix, "net_null0", "net_null1")
        return [str(rust_binary(name)), *devices, "--", "-p", "3", *options]

    return Program(name, argv)


def _on_interfaces(name: str, driver: str, *options: str) -> Program:
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
    """Where it runs: with traffic, where it is one on interfaces."""
    if not program.on_interfaces:
        yield LOCAL, None
        return
    with wires() as made, traffic(made.left, "l0") if program.forwards else nullcontext():
        yield made.middle, made


def await_moment(bench: Bench, program: Program, running: Started) -> str:
    """Wait until some moment: before EAL is up, when telemetry begins, or under traffic. Raises
    `ProcessError` when the program ended before.
    """
    moment = bench.source.choice(("early", "socket", "traffic"))
    if moment == "early" or not program.prefixed:
        pause(bench.source.uniform(0, EARLY_S))
        return moment
    if moment == "traffic" and program.forwards:
        await_traffic(running)
    else:
        patience = running.patience(TIMEOUT_S)
        while not running.socket.exists():
            running.child.check()
            if patience.over:
                raise ProcessError(f"no telemetry within {patience}")
            time.sleep(0.001)
    pause(bench.source.uniform(0, LATE_S))
    return moment


def await_handler(running: Started) -> None:
    """Wait until the program handles SIGTERM: before, the signal ends it, and files of a killed one
    stay. Raises `ProcessError` when it does not in time.
    """
    patience = running.patience(TIMEOUT_S)
    while not running.hears(signal.SIGTERM):
        running.child.check()
        if patience.over:
            raise ProcessError(f"no handler of SIGTERM within {patience}")
        time.sleep(0.005)


def await_traffic(running: Started) -> None:
    """Until port 0 has received. Raises `ProcessError` when nothing came in time."""
    patience = running.patience(TIMEOUT_S)
    with running.connect() as telemetry:
        while True:
            running.child.check()
            with suppress(LabError):
                # Nobody has configured the port yet, or not attached it.
                if telemetry.ask("/ethdev/stats,0")["ipackets"] > 0:
                    return
            if patience.over:
                raise ProcessError(f"no traffic within {patience}")
            time.sleep(0.005)
