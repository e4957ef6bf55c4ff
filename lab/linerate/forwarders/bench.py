# SPDX-License-Identifier: BSD-3-Clause
"""The peers of `bench/`: a plain C forwarder, and l2fwd's loop on raw pointers."""

from __future__ import annotations

from pathlib import Path

from linerate.forwarders.base import DpdkForwarder, l2fwd_arguments
from linerate.host.builds.bench_programs import bench_program
from linerate.host.places import rust_binary
from linerate.links import Wire


class _L2fwdOptions(DpdkForwarder):
    burst: bool

    def arguments(self, wire: Wire) -> list[str]:
        return l2fwd_arguments(wire.ports, burst=self.burst)


class Plain(_L2fwdOptions):
    """Our forwarder in C with its state in locals: C without l2fwd's aliasing."""

    language = "C"

    def __init__(self, burst: bool) -> None:
        self.burst = burst
        self.name = "plain-c-burst" if burst else "plain-c"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        return bench_program("plain", "plain")


class Slowed(DpdkForwarder):
    """The plain forwarder, slower by a known share: it spins for that share of its time."""

    language = "C"

    def __init__(self, percent: int) -> None:
        self.percent = percent
        self.name = f"slowed-{percent}"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        return bench_program("plain", "slowed")

    def arguments(self, wire: Wire) -> list[str]:
        return [*l2fwd_arguments(wire.ports, burst=True), "--slower", str(self.percent)]


class Raw(_L2fwdOptions):
    """l2fwd with its packet path on raw pointers: Rust without the safe API."""

    language = "Rust"

    def __init__(self, burst: bool) -> None:
        self.burst = burst
        self.name = "raw-rust-burst" if burst else "raw-rust"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        return rust_binary("raw-l2fwd")
