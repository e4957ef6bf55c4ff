# SPDX-License-Identifier: BSD-3-Clause
"""Progress of searches: how many units there are is known, how many trials each takes is not."""

from __future__ import annotations

import time

from rich.console import Console

from linerate.experiments.rfc2544.units import Unit
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Trial
from linerate.runs.progress import Monitor, remaining


class Units(Monitor):
    """Counts units, and windows that were void."""

    def __init__(self, console: Console, total: int) -> None:
        super().__init__(console, total)
        self._voided = 0

    def searching(self, cell: Cell, arm: Arm, block: int) -> None:
        self._voided = 0
        if self.console.is_terminal:
            text = f"{cell.link} {cell.size} B {arm.label}, block {block}"
            self._progress.update(self._task, description=text, refresh=True)

    def void(self) -> None:
        self._voided += 1

    def complain(self, trial: Trial) -> None:
        self._say(
            f"invalid: {trial.link} {trial.size} B {trial.arm}, block {trial.block}: "
            f"{trial.invalid}"
        )

    def unit_done(self, cell: Cell, arm: Arm, unit: Unit) -> None:
        self.done += 1
        elapsed = time.monotonic() - self._started
        left = remaining(elapsed / self.done * max(self.total - self.done, 0))
        found = unit.lossless
        rate = (
            f"{found.lower_pps / 1e6:.3f} Mpps"
            if found and found.lower_pps is not None
            else "no throughput"
        )
        voided = f", {self._voided} void windows" if self._voided else ""
        if self.console.is_terminal:
            self._progress.update(self._task, completed=self.done, left=left, refresh=True)
        self._say(
            f"{self.done}/{self.total} {cell.link} {cell.size} B {arm.label}: {rate}{voided}; "
            f"{left}"
        )

    def _say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
