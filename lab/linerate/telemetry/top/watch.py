# SPDX-License-Identifier: BSD-3-Clause
"""The loop of `linerate top`: wait for an interval, ask, compare, show.

Lifecycle: ends after `count` intervals, when the program ends (both are success), or by a signal,
which restores the terminal (`Interrupted`, as in every other command). If the program does not
answer, the loop waits on a terminal, and fails elsewhere. Threading: one thread draws and asks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from linerate.host.errors import DisconnectedError, SilentError, TelemetryError
from linerate.host.process import checkpoint, interruptible
from linerate.host.text import printable
from linerate.telemetry.client import Telemetry
from linerate.telemetry.top.discover import Program
from linerate.telemetry.top.figures import Figures, compare, dump
from linerate.telemetry.top.sample import Sample, Sampler
from linerate.telemetry.top.screen import fit, render, too_narrow


class Show(Protocol):
    """A display of figures."""

    def figures(self, figures: Figures) -> None: ...

    def silence(self) -> None:
        """Handle a program that does not answer: return to wait for it, else raise."""


# On a terminal, where a signal may wait this long; elsewhere `Telemetry` has its own limit.
_ANSWER_WITHIN_S = 1.0
# The longest wait of a signal.
_GLANCE_S = 0.05
# An interval may be so much shorter than asked for, to keep step; ticks before that are skipped.
_SHORTEST = 0.9


def watch(
    program: Program, interval_s: float, count: int | None, show: Show, telemetry: Telemetry
) -> bool:
    """Show figures at every interval. True: the program has ended; False: `count` were shown."""
    try:
        sampler = Sampler(telemetry)
        before = _take(sampler, telemetry, show)
        due = time.monotonic()
        shown = 0
        while count is None or shown < count:
            due = max(due + interval_s, time.monotonic() + _SHORTEST * interval_s)
            _wait_until(due, telemetry)
            now = _take(sampler, telemetry, show)
            show.figures(compare(program, telemetry.version, before, now, datetime.now(UTC)))
            before = now
            shown += 1
    except DisconnectedError:
        return True
    return False


def _take(sampler: Sampler, telemetry: Telemetry, show: Show) -> Sample:
    while True:
        try:
            return sampler.take()
        except SilentError:
            show.silence()
            # The previous request is still unanswered: another one would get both answers.
            while not telemetry.overdue(_GLANCE_S):
                checkpoint()


def _wait_until(due: float, telemetry: Telemetry) -> None:
    while True:
        checkpoint()
        left = due - time.monotonic()
        if left <= 0:
            return
        if telemetry.disconnected(min(left, _GLANCE_S)):
            raise DisconnectedError(
                f"telemetry {telemetry.path}: the program closed the connection"
            )


def run(
    program: Program, interval_s: float, count: int | None, console: Console, json: bool
) -> None:
    """Watch a program on a terminal, as plain tables, or as JSON."""
    live = not json and sys.stdout.isatty() and not console.is_dumb_terminal
    timeout = {"timeout_s": _ANSWER_WITHIN_S} if live else {}
    with interruptible(), Telemetry(program.socket, **timeout) as telemetry:
        if live:
            with _live(console, interval_s, program) as show:
                ended = watch(program, interval_s, count, show, telemetry)
        else:
            write = _print_json if json else partial(_print, console)
            ended = watch(program, interval_s, count, _Plain(program, write), telemetry)
        if ended:
            # With --json only objects go to standard output.
            out = sys.stderr if json else sys.stdout
            print(f"{printable(program.prefix)} has ended", file=out, flush=True)


@dataclass(frozen=True)
class _Plain:
    """Prints one figure set after another, for scripts and pipes, where nobody can end a wait."""

    program: Program
    write: Callable[[Figures], None]

    def figures(self, figures: Figures) -> None:
        self.write(figures)

    def silence(self) -> None:
        raise TelemetryError(
            f"{printable(self.program.prefix)} does not answer",
            "is it stopped, or held by a debugger?",
        )


def _print_json(figures: Figures) -> None:
    print(dump(figures), flush=True)


def _print(console: Console, figures: Figures) -> None:
    narrow = too_narrow(console.width)
    console.print(narrow or render(figures, console.width, console.options.ascii_only))
    console.print()
    console.file.flush()


class _Screen:
    """Shows the latest figures on the terminal."""

    def __init__(self, console: Console, live: Live, program: Program) -> None:
        self._console, self._live, self._program = console, live, program
        self.last: Figures | None = None

    def figures(self, figures: Figures) -> None:
        self.last = figures
        self._live.update(fit(figures, self._console), refresh=True)

    def silence(self) -> None:
        notice = f"{printable(self._program.prefix)} does not answer; its last figures are below."
        shown: RenderableType = Text(f"{printable(str(self._program))} does not answer.")
        if self.last is not None:
            shown = fit(self.last, self._console, notice)
        self._live.update(shown, refresh=True)


@contextmanager
def _live(console: Console, interval_s: float, program: Program) -> Iterator[_Screen]:
    """Open an alternate screen; on leaving it, print the last figures."""
    first = Text(f"{printable(str(program))}: counting for {interval_s:g} s")
    screen: _Screen | None = None
    try:
        with Live(first, console=console, screen=True, auto_refresh=False) as live:
            screen = _Screen(console, live, program)
            yield screen
    finally:
        if screen is not None and screen.last is not None:
            _print(console, screen.last)
