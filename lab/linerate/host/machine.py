# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the machine for records and reports. What cannot be had is absent, never a guess."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from pydantic import BaseModel, ConfigDict


def text_of(path: str | Path) -> str | None:
    """The stripped content of a small file; None when it cannot be read."""
    try:
        return Path(path).read_text().strip() or None
    except OSError:
        return None


def first_line(*argv: str) -> str | None:
    """First line that a short command prints; None when it fails."""
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


class Hugepages(BaseModel):
    """Hugepages of one size, over all NUMA nodes."""

    size_kib: int
    total: int
    free: int


class Machine(BaseModel):
    """What a reader must know to judge a number from this machine."""

    model_config = ConfigDict(extra="forbid")

    cpu_model: str | None = None
    cpu_count: int
    cpus_allowed: list[int]
    cpu_flags_tsc: list[str]
    numa_nodes: int
    l3_cache: str | None = None
    memory_mib: int | None = None
    hypervisor: str | None = None
    kernel: str
    distribution: str | None = None
    kernel_command_line: str | None = None
    governor: str | None = None
    clock_source: str | None = None
    hugepages: list[Hugepages]
    dpdk_version: str | None = None
    c_compiler: str | None = None
    rust_compiler: str | None = None
    python: str


def _cpuinfo() -> dict[str, str]:
    """The first CPU's entry of /proc/cpuinfo."""
    facts = {}
    for line in (text_of("/proc/cpuinfo") or "").split("\n\n", 1)[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    return facts


def hypervisor() -> str | None:
    """Name of the hypervisor: what the CPU or the firmware says; None on bare metal."""
    if "hypervisor" not in _cpuinfo().get("flags", "").split():
        return None
    found = first_line("systemd-detect-virt", "--vm")
    if found and found != "none":
        return found
    for line in (first_line_matching("lscpu", r"Hypervisor vendor:\s*(.+)"),):
        if line:
            return line
    return text_of("/sys/class/dmi/id/sys_vendor") or "unknown"


def first_line_matching(command: str, pattern: str) -> str | None:
    if shutil.which(command) is None:
        return None
    try:
        done = subprocess.run(
            [command],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(pattern, done.stdout)
    return match.group(1).strip() if match else None


def hugepages() -> list[Hugepages]:
    pools = []
    for pool in sorted(Path("/sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        total, free = text_of(pool / "nr_hugepages"), text_of(pool / "free_hugepages")
        if total is not None and free is not None:
            pools.append(
                Hugepages(
                    size_kib=int(pool.name[len("hugepages-") : -2]),
                    total=int(total),
                    free=int(free),
                )
            )
    return pools


def hugepage_memory_mib() -> int:
    """Free hugepage memory that this process may map."""
    return sum(pool.free * pool.size_kib for pool in hugepages()) // 1024


def available_memory_mib() -> int:
    """Memory that processes may still take without swapping."""
    found = re.search(r"^MemAvailable:\s+([0-9]+) kB", text_of("/proc/meminfo") or "", re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def dpdk_version() -> str | None:
    return first_line("pkg-config", "--modversion", "libdpdk")


def distribution() -> str | None:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', text_of("/etc/os-release") or "", re.MULTILINE)
    return match.group(1) if match else None


def facts() -> Machine:
    """Look at this machine (about 0.1 s)."""
    cpu = _cpuinfo()
    flags = cpu.get("flags", "").split()
    memory = re.search(r"MemTotal:\s+(\d+)", text_of("/proc/meminfo") or "")
    return Machine(
        cpu_model=cpu.get("model name"),
        cpu_count=os.cpu_count() or 1,
        cpus_allowed=sorted(os.sched_getaffinity(0)),
        cpu_flags_tsc=[flag for flag in flags if "tsc" in flag],
        numa_nodes=len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        l3_cache=text_of("/sys/devices/system/cpu/cpu0/cache/index3/size"),
        memory_mib=int(memory.group(1)) // 1024 if memory else None,
        hypervisor=hypervisor(),
        kernel=platform.release(),
        distribution=distribution(),
        kernel_command_line=text_of("/proc/cmdline"),
        governor=text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source=text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hugepages=hugepages(),
        dpdk_version=dpdk_version(),
        c_compiler=first_line("cc", "--version"),
        rust_compiler=first_line("rustc", "--version"),
        python=platform.python_version(),
    )
