# SPDX-License-Identifier: BSD-3-Clause
"""The peers of `bench/`: a plain C forwarder, and l2fwd's loop on raw pointers."""

from __future__ import annotations

from pathlib import Path

from linerate.errors import MissingError
from linerate.forwarders.base import DpdkForwarder, port_mask, project_root, rust_binary


class _L2fwdOptions(DpdkForwarder):
    burst: bool

    def arguments(self, ports: int) -> list[str]:
        options = ["-p", port_mask(ports), "-q", str(ports), "-T", "0"]
        return [*options, "--burst-forwarding"] if self.burst else options


class Plain(_L2fwdOptions):
    """Our forwarder in C with its state in locals: C without l2fwd's aliasing."""

    language = "C"

    def __init__(self, burst: bool) -> None:
        self.burst = burst
        self.name = "plain-c-burst" if burst else "plain-c"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        from linerate.benchmarks import build  # noqa: PLC0415 - imports this package

        return build("plain", "plain", project_root() / "build" / "plain")


class Raw(_L2fwdOptions):
    """l2fwd with its packet path on raw pointers: Rust without the safe API."""

    language = "Rust"
    has_polling = True

    def __init__(self, burst: bool) -> None:
        self.burst = burst
        self.name = "raw-rust-burst" if burst else "raw-rust"

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        try:
            return rust_binary("raw-l2fwd")
        except MissingError as error:
            raise MissingError(str(error.message), "scripts/cargo build --release") from error
