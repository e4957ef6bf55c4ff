# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder for a procedure: requests of earlier sessions are answered from the records."""

from __future__ import annotations

from typing import Any

from linerate.host.errors import TrialError
from linerate.host.process import checkpoint
from linerate.records.cells import Arm
from linerate.records.trial import Method, Role, Trial
from linerate.runs.engine.ledger import Ledger
from linerate.runs.plans.steps import Record, Start, Turns
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Outcome, TestedDevice
from linerate.trial.search.replay import Resumed
from linerate.trial.search.setup_device import SetupDevice
from linerate.trial.trial import Bench


def device_of(  # noqa: PLR0917 - what it is made of
    bench: Bench,
    setup: LinkSetup,
    step: Start | Turns,
    arm: Arm,
    role: Role,
    record: Record,
    *,
    max_pps: float,
    method: Method = "fresh",
) -> SetupDevice:
    """Return the forwarder that a step requests, on this setup."""
    return SetupDevice(
        bench,
        setup,
        arm,
        block=step.block,
        max_pps=max_pps,
        terms=step.terms,
        record=record,
        role=role,
        probe=step.probe,
        spans=step.spans,
        method=method,
    )


class StartedDevice:
    """A `linerate.runs.plans.steps.Started`."""

    def __init__(
        self,
        ledger: Ledger,
        real: SetupDevice,
        arm: Arm,
        place: dict[str, object],
        *,
        each_fails: bool,
    ) -> None:
        """Prepare. `place`: the fields that identify its records."""
        self.arm = arm
        self._ledger = ledger
        self._real = real
        self._place = place
        self._first = len(ledger.trials)
        self._each_fails = each_fails
        self._device = self._resumed(place)

    def _resumed(self, of: dict[str, object]) -> Resumed:
        device = Resumed(self._real, self._ledger.journal, of)
        device.test = self._real.test
        return device

    @property
    def device(self) -> TestedDevice:
        return self._device

    @property
    def trials(self) -> list[Trial]:
        # Others may have taken turns with it.
        return [t for t in self._ledger.trials[self._first :] if t.arm == self.arm.label]

    def measure(
        self, pps: float, seconds: float, *, latency: bool = False, **of: Any
    ) -> Outcome | None:
        ledger = self._ledger
        for name, value in of.items():
            setattr(self._real, name, value)
        checkpoint()
        before = len(ledger.trials)
        try:
            found = self._resumed(self._place | of).send(pps, seconds, latency=latency)
        except TrialError:
            # Its windows are on record.
            found = None
        if len(ledger.trials) > before:
            last = ledger.trials[-1]
            fresh = last.session == ledger.journal.session
            (ledger.monitor.finished if fresh else ledger.monitor.replayed)(last)
            if self._each_fails:
                # Also for earlier sessions: a given-up start stays given up.
                ledger.count(None if found else last.invalid_why, last)
        return found

    def flood(self) -> Trial:
        ledger = self._ledger
        trial = ledger.journal.replay(**self._place, load="flood")
        if trial:
            ledger.passed(trial, counts=True)
            return trial
        checkpoint()
        trial = self._real.flood(self._real.bench.window_s)
        ledger.ran(trial, counts=True)
        ledger.count(trial.invalid_why, trial)
        return trial

    def skip(self, trials: int) -> None:
        self._ledger.monitor.skip(trials)
