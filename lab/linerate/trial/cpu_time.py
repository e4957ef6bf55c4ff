# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a window of traffic on the forwarder's core: its process, kernel threads, softirqs.

The time of the process and of the threads that receive for it is from the scheduler's counters,
which are exact; the time of that core's softirqs is from the ticks of /proc/stat. A kernel without
CONFIG_IRQ_TIME_ACCOUNTING charges softirqs to the interrupted process, so that they are within the
other two: they are reported separately and never added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.host.host import Host
from linerate.host.process import Child
from linerate.host.sampler import Activity, Wanted
from linerate.links import KernelThread
from linerate.records.outcome import CpuTime

# A process that ran for more of the time before the window, when nothing came, polls.
_POLLS = 0.5


@dataclass(frozen=True)
class Look:
    """The use of the core until this moment; None if the scheduler does not count it."""

    at_s: float
    process_s: float | None
    napi_s: float | None
    softirq_s: float


class CpuMeter:
    """Measures one forwarder's core."""

    def __init__(
        self, host: Host, child: Child | None, threads: Sequence[KernelThread], cpu: int
    ) -> None:
        """Prepare. `host`: the forwarder's. `child`: None if the kernel forwards alone."""
        self._host = host
        self._child = child
        self._napi = [each for each in threads if each.role == KernelThread.FORWARDER]
        self._cpu = cpu

    def look(self) -> Look:
        # Without a process, the time is known to be 0.
        process = [self._child.working_pid] if self._child else []
        napi = [thread.pid for thread in self._napi]
        sample = self._host.sample(Wanted(pids=(*process, *napi), cpus=True))
        return Look(
            at_s=sample.at_s,
            process_s=_ran_s([sample.processes[pid] for pid in process]),
            napi_s=_ran_s([sample.processes[pid] for pid in napi]),
            softirq_s=sample.cpus[self._cpu].softirq / sample.tick_hz,
        )

    def used(self, idle: Look, begin: Look, end: Look, window_s: float) -> list[CpuTime]:
        """Return the CPU time of a window between `begin` and `end`; no traffic came from `idle` to
        `begin`.

        A poller also uses CPU time beside the window, which is subtracted.
        """
        process_s = _since(begin.process_s, end.process_s)
        before_s = _since(idle.process_s, begin.process_s)
        waited_s = begin.at_s - idle.at_s
        if process_s is not None and before_s is not None and before_s > _POLLS * waited_s > 0:
            process_s -= before_s / waited_s * max(end.at_s - begin.at_s - window_s, 0.0)
        cpus = self._child.command.cpus if self._child else (self._cpu,)
        found = [("process", cpus, process_s)]
        if self._napi:
            cpus = tuple(sorted({thread.cpu for thread in self._napi}))
            found.append(("napi", cpus, _since(begin.napi_s, end.napi_s)))
        found.append(("softirq", (self._cpu,), _since(begin.softirq_s, end.softirq_s)))
        return [
            CpuTime.model_validate({"of": of, "cpus": list(cpus), "seconds": max(seconds, 0.0)})
            for of, cpus, seconds in found
            if seconds is not None
        ]


def _ran_s(activities: Sequence[Activity]) -> float | None:
    if not all(each.told for each in activities):
        return None
    return sum(each.ran_s for each in activities)


def _since(before_s: float | None, now_s: float | None) -> float | None:
    return None if before_s is None or now_s is None else now_s - before_s
