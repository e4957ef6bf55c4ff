# SPDX-License-Identifier: BSD-3-Clause
"""What the processes of a trial did with their CPUs, from the scheduler's counts.

On a link of the kernel's a thread of the kernel receives for each end. It works for the forwarder,
or for the generator, on its core: it is named in the record beside them, and the time that it had
is nobody else's.
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.links import KernelThread
from linerate.process import Activity, Child, activity_of
from linerate.records import Process, Trial

FORWARDER = "forwarder"
# A forwarder that waited for its CPU for more of its time than this was not measured.
STARVED = 0.25


class Watch:
    """From now on until `enter`."""

    def __init__(
        self, trial: Trial, children: Sequence[Child], threads: Sequence[KernelThread]
    ) -> None:
        """Names them in the record, too."""
        self._trial = trial
        self._children = children
        self._threads = threads
        trial.processes = [
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
        return [
            *(child.activity() for child in self._children),
            *(activity_of(thread.pid) for thread in self._threads),
        ]

    def enter(self) -> None:
        """What each did meanwhile; a forwarder that was starved was not measured."""
        for process, before, after in zip(
            self._trial.processes, self._before, self._now(), strict=True
        ):
            process.voluntary_switches = after.voluntary - before.voluntary
            process.involuntary_switches = after.involuntary - before.involuntary
            process.ran_s = after.ran_s - before.ran_s
            process.waited_s = after.waited_for_others_s(before)
        if share := _starved(self._trial):
            self._trial.reject(
                "starved", f"others had the forwarder's CPU for {share:.0%} of the time"
            )


def _starved(trial: Trial) -> float | None:
    """The share of its time that the forwarder waited for others, if that is too much."""
    for process in trial.processes:
        if process.role == FORWARDER:
            ran, waited = process.ran_s or 0.0, process.waited_s or 0.0
            for other in trial.processes:
                if other.role == KernelThread.FORWARDER and other.cpus == process.cpus:
                    waited -= other.ran_s or 0.0
            whole = ran + max(waited, 0.0)
            if whole and waited / whole > STARVED:
                return waited / whole
    return None
