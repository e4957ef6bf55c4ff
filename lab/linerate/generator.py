# SPDX-License-Identifier: BSD-3-Clause
"""Our generator as a process: started for a block, driven over OTG, read over telemetry.

OTG has no figures for lateness, back-pressure and loss at the link's ingress; those come from
`/linerate/generator/port,NAME` (reference: the project's telemetry page). With a foreign OTG
generator they are absent.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from linerate import eal
from linerate.books import Sent
from linerate.eal import Memory
from linerate.errors import GeneratorError
from linerate.forwarders import rust_binary
from linerate.otg import OtgClient, Traffic
from linerate.process import Child, Command, RunDirectory
from linerate.telemetry import Telemetry, connect, socket_path

START_TIMEOUT_S = 15.0
SETTLE_TIMEOUT_S = 2.0


class Generator:
    """One generator process; use it as a context manager."""

    def __init__(self, run: RunDirectory, cpu: int, memory: Memory, *, flood: bool) -> None:
        self.flood = flood
        prefix = run.new_prefix("generator")
        argv = [
            str(rust_binary("generator")),
            *eal.options(eal.one_core(cpu), memory, prefix, []),
            "--",
            "--otg-listen",
            "127.0.0.1:0",
            *(["--flood"] if flood else []),
        ]
        self.child = Child(Command("generator", tuple(argv), (cpu,)), run)
        self._client: OtgClient | None = None
        self._telemetry: Telemetry | None = None
        try:
            self._client = OtgClient(self._await_url())
            path = socket_path(run.path, prefix)
            self._telemetry = connect(path, START_TIMEOUT_S, self.child.check)
        except BaseException:
            self.close()
            raise
        self._ports = 0

    def _await_url(self) -> str:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            found = re.search(r"^OTG on (https?://\S+)\s*\n", self.child.output(), re.MULTILINE)
            if found:
                return found.group(1)
            self.child.check()
            if time.monotonic() >= deadline:
                raise GeneratorError(f"the generator did not listen within {START_TIMEOUT_S:g} s")
            time.sleep(0.005)

    @property
    def client(self) -> OtgClient:
        assert self._client is not None
        return self._client

    @property
    def telemetry(self) -> Telemetry:
        assert self._telemetry is not None
        return self._telemetry

    def configure(self, traffic: Traffic) -> None:
        self._ports = len(traffic.locations)
        self.client.configure(traffic)

    def links_up(self) -> bool:
        return all(port.get("link", "up") in ("up", "UP", 1) for port in self._port_figures())

    def _port_figures(self) -> list[dict[str, Any]]:
        return [
            self.telemetry.ask(f"/linerate/generator/port,p{index}") for index in range(self._ports)
        ]

    def tsc_hz(self) -> int:
        return int(self.telemetry.ask("/linerate/clock")["tsc_hz"])

    def sent(self) -> tuple[Sent, float | None]:
        """Figures over all ports, and how long the longest port sent, in seconds."""
        ports = self._port_figures()

        def total(name: str) -> int | None:
            values = [port.get(name) for port in ports]
            return None if None in values else sum(int(value or 0) for value in values)

        attempted, accepted, received = total("attempted"), total("accepted"), total("received")
        if attempted is None or accepted is None or received is None:
            raise GeneratorError("the generator's telemetry lacks attempted, accepted or received")
        errors = [float(port["pacing_error_ppm"]) for port in ports if "pacing_error_ppm" in port]
        durations = [int(port["tx_duration_tsc"]) for port in ports if "tx_duration_tsc" in port]
        sent = Sent(
            attempted=attempted,
            accepted=accepted,
            received=received,
            intended=total("intended"),
            lost_at_ingress=total("lost_at_ingress"),
            refused=total("refused"),
            late=total("late"),
            pacing_error_ppm=_largest(errors) if not self.flood else None,
        )
        longest = max(durations, default=0)
        return sent, longest / self.tsc_hz() if longest else None

    def close(self) -> None:
        if self._telemetry:
            self._telemetry.close()
        if self._client:
            self._client.close()
        self.child.stop()

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _largest(errors: list[float]) -> float | None:
    return max(errors, key=abs) if errors else None


def socket_files(directory: Path) -> list[Path]:
    """Link sockets that a killed generator left behind."""
    return sorted(directory.glob("memif*.sock"))
