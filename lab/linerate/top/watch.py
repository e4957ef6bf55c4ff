# SPDX-License-Identifier: BSD-3-Clause
"""The loop of `linerate top`: wait for an interval, ask, compare, show.

Lifecycle: ends after `count` intervals, when the program ends (both are success), or by a signal,
which leaves the terminal as it was (`Interrupted`, as in every other command). Threading: one
thread; nothing is drawn or asked beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from linerate.errors import DisconnectedError
from linerate.process import checkpoint, interruptible
from linerate.telemetry import Telemetry
from linerate.top.discover import Program, printable
from linerate.top.figures import Figures, compare, dump
from linerate.top.sample import Sampler
from linerate.top.screen import fit, render, too_narrow

Show = Callable[[Figures], None]
# So long a signal may wait.
_GLANCE_S = 0.05
# An interval may be so much shorter than asked for, to keep step; ticks before that are skipped.
_SHORTEST = 0.9


def watch(
    program: Program, interval_s: float, count: int | None, show: Show, telemetry: Telemetry
) -> bool:
    """Show figures at every interval. True: the program has ended; False: `count` were shown."""
    try:
        sampler = Sampler(telemetry)
        before = sampler.take()
        due = time.monotonic()
        shown = 0
        while count is None or shown < count:
            due = max(due + interval_s, time.monotonic() + _SHORTEST * interval_s)
            _wait_until(due, telemetry)
            now = sampler.take()
            show(compare(program, telemetry.version, before, now, datetime.now(UTC)))
            before = now
            shown += 1
    except DisconnectedError:
        return True
    return False


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
    """Watch, on a terminal, as plain tables, or as JSON."""
    with interruptible(), Telemetry(program.socket) as telemetry:
        with _output(console, json, interval_s, program) as show:
            ended = watch(program, interval_s, count, show, telemetry)
        if ended:
            # With --json only objects are on standard output.
            out = sys.stderr if json else sys.stdout
            print(f"{printable(program.prefix)} has ended", file=out, flush=True)


@contextmanager
def _output(console: Console, json: bool, interval_s: float, program: Program) -> Iterator[Show]:
    if json:
        yield lambda figures: print(dump(figures), flush=True)
    elif sys.stdout.isatty() and not console.is_dumb_terminal:
        with _live(console, interval_s, program) as show:
            yield show
    else:
        yield lambda figures: _print(console, figures)


def _draw(console: Console, figures: Figures) -> RenderableType:
    narrow = too_narrow(console.width)
    return narrow or render(figures, console.width, console.options.ascii_only)


def _print(console: Console, figures: Figures) -> None:
    console.print(_draw(console, figures))
    console.print()
    console.file.flush()


@contextmanager
def _live(console: Console, interval_s: float, program: Program) -> Iterator[Show]:
    """A screen of its own, which the terminal forgets; the last figures are printed behind it."""
    last: list[Figures] = []
    first = Text(f"{printable(str(program))}: counting for {interval_s:g} s")
    try:
        with Live(first, console=console, screen=True, auto_refresh=False) as live:

            def show(figures: Figures) -> None:
                last[:] = [figures]
                live.update(fit(figures, console), refresh=True)

            yield show
    finally:
        if last:
            _print(console, last[0])
