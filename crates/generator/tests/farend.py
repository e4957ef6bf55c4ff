# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders as tests run them at a link's far end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snappi
from harness import (
    BIN,
    CPUS,
    MEMORY,
    TIMEOUT_S,
    Generator,
    ask_telemetry,
    environment,
    eventually,
)


@dataclass
class Forwarder:
    """A running forwarder."""

    process: subprocess.Popen[bytes]
    devices: Sequence[str]
    telemetry: Path
    log: Path

    def ask(self, command: str) -> Any:
        assert self.process.poll() is None, self.log.read_text()
        return ask_telemetry(self.telemetry, command)

    def packets(self) -> tuple[int, int]:
        """Frames that its first port has received and sent."""
        stats = self.ask("/ethdev/stats,0")
        return stats["ipackets"], stats["opackets"]

    def wait(self) -> None:
        """Until it has polled every queue, and so given each link buffers for frames."""

        def polls() -> bool:
            try:
                # Null until the command is known.
                queues = self.ask("/linerate/polling") or []
            except OSError:
                return False
            return len(queues) == len(self.devices) and all(each["polls"] > 1 for each in queues)

        eventually(polls, self.log.read_text)

    def wait_for_ports(self) -> None:
        """Until its ports are started. Who finds a memif server before may never get a link."""
        eventually(lambda: "Checking link status" in self.log.read_text(), self.log.read_text)

    def stop(self) -> None:
        """Ends it as a user does."""
        assert self.process.poll() is None, self.log.read_text()
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(TIMEOUT_S) == 0, self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)


def part(running: Generator, far: Forwarder) -> None:
    """Takes a link apart.

    When one end goes, DPDK 22.11's memif driver unmaps the rings in the other one, whether they are
    being polled at that moment or not, and what was polling then dies. So neither end may poll: the
    forwarder stands still while the generator closes its port. (On a vhost-user link it must not,
    for there the generator's end asks it.)
    """
    memif = any(device.startswith("net_memif") for device in far.devices)
    if memif:
        far.process.send_signal(signal.SIGSTOP)
    running.api.set_config(snappi.Config())
    # A vhost-user server is to take its socket along.
    far.process.send_signal(signal.SIGKILL if memif else signal.SIGTERM)
    far.process.wait(TIMEOUT_S)


@contextmanager
def forwarder(
    directory: Path,
    program: str,
    devices: Sequence[str],
    options: Sequence[str] = (),
    lcores: int = 1,
) -> Iterator[Forwarder]:
    """One of our forwarders; all its lcores on the last CPU, for generators take the first.

    It is killed at the end: take its link apart before, by `part`.
    """
    name = f"{program}-{time.monotonic_ns()}"
    log = directory / f"{name}.log"
    places = ",".join(f"{lcore}@{CPUS[-1]}" for lcore in range(lcores))
    command = [str(BIN / program), "--lcores", places, *MEMORY, "--file-prefix", name]
    for device in devices:
        command += ["--vdev", device]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--", *options], stdout=output, stderr=output, env=environment(directory)
        )
    try:
        telemetry = directory / "dpdk" / name / "dpdk_telemetry.v2"
        yield Forwarder(process, devices, telemetry, log)
    finally:
        process.kill()
        process.wait()


def memif(socket: Path, port: int = 0, link: int = 0) -> str:
    """A forwarder's end of one of the links on a socket; it chooses the size of the rings, 4096."""
    return f"net_memif{port},role=client,id={link},socket={socket},socket-abstract=no,rsize=12"
