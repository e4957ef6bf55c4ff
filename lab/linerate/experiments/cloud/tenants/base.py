# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a tenant of any kind.

Lifecycle of a `Tenant`: made, `start`ed, `ready` when its load works, asked for its `work` any
number of times, `stop`ped; leaving its context stops it, too, and removes everything that was made
for it. One lab process, its main thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from linerate.host.errors import MissingError


class Kind(StrEnum):
    """The kind of a tenant: processes with namespaces of their own, or a virtual machine."""

    CONTAINER = "container"
    VM = "vm"


class Load(StrEnum):
    """The kinds of work; `mixed` is all three at once, `idle` none."""

    IDLE = "idle"
    CPU = "cpu"
    IO = "io"
    NETWORK = "network"
    MIXED = "mixed"

    @property
    def has_cpu(self) -> bool:
        return self in (Load.CPU, Load.MIXED)

    @property
    def has_io(self) -> bool:
        return self in (Load.IO, Load.MIXED)

    @property
    def has_network(self) -> bool:
        return self in (Load.NETWORK, Load.MIXED)


@dataclass(frozen=True)
class Work:
    """The work since the tenant was ready; None: its load has no such work, or it did not answer.

    `bogo_ops`: of stress-ng, counted when one of its slices ends, which have 200 in a container and
    25 in a guest. `io_operations`, `io_bytes`: reads and writes of the tenant's disk.
    `network_bytes`: in frames that the tenant's interface sent and received, without FCS.
    """

    bogo_ops: int | None = None
    io_operations: int | None = None
    io_bytes: int | None = None
    network_bytes: int | None = None


@dataclass(frozen=True)
class Limits:
    """The limits of the processes in a control group.

    `cpus`: the CPUs they may run on. `cpu_quota`: of one CPU, so that 0.5 is half of it; None: no
    quota. `cpu_weight`: against others on the same CPU, 1 to 10,000; the default is 100.
    `memory_mib`: swap included. `io_bytes_per_s`: for reads, and the same for writes, on the disk
    that `io_device` names by `MAJOR:MINOR`. `pids`: processes and threads. None: no limit.
    """

    cpus: tuple[int, ...]
    cpu_quota: float | None = None
    cpu_weight: int = 100
    memory_mib: int | None = None
    io_bytes_per_s: int | None = None
    io_device: str | None = None
    pids: int | None = None


class Tenant(ABC):
    """One neighbour of the forwarder."""

    kind: Kind
    load: Load

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def pids(self) -> Sequence[int]:
        """The processes of the host that belong to this tenant, for its CPU time."""

    @abstractmethod
    def start(self) -> None:
        """Start it; leaves nothing behind if that fails."""

    @abstractmethod
    def ready(self, timeout_s: float = ...) -> None:
        """Wait until its load works; raises `LinkError` if it does not within the time."""

    @abstractmethod
    def check(self) -> None:
        """Raise `ProcessError` if it is gone or its load failed."""

    @abstractmethod
    def work(self) -> Work:
        """Return its work since it was ready, asked now."""

    @abstractmethod
    def stop(self) -> None:
        """End it and remove everything made for it; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def need(self, missing: Sequence[str]) -> None:
        """Raise `MissingError` if something that it needs is missing."""
        if missing:
            raise MissingError(
                f"{self.name} cannot run: {'; '.join(missing)}", "make setup, as root"
            )
