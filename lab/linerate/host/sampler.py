# SPDX-License-Identifier: BSD-3-Clause
"""Read the kernel's counters once: of processes, CPUs and network interfaces.

This module imports the standard library only and nothing of the lab's: `Host.sample` calls `take`
if the lab itself is on that host, and elsewhere this file can be run as a program, which reads the
request as JSON from standard input and prints the sample as JSON:

    echo '{"pids": [1], "cpus": true}' | python3 sampler.py

Counters of the scheduler are sums over all threads of a process; a process that has ended has none.
Any thread. Ticks are 1/`USER_HZ` s.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Activity:
    """The scheduler's counters for all threads of a process since their start."""

    voluntary: int
    involuntary: int
    ran_s: float
    waited_s: float
    # For each thread, by its id: how long (s) it ran, and waited.
    threads: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def told(self) -> bool:
        """True if there are counters: not for an ended process, nor without CONFIG_SCHED_INFO."""
        return bool(self.threads)

    def waited_for_others_s(self, before: Activity) -> float:
        """Return how long (s) the busiest thread waited since `before` while no thread of the
        process had the CPU.

        Threads on one CPU keep each other waiting: for instance, each signal that net_tap gets for
        a frame may wake any thread of the process.
        """
        since = [
            (ran - earlier[0], waited - earlier[1])
            for tid, (ran, waited) in self.threads.items()
            for earlier in [before.threads.get(tid, (0.0, 0.0))]
        ]
        if not since:
            return self.waited_s - before.waited_s
        ran, waited = max(since)
        return max(waited - (sum(each for each, _ in since) - ran), 0.0)


@dataclass(frozen=True)
class CpuTimes:
    """CPU times of one line of /proc/stat, in ticks."""

    busy: int
    idle: int
    steal: int
    softirq: int = 0


@dataclass(frozen=True)
class Traffic:
    """Received and sent frames and bytes (without FCS) of an interface."""

    rx_frames: int
    tx_frames: int
    rx_bytes: int
    tx_bytes: int


@dataclass(frozen=True)
class Wanted:
    """The counters to read. `interfaces`: all interfaces of the calling network namespace."""

    pids: tuple[int, ...] = ()
    cpus: bool = False
    interfaces: bool = False


@dataclass(frozen=True)
class Sample:
    """A sample. `at_s`: the host's monotonic clock before reading. `tick_hz`: ticks per second on
    the host.
    """

    at_s: float
    tick_hz: int
    processes: Mapping[int, Activity] = field(default_factory=dict)
    cpus: Mapping[int, CpuTimes] = field(default_factory=dict)
    interfaces: Mapping[str, Traffic] = field(default_factory=dict)


def take(wanted: Wanted) -> Sample:
    """Read the counters of this machine. Raises `OSError` if it has no such counters."""
    return Sample(
        at_s=time.monotonic(),
        tick_hz=os.sysconf("SC_CLK_TCK"),
        processes={pid: _activity(pid) for pid in wanted.pids},
        cpus=_cpu_times() if wanted.cpus else {},
        interfaces=_traffic() if wanted.interfaces else {},
    )


def as_json(what: Wanted | Sample) -> str:
    return json.dumps(dataclasses.asdict(what))


def wanted_of(text: str) -> Wanted:
    """Parse a request made by `as_json`; raises `ValueError` or `TypeError` for anything else."""
    data = json.loads(text)
    return Wanted(**{**data, "pids": tuple(data.get("pids", ()))})


def sample_of(text: str) -> Sample:
    """Parse a sample made by `as_json`; raises `LookupError`, `ValueError` or `TypeError`
    otherwise.
    """
    data = json.loads(text)
    return Sample(
        at_s=data["at_s"],
        tick_hz=data["tick_hz"],
        # The keys of an object of JSON are text.
        processes={int(pid): _activity_of(each) for pid, each in data["processes"].items()},
        cpus={int(cpu): CpuTimes(**each) for cpu, each in data["cpus"].items()},
        interfaces={name: Traffic(**each) for name, each in data["interfaces"].items()},
    )


def _activity_of(data: Mapping[str, Any]) -> Activity:
    threads = {int(tid): (ran, waited) for tid, (ran, waited) in data["threads"].items()}
    return Activity(
        data["voluntary"], data["involuntary"], data["ran_s"], data["waited_s"], threads
    )


def _activity(pid: int) -> Activity:
    """Return the activity of all threads of a process, or of a kernel thread; zero if it has
    ended.
    """
    voluntary = involuntary = 0
    threads = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            ran, waited, _ = (task / "schedstat").read_text().split()
            threads[int(task.name)] = (int(ran) / 1e9, int(waited) / 1e9)
        with contextlib.suppress(OSError, ValueError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    voluntary += int(line.split()[1])
                elif line.startswith("nonvoluntary_ctxt_switches:"):
                    involuntary += int(line.split()[1])
    ran_s = sum(ran for ran, _ in threads.values())
    waited_s = sum(waited for _, waited in threads.values())
    return Activity(voluntary, involuntary, ran_s, waited_s, threads)


def _cpu_times() -> dict[int, CpuTimes]:
    """Return the CPU times since boot, by CPU."""
    times: dict[int, CpuTimes] = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
            times[int(name[3:])] = CpuTimes(
                user + nice + system + irq + softirq, idle + iowait, steal, softirq
            )
    return times


def _traffic() -> dict[str, Traffic]:
    """Return the traffic of each interface since it was made, by name."""
    found = {}
    # The thread's own file: /proc/net is the process's.
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.strip().partition(":")
        fields = [int(number) for number in numbers.split()]
        found[name] = Traffic(fields[1], fields[9], fields[0], fields[8])
    return found


def main() -> None:
    """Read the request from standard input and print the sample on standard output."""
    print(as_json(take(wanted_of(sys.stdin.read()))))


if __name__ == "__main__":
    main()
