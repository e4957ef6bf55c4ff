# SPDX-License-Identifier: BSD-3-Clause
"""What a virtual machine as a tenant is asked for, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    """What was done since the tenant was ready; None: its load has nothing of the kind.

    `bogo_ops`: of stress-ng, counted when one of its slices of some seconds ends. `io_operations`,
    `io_bytes`: reads and writes that the guest's disk completed. `network_bytes`: in frames that
    the guest's interface sent and received, without FCS.
    """

    bogo_ops: int | None = None
    io_operations: int | None = None
    io_bytes: int | None = None
    network_bytes: int | None = None
