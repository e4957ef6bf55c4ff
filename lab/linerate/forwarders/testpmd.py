# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's testpmd in io mode, as the distribution packages it: receive and send, nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from linerate import eal
from linerate.errors import MissingError
from linerate.forwarders.base import DpdkForwarder


class TestpmdIo(DpdkForwarder):
    """A reference peer for the self-test."""

    __test__ = False  # not a pytest class
    name = "testpmd-io"
    language = "C"
    # It ends at end-of-file on its standard input.
    hold_stdin = True

    def prepare(self) -> None:
        self.program()

    def program(self) -> Path:
        found = shutil.which("dpdk-testpmd")
        if found is None:
            raise MissingError("dpdk-testpmd is not installed", "make setup (Debian: dpdk)")
        return Path(found)

    def lcores(self, cpu: int) -> list[str]:
        # The main lcore of testpmd does not forward: it sleeps on standard input.
        return eal.two_threads(cpu)

    def arguments(self, ports: int) -> list[str]:
        return [
            "--forward-mode=io",
            "--auto-start",
            "--nb-cores=1",
            f"--port-topology={'loop' if ports == 1 else 'paired'}",
            "--total-num-mbufs=16384",
            "--no-flush-rx",
        ]
