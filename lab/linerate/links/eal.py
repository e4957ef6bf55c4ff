# SPDX-License-Identifier: BSD-3-Clause
"""EAL options: the same for every program of a trial, so that memory is no difference between arms.
Only programs that need more memory get more.

With free hugepages `--in-memory` (nothing is left behind, even after SIGKILL); without, `--no-huge
--no-shconf`: the two exclude each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.host.errors import MachineError
from linerate.host.machine import hugepage_memory_mib
from linerate.links import Wire

MEMORY_MIB = 512
# Debian builds EAL for lcore numbers below this.
_MAX_LCORE = 128


@dataclass(frozen=True)
class Memory:
    """The source of EAL's memory."""

    hugepages: bool

    @classmethod
    def choose(cls, wanted: str = "auto") -> Memory:
        """Choose the source: `wanted` is `auto`, `yes` or `no`. Two programs run at a time."""
        free = hugepage_memory_mib()
        if wanted == "yes" and free < 2 * MEMORY_MIB:
            raise MachineError(
                f"--hugepages yes: {free} MiB of free hugepages, {2 * MEMORY_MIB} are needed",
                "as root: sysctl vm.nr_hugepages=640 (of 2 MiB), and mount hugetlbfs; "
                "or leave the option out",
            )
        return cls(wanted != "no" and free >= 2 * MEMORY_MIB)

    def options(self, mib: int = MEMORY_MIB) -> list[str]:
        """Return the options. `mib`: the limit without huge pages; with them EAL takes as it
        needs.
        """
        if self.hugepages:
            return ["--in-memory"]
        return ["--no-huge", "--no-shconf", "-m", str(mib)]


def lcores(*cpus: int) -> list[str]:
    """Return the options for one lcore on each of these CPUs."""
    if max(cpus) < _MAX_LCORE:
        return ["-l", ",".join(map(str, cpus))]
    return numbered_lcores(*cpus)


def numbered_lcores(*cpus: int) -> list[str]:
    """Return the same with lcores numbered 0, 1, ..."""
    return ["--lcores", ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(cpus))]


def idle_main(*cpus: int) -> list[str]:
    """Return the same with a main lcore on the first CPU, for programs whose main lcore never
    forwards.
    """
    first, *others = cpus
    return [
        "--lcores",
        ",".join([f"(0,1)@{first}", *(f"{n + 2}@{c}" for n, c in enumerate(others))]),
    ]


def options(
    lcores: list[str], memory: Memory, prefix: str, wire: Wire, *, mib: int = MEMORY_MIB
) -> list[str]:
    arguments = [*lcores, *memory.options(mib), "--file-prefix", prefix]
    # Without a list EAL would use every possible device.
    arguments += [word for address in wire.pci for word in ("-a", address)] or ["--no-pci"]
    arguments += wire.eal_options
    for vdev in wire.vdevs:
        arguments += ["--vdev", vdev]
    return arguments
