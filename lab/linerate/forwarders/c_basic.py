# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's smallest forwarders in C, from the distribution's package, unmodified: what comes in on
one port of a pair leaves by the other, in the burst that it came in.
"""

from __future__ import annotations

from pathlib import Path

from linerate.forwarders.base import DpdkForwarder
from linerate.host.builds import c_examples
from linerate.host.builds.c_examples import CExample
from linerate.links import Wire


class CBasic(DpdkForwarder):
    """skeleton, or rxtx_callbacks, the same with callbacks that read a clock for each packet."""

    language = "C"
    even_ports = True

    def __init__(self, example: str) -> None:
        self.name = f"c-{example.replace('_', '-')}"
        self._example = example
        self._built: CExample | None = None

    def prepare(self) -> None:
        self._built = c_examples.build(self._example)

    def program(self) -> Path:
        if self._built is None:
            self.prepare()
        assert self._built is not None
        return self._built.program

    def arguments(self, wire: Wire) -> list[str]:
        return []

    def build_facts(self) -> dict[str, str]:
        return dict(self._built.facts) if self._built else {}
