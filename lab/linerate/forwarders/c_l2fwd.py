# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's l2fwd example in C, from the distribution's package, unmodified."""

from __future__ import annotations

from pathlib import Path

from linerate.forwarders.base import L2FWD_BUFFER, DpdkForwarder, l2fwd_arguments
from linerate.host.builds import c_examples, compilers
from linerate.host.builds.c_examples import CExample
from linerate.host.errors import MissingError
from linerate.links import Wire


class CL2fwd(DpdkForwarder):
    """The baseline of every comparison.

    `clang`: built by clang instead of the system's compiler. `native`: with -march=native instead
    of the -march of the distribution's DPDK.
    """

    language = "C"
    tx_buffer = L2FWD_BUFFER

    def __init__(self, *, clang: bool = False, native: bool = False) -> None:
        self.name = "-".join(["c-l2fwd", *["clang"] * clang, *["native"] * native])
        self._clang = clang
        self._native = native
        self._built: CExample | None = None

    def prepare(self) -> None:
        compiler = None
        if self._clang and (compiler := compilers.clang()) is None:
            raise MissingError(
                "clang is missing, which one of the C l2fwd is built with", "make bench"
            )
        self._built = c_examples.build("l2fwd", compiler, native=self._native)

    def program(self) -> Path:
        if self._built is None:
            self.prepare()
        assert self._built is not None
        return self._built.program

    def arguments(self, wire: Wire) -> list[str]:
        return l2fwd_arguments(wire.ports)

    def build_facts(self) -> dict[str, str]:
        return dict(self._built.facts) if self._built else {}
