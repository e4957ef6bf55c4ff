# SPDX-License-Identifier: BSD-3-Clause
"""Print the progress of a run, and the remaining time.

On a terminal one line that is updated; otherwise a plain line every few seconds. No refresh thread:
the lab forks from its main thread and stays quiet while it measures.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from linerate.records.cells import cell_words
from linerate.records.trial import Trial

PLAIN_EVERY_S = 5.0


def say(console: Console, text: str, style: str = "") -> None:
    """Print a line as it is: no markup, no wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)


def remaining(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s left" if minutes else f"{rest} s left"


class Monitor:
    """Counts trials and estimates the end from their durations so far, once a block is over.

    A block's first trials say little: they include its start. If the unit is a whole start of a
    forwarder (`unit` "search"), each has a line with its result.
    """

    def __init__(self, console: Console, total: int, unit: str = "trial") -> None:
        self.console = console
        self.total = total
        self.unit = unit
        self.done = 0
        self._voided = 0
        self._earlier = 0
        self._started = time.monotonic()
        self._telling = False
        self._printed = 0.0
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=total, left="")

    def __enter__(self) -> Monitor:
        # Whatever was prepared until now takes no time of the trials.
        self._started = time.monotonic()
        self._progress.start()
        self._progress.refresh()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def add(self, trials: int) -> None:
        """Add trials to the plan."""
        self.total += trials
        self._progress.update(self._task, total=self.total)

    def skip(self, trials: int) -> None:
        self.add(-trials)

    def announce(self, text: str) -> None:
        if self.console.is_terminal:
            self._progress.update(self._task, description=text)
            self._progress.refresh()
        else:
            say(self.console, text)

    def replayed(self, trial: Trial) -> None:
        """Count a trial of an earlier session: it says nothing about the duration of the others."""
        self.done += 1
        self._earlier += 1

    def block_over(self) -> None:
        """Note the end of a block of which at least one trial was run just now."""
        self._telling = self._telling or self.done > self._earlier

    def _left(self) -> str:
        """Return the remaining time; "" while it is unknown."""
        if not self._telling or self.done == self._earlier:
            return ""
        elapsed = time.monotonic() - self._started
        return remaining(elapsed / (self.done - self._earlier) * (self.total - self.done))

    def finished(self, trial: Trial) -> None:
        """Count a trial that was run just now."""
        self.done += 1
        left = self._left()
        what = f"{trial.cell.words} {trial.arm}"
        if trial.invalid:
            self.complain(trial)
        if self.console.is_terminal:
            self._progress.update(
                self._task, description=what, completed=self.done, left=left, refresh=True
            )
        elif time.monotonic() - self._printed >= PLAIN_EVERY_S or self.done == self.total:
            self._printed = time.monotonic()
            self._say(f"{self.done}/{self.total} {self.unit}s, {what}{left and f', {left}'}")

    def complain(self, trial: Trial) -> None:
        """Print that a trial is invalid."""
        where = f"{trial.cell.words} {trial.arm}"
        self._say(f"invalid: {where}, block {trial.block}: {trial.invalid}")

    def void(self) -> None:
        """Count a window that will be repeated."""
        self._voided += 1

    def begin(self, link: str, size: int, arm: str, block: int) -> None:
        """Note the beginning of a whole start, if that is the unit."""
        self._voided = 0
        if self.console.is_terminal:
            what = f"{cell_words(link, size)} {arm}, block {block}"
            self._progress.update(self._task, description=what, refresh=True)

    def item(self, link: str, size: int, arm: str, found: str, *, fresh: bool) -> None:
        """Count a finished start; `fresh`: at least a part of it was run just now."""
        self.done += 1
        self._earlier += not fresh
        self._telling = True
        left = self._left()
        voided = f", {self._voided} void windows" if self._voided else ""
        if self.console.is_terminal:
            self._progress.update(self._task, completed=self.done, left=left, refresh=True)
        where = f"{cell_words(link, size)} {arm}"
        self._say(f"{self.done}/{self.total} {where}: {found}{voided}{left and f'; {left}'}")

    def _say(self, text: str) -> None:
        say(self._progress.console, text)
