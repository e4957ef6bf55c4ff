# SPDX-License-Identifier: BSD-3-Clause
"""The CPU use of a trial's processes, from the scheduler's counters.

On a link of the kernel, a kernel thread receives for each end. It works for the forwarder or the
generator, on its core: the record lists it beside them, and its CPU time does not count as used by
other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.host.host import Host
from linerate.host.process import Child
from linerate.host.sampler import Activity, Wanted
from linerate.links import KernelThread
from linerate.records.trial import Process, Trial

FORWARDER = "forwarder"
# A forwarder that waited for its CPU for more of its time than this was not measured.
STARVED = 0.25


class Watch:
    """Watches the processes until `enter`."""

    def __init__(
        self,
        trial: Trial,
        host: Host,
        children: Sequence[Child],
        threads: Sequence[KernelThread],
    ) -> None:
        """Start watching, and list the processes in the record. `host`: the host whose kernel has
        the threads.
        """
        self._trial = trial
        self._host = host
        self._children = children
        self._threads = threads
        trial.program.processes = [
            *(
                Process(
                    role=child.command.role,
                    argv=list(child.command.argv),
                    cpus=list(child.command.cpus),
                )
                for child in children
            ),
            *(
                Process(role=thread.role, argv=[thread.name], cpus=[thread.cpu])
                for thread in threads
            ),
        ]
        self._before = self._now()

    def _now(self) -> list[Activity]:
        pids = [thread.pid for thread in self._threads]
        threads = self._host.sample(Wanted(pids=tuple(pids))).processes
        return [*(child.activity() for child in self._children), *(threads[pid] for pid in pids)]

    def enter(self, *, others_wanted: bool = False) -> None:
        """Enter the activity of each process; reject the trial if the forwarder was starved.

        `others_wanted`: the experiment measures with other users of the CPU.
        """
        for process, before, after in zip(
            self._trial.program.processes, self._before, self._now(), strict=True
        ):
            if not (before.told and after.told):
                continue
            process.voluntary_switches = after.voluntary - before.voluntary
            process.involuntary_switches = after.involuntary - before.involuntary
            process.ran_s = after.ran_s - before.ran_s
            process.waited_s = after.waited_for_others_s(before)
        if not others_wanted and (share := _starved(self._trial)):
            self._trial.reject(
                "starved", f"others had the forwarder's CPU for {share:.0%} of the time"
            )


@dataclass(frozen=True)
class Waiting:
    """How long a process waited for its CPU while it was runnable.

    `kernel_s`: while the link's kernel threads ran on that CPU, at most their time. `others_s`: the
    rest, which nothing of the lab's explains. `threads`: those kernel threads.
    """

    whole_s: float
    kernel_s: float
    others_s: float
    threads: tuple[str, ...]


def waiting_of(trial: Trial, process: Process) -> Waiting | None:
    """Return the forwarder's waiting; None if the scheduler does not count it, or it never wanted
    its CPU.
    """
    if process.ran_s is None or process.waited_s is None:
        return None
    # XDP programs run where the kernel receives. Their process sleeps: one wake-up that is late is
    # nearly all of the time that it wants, and keeps no frame waiting.
    if trial.program.described and trial.program.described.kind == "xdp":
        return None
    threads = [
        other
        for other in trial.program.processes
        if other.role == KernelThread.FORWARDER and other.cpus == process.cpus
    ]
    # Such a thread also runs while the forwarder sleeps: its time is an upper bound.
    kernel_s = min(process.waited_s, sum(thread.ran_s or 0.0 for thread in threads))
    whole_s = process.ran_s + process.waited_s
    if not whole_s:
        return None
    names = tuple(name for thread in threads for name in thread.argv[:1])
    return Waiting(whole_s, kernel_s, process.waited_s - kernel_s, names)


def _starved(trial: Trial) -> float | None:
    """Return the share of its time that the forwarder waited for others, if that is too much."""
    for process in trial.program.processes:
        if process.role == FORWARDER:
            found = waiting_of(trial, process)
            if found is None:
                return None
            # The time of the link's threads does not count as waiting.
            whole = found.whole_s - found.kernel_s
            if whole and found.others_s / whole > STARVED:
                return found.others_s / whole
    return None
