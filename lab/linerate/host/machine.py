# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the machine for records and reports. An unknown fact is absent, never a guess."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from linerate.host.host import LOCAL, Host
from linerate.host.sampler import Wanted


def text_of(path: str | Path, host: Host = LOCAL) -> str | None:
    """Return the stripped content of a small file; None if it cannot be read."""
    try:
        return host.read_text(path).strip() or None
    except OSError:
        return None


def first_line(*argv: str, host: Host = LOCAL) -> str | None:
    """Return the first line of a short command's output; None if it fails."""
    try:
        done = host.run(argv)
    except OSError:
        return None
    lines = (done.output or done.errors).strip().splitlines()
    return lines[0].strip() if not done.exit_code and lines else None


class Hugepages(BaseModel):
    """Hugepages of one size, over all NUMA nodes."""

    size_kib: int
    total: int
    free: int


class Machine(BaseModel):
    """Facts about the machine that a reader needs to judge its numbers."""

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


def _cpuinfo(host: Host) -> dict[str, str]:
    """Return the first CPU's entry of /proc/cpuinfo."""
    facts = {}
    for line in (text_of("/proc/cpuinfo", host) or "").split("\n\n", 1)[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    return facts


def hypervisor(host: Host = LOCAL) -> str | None:
    """Return the hypervisor's name, from the CPU or the firmware; None on bare metal."""
    if "hypervisor" not in _cpuinfo(host).get("flags", "").split():
        return None
    found = first_line("systemd-detect-virt", "--vm", host=host)
    if found and found != "none":
        return found
    if vendor := _first_match(r"Hypervisor vendor:\s*(.+)", ("lscpu",), host):
        return vendor
    return text_of("/sys/class/dmi/id/sys_vendor", host) or "unknown"


def _first_match(pattern: str, argv: Sequence[str], host: Host) -> str | None:
    """Return the first match in a command's output, in the C locale."""
    try:
        done = host.run(argv, environment={"LC_ALL": "C"})
    except OSError:
        return None
    match = re.search(pattern, done.output)
    return match.group(1).strip() if match else None


def hugepages(host: Host = LOCAL) -> list[Hugepages]:
    pools = []
    for pool in host.glob("/sys/kernel/mm/hugepages", "hugepages-*kB"):
        total = text_of(pool / "nr_hugepages", host)
        free = text_of(pool / "free_hugepages", host)
        if total is not None and free is not None:
            pools.append(
                Hugepages(
                    size_kib=int(pool.name[len("hugepages-") : -2]),
                    total=int(total),
                    free=int(free),
                )
            )
    return pools


def hugepage_memory_mib(host: Host = LOCAL) -> int:
    """Return the free hugepage memory on the host, in MiB."""
    return sum(pool.free * pool.size_kib for pool in hugepages(host)) // 1024


def available_memory_mib(host: Host = LOCAL) -> int:
    """Return the memory that processes may still use without swapping, in MiB."""
    told = text_of("/proc/meminfo", host) or ""
    found = re.search(r"^MemAvailable:\s+([0-9]+) kB", told, re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def numa_nodes(host: Host = LOCAL) -> int:
    return len(host.glob("/sys/devices/system/node", "node[0-9]*")) or 1


def dpdk_version(host: Host = LOCAL) -> str | None:
    return first_line("pkg-config", "--modversion", "libdpdk", host=host)


def distribution(host: Host = LOCAL) -> str | None:
    told = text_of("/etc/os-release", host) or ""
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', told, re.MULTILINE)
    return match.group(1) if match else None


def facts(host: Host = LOCAL) -> Machine:
    """Collect the facts about this machine (about 0.1 s)."""
    cpu = _cpuinfo(host)
    flags = cpu.get("flags", "").split()
    memory = re.search(r"MemTotal:\s+(\d+)", text_of("/proc/meminfo", host) or "")
    cpu0 = "/sys/devices/system/cpu/cpu0"
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return Machine(
        cpu_model=cpu.get("model name"),
        cpu_count=len(host.sample(Wanted(cpus=True)).cpus),
        cpus_allowed=sorted(host.cpus()),
        cpu_flags_tsc=[flag for flag in flags if "tsc" in flag],
        numa_nodes=numa_nodes(host),
        l3_cache=text_of(f"{cpu0}/cache/index3/size", host),
        memory_mib=int(memory.group(1)) // 1024 if memory else None,
        hypervisor=hypervisor(host),
        kernel=text_of("/proc/sys/kernel/osrelease", host) or "unknown",
        distribution=distribution(host),
        kernel_command_line=text_of("/proc/cmdline", host),
        governor=text_of(f"{cpu0}/cpufreq/scaling_governor", host),
        clock_source=text_of(clock, host),
        hugepages=hugepages(host),
        dpdk_version=dpdk_version(host),
        c_compiler=first_line("cc", "--version", host=host),
        rust_compiler=first_line("rustc", "--version", host=host),
        # Of the lab, which reads the measurements of any host.
        python=platform.python_version(),
    )
