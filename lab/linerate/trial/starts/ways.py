# SPDX-License-Identifier: BSD-3-Clause
"""Choose how programs that are started together are compared."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from linerate.forwarders import Forwarder
from linerate.host.errors import TrialError
from linerate.host.machine import available_memory_mib, hugepage_memory_mib
from linerate.links import Link
from linerate.links.eal import MEMORY_MIB, Memory
from linerate.trial.starts.clocks import Per, per_of
from linerate.trial.starts.standing import standing
from linerate.trial.trial import Bench

Method = Literal["standing", "turns"]
# The most huge pages of EAL and the pools of a usual program; many use a tenth.
HUGE_MIB = 256
# The margin for the variation between starts.
_SPARE = 1.25
# The memory for a capture file's bytes, the place of each frame, and during reading a table of
# flows.
_FRAMES_OVER_FILE = 2


def method_of(link: Link, programs: Sequence[Forwarder]) -> tuple[Method, Per]:
    """Choose the method for programs on a link.

    Standing: one polling lcore each, on a link whose driver always delivers. By the CPU time of the
    process: programs whose work is all in it.
    """
    kernel = link.interfaces or link.kernel_generator or link.makes_interfaces
    own = not kernel and all(
        each.definition.uses_dpdk and not each.interfaces_only and each.has_telemetry
        for each in programs
    )
    single = all(each.definition.cpus == 1 for each in programs)
    method: Method = "standing" if own and single and not link.has_generator else "turns"
    return method, per_of(link, own=own)


def countable(programs: Sequence[Forwarder]) -> bool:
    """Return True if the probe can count the busy time of these prepared programs."""
    return all(each.has_telemetry and each.takes_probe for each in programs)


def room(
    memory: Memory, programs: Sequence[Forwarder], link: Link, files: Sequence[Path] = ()
) -> int:
    """Return how many programs like these fit into free memory, each with a generator if the link
    has one, and each with the frames of these capture files.
    """
    generators = 1 if link.has_generator else 0
    if memory.hugepages:
        huge = hugepage_memory_mib() // (HUGE_MIB * (1 + generators))
        return min(huge, frames_room(files))
    largest = max(program.definition.memory_mib for program in programs)
    each = largest + generators * MEMORY_MIB + frames_mib(files)
    return available_memory_mib() // each


def frames_room(files: Sequence[Path]) -> int:
    """Return how many copies of these files' frames fit into free memory, which is never huge
    pages.
    """
    needed = frames_mib(files)
    return available_memory_mib() // needed if needed else sys.maxsize


def frames_mib(files: Sequence[Path]) -> int:
    """Return the memory (MiB) for the frames of these capture files in a program that has read them
    all.
    """
    return math.ceil(_FRAMES_OVER_FILE * sum(path.stat().st_size for path in files) / 2**20)


def huge_room(bench: Bench, link: Link, size: int, programs: Sequence[Forwarder]) -> int | None:
    """Return how many starts of each program fit into free huge pages, from the use of one start of
    each on a link without a generator; None if one of them does not start.
    """
    free = hugepage_memory_mib()
    try:
        with (
            link.open(bench.context(size)) as wire,
            standing(bench, wire, programs, range(len(programs))),
        ):
            taken = free - hugepage_memory_mib()
    except TrialError:
        return None
    return int(free / (_SPARE * taken)) if taken > 0 else None
