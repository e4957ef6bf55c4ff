# SPDX-License-Identifier: BSD-3-Clause
"""Our own forwarders, built by `make build`."""

from __future__ import annotations

from pathlib import Path

from linerate.forwarders.base import L2FWD_BUFFER, DpdkForwarder, l2fwd_arguments, port_mask
from linerate.host.places import rust_binary
from linerate.links import Wire


class RustL2fwd(DpdkForwarder):
    """Our l2fwd: the C example's options; `burst` forwards without the per-packet TX buffer."""

    language = "Rust"

    def __init__(self, burst: bool) -> None:
        self.burst = burst
        self.name = "rust-l2fwd-burst" if burst else "rust-l2fwd"
        self.tx_buffer = None if burst else L2FWD_BUFFER

    def prepare(self) -> None:
        rust_binary("l2fwd")

    def program(self) -> Path:
        return rust_binary("l2fwd")

    def arguments(self, wire: Wire) -> list[str]:
        return l2fwd_arguments(wire.ports, burst=self.burst)


class Reflect(DpdkForwarder):
    """Our unbuffered echo: receive, swap MAC addresses, send."""

    name = "reflect"
    language = "Rust"

    def prepare(self) -> None:
        rust_binary("reflect")

    def program(self) -> Path:
        return rust_binary("reflect")

    def arguments(self, wire: Wire) -> list[str]:
        return ["-p", port_mask(wire.ports)]
