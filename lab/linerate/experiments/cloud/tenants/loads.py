# SPDX-License-Identifier: BSD-3-Clause
"""The programs of each load on the host, and their work.

They are the guests' programs with the guests' options (`init.sh`), from Debian's packages, and all
end by themselves. stress-ng counts only finished work, so it runs in slices of `SLICE_OPS` bogo
operations, a tenth of a second of a core's time: its work is known to that precision. I/O and
network are counted by the kernel at any moment. Lifecycle: none of its own. Any thread. Times are
seconds, sizes bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Load
from linerate.experiments.cloud.tenants.packages import installed, versions, with_libraries
from linerate.experiments.cloud.tenants.vm.guest import FIO, IPERF3, STRESS_NG, programs
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge
from linerate.host.host import LOCAL
from linerate.host.process import Command

SLICE_OPS = 200
# A slice ends by then, whatever it has got done.
_SLICE_S = 60
# The size of fio's reads and writes.
BLOCK = 4096
_FIRST_PORT = 5210


def cpu_argv(results: Path) -> tuple[str, ...]:
    """Return the command of one slice, which writes its figures to a YAML file."""
    return (
        str(STRESS_NG),
        *("--cpu", "1", "--cpu-method", "int64", "--cpu-ops", str(SLICE_OPS)),
        *("--timeout", str(_SLICE_S), "--metrics-brief"),
        *("--temp-path", str(results.parent), "--yaml", str(results)),
    )


def io_argv(disk: Path, size_mib: int, bound_s: int, *, direct: bool = True) -> tuple[str, ...]:
    """Return the command for random reads and writes, one at a time; `direct`: past the page cache.

    It does not report the whole device (`disk_util`): those reads would be counted as work.
    """
    return (
        str(FIO),
        *("--name=io", f"--filename={disk}", f"--size={size_mib}m", "--rw=randrw", f"--bs={BLOCK}"),
        *(f"--direct={int(direct)}", "--ioengine=psync", "--thread", "--norandommap"),
        *("--time_based", f"--runtime={bound_s}", "--eta=never", "--disk_util=0"),
    )


def network_argv(peer: IPv4Address, port: int, bound_s: int) -> tuple[str, ...]:
    """Return the command for one TCP connection at full speed."""
    return (str(IPERF3), "--client", str(peer), "--port", str(port), "--time", str(bound_s))


def port_of(number: int) -> int:
    """Return the port on which the host's end of a tenant's network load listens."""
    return _FIRST_PORT + number


def server(name: str, number: int, on: Bridge, cpus: tuple[int, ...]) -> Command:
    """Return the command of the host's end of a network load, one for each tenant, on the tenants'
    CPUs and the bridge's host.
    """
    address = ("--bind", str(on.address.ip), "--port", str(port_of(number)))
    return Command(
        f"{name}-iperf3",
        (str(IPERF3), "--server", "--forceflush", *address),
        cpus,
    )


@functools.cache
def checked(load: Load, *others: Path) -> Mapping[str, str]:
    """Return the versions of the packages of its programs and libraries; raises an error for a file
    of no package.

    Files are checked against their packages once per process.
    """
    paths = [path for each in (*programs(load), *others) for path in with_libraries(each)]
    return versions(each.package for each in installed(list(dict.fromkeys(paths))))


def io_bytes(pid: int) -> int:
    """Return the bytes that a process has read from and written to block devices; raises
    `OSError`.
    """
    told = dict(line.split(": ") for line in LOCAL.read_text(f"/proc/{pid}/io").splitlines())
    return int(told["read_bytes"]) + int(told["write_bytes"])
