# SPDX-License-Identifier: BSD-3-Clause
"""What a run prints: progress with the remaining time, the tables and the answer.

On a terminal one line that moves; otherwise a plain line every few seconds. No refresh thread: the
lab forks from its main thread and stays quiet while it measures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from linerate.ceiling import cost_leads, cost_loads, limits
from linerate.links import link
from linerate.records import Trial, cell_words
from linerate.sentences import no_lower_load
from linerate.summary import ArmSummary, CellSummary, Summary
from linerate.summary_figures import LowerLoad, Quartiles
from linerate.words import counted

PLAIN_EVERY_S = 5.0


def remaining(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s left" if minutes else f"{rest} s left"


class Monitor:
    """Counts trials and guesses the end from how long they took so far, once a block is over.

    A block's first trials say little: they pay for its start.
    """

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self.total = total
        self.done = 0
        self._earlier = 0
        self._started = time.monotonic()
        self._telling = False
        self._printed = 0.0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
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
        """More trials than planned are to come."""
        self.total += trials
        self._progress.update(self._task, total=self.total)

    def skip(self, trials: int) -> None:
        self.add(-trials)

    def announce(self, text: str) -> None:
        if self.console.is_terminal:
            self._progress.update(self._task, description=escape(text))
            self._progress.refresh()
        else:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def replayed(self, trial: Trial) -> None:
        """It was run in an earlier session: it tells nothing of how long the others will take."""
        self.done += 1
        self._earlier += 1

    def block_over(self) -> None:
        """The last trial was that of a block, of which at least one was run just now."""
        self._telling = self._telling or self.done > self._earlier

    def _left(self) -> str:
        """The remaining time; "" as long as nothing tells of it."""
        if not self._telling:
            return ""
        elapsed = time.monotonic() - self._started
        return remaining(elapsed / (self.done - self._earlier) * (self.total - self.done))

    def finished(self, trial: Trial) -> None:
        """It was run just now."""
        self.done += 1
        left = self._left()
        what = f"{cell_words(trial.link, trial.size)} {trial.arm}"
        if trial.invalid:
            self._progress.console.print(
                f"invalid: {what}, block {trial.block}: {trial.invalid}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        if self.console.is_terminal:
            self._progress.update(
                self._task, description=what, completed=self.done, left=left, refresh=True
            )
        elif time.monotonic() - self._printed >= PLAIN_EVERY_S or self.done == self.total:
            self._printed = time.monotonic()
            self.console.print(
                f"{self.done}/{self.total} trials, {what}{left and f', {left}'}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def number(value: float | None, digits: int = 2) -> str:
    """A figure, or a dash for one that cannot be had."""
    return "-" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    if value is None:
        return "-"
    return "0 %" if value == 0 else f"{value:.2%}".replace("%", " %")


def median(figure: Quartiles | None, digits: int = 2) -> str:
    return number(figure.median if figure else None, digits)


def interval(figure: Quartiles | None, digits: int = 2) -> str:
    """The median's 95 % interval, or a dash when there are too few trials for one."""
    if figure is None or figure.low is None or figure.high is None:
        return "-"
    return f"{number(figure.low, digits)} - {number(figure.high, digits)}"


# The published metric first: empty polls count in it, so a core that waits dilutes it.
BURSTS = "RX burst:\nall polls/\nnon-empty"


def bursts(entry: ArmSummary | LowerLoad, digits: int = 1) -> str:
    """Both average bursts; one dash for a program that reports neither."""
    if entry.average_rx_burst is None:
        return "-"
    every, nonempty = entry.average_rx_burst, entry.average_nonempty_rx_burst
    return f"{median(every, digits)}/{median(nonempty, digits)}"


def polls_from(cell: CellSummary) -> str | None:
    """Where the figures of polls come from; None when there are none."""
    counts = sorted({arm.probed_trials for arm in [*cell.arms, *cell.references]} - {0})
    if not counts:
        return None
    many = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    trials = "trial" if many == "1" else "trials"
    return f"RX bursts: seen by the probe, in {many} further {trials} of each program"


def new_table(title: str, columns: Sequence[str], text_columns: int = 1) -> Table:
    """`text_columns`: how many columns from the left hold words; the others hold figures."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for index, name in enumerate(columns):
        words = index < text_columns
        table.add_column(name, justify="left" if words else "right", no_wrap=words)
    return table


def null_table(cell: CellSummary) -> Table:
    columns = ("forwarder", "Mpps", "cycles/packet", "95 % interval", BURSTS, "valid")
    table = new_table(f"{cell.link}, {cell.size} B, {counted(cell.blocks, 'block')}", columns)
    for arm in [*cell.arms, *cell.peers]:
        cycles = arm.cycles_per_packet
        table.add_row(
            arm.arm,
            median(arm.mpps),
            median(cycles, 1),
            interval(cycles, 1),
            bursts(arm),
            f"{arm.trials - arm.invalid}/{arm.trials}",
        )
    return table


def flood_table(cell: CellSummary) -> Table:
    columns = (
        "forwarder", "gen TX", "gen RX", "fwd RX", "fwd TX", "drops", "lost before",
        "refused offers", BURSTS, "valid",
    )  # fmt: skip
    title = (
        f"{cell.link}, {cell.size} B, {counted(cell.blocks, 'block')}, flood (Mpps of this machine)"
    )
    table = new_table(title, columns)
    for arm in [*cell.arms, *cell.peers]:
        table.add_row(*flood_row(arm))
    return table


def flood_row(arm: ArmSummary) -> list[str]:
    return [
        arm.arm,
        number(arm.generator_tx_mpps),
        median(arm.received_mpps),
        median(arm.mpps),
        number(arm.forwarder_tx_mpps),
        share(arm.dropped_share),
        share(arm.lost_before_share),
        share(arm.refused_share),
        bursts(arm),
        f"{arm.trials - arm.invalid}/{arm.trials}",
    ]


def lower_load_table(cell: CellSummary) -> Table:
    columns = ("load", "forwarder", "Mpps", "cycles/packet", BURSTS, "loss", "valid")
    title = f"{cell.link}, {cell.size} B, fixed lower loads: cycles per packet while busy"
    table = new_table(title, columns, text_columns=2)
    for entry in cell.lower_load:
        table.add_row(
            f"{entry.load_share * 100:.0f} %",
            entry.arm,
            number(entry.offered_mpps),
            median(entry.busy_cycles_per_packet, 1),
            bursts(entry, 2),
            share(entry.loss_share),
            f"{entry.trials - entry.invalid}/{entry.trials}",
        )
    return table


def limit_lines(cell: CellSummary) -> list[str]:
    """Who was held back by what, and what decides then."""
    decides = ""
    if cost_leads(cell):
        *others, last = (f"{share * 100:g} %" for share in cost_loads(cell))
        loads = f"{', '.join(others)} and {last}" if others else last
        decides = f": the verdict is that of cycles per packet at {loads} load"
    return [
        f"limited by the {by}, not by the forwarder: {', '.join(names)}{decides}"
        for by, names in limits(cell).items()
    ]


def print_cell(console: Console, cell: CellSummary) -> None:
    console.print()
    if not link(cell.link).has_generator:
        console.print(null_table(cell))
        _print_polls(console, cell)
        return
    leads, missing = cost_leads(cell), no_lower_load(cell)
    tables = [flood_table(cell)]
    if cell.lower_load and not missing:
        tables.insert(0 if leads else 1, lower_load_table(cell))
    for table in tables:
        console.print(table)
    books = {True: "closed", False: "NOT closed", None: "none to close"}[cell.books_closed]
    peak = (
        f"100 % = {cell.ceiling.pps / 1e6:.2f} Mpps ({cell.ceiling.peer}); " if cell.ceiling else ""
    )
    console.print(f"  {peak}books {books}", style="dim")
    _print_polls(console, cell)
    for line in limit_lines(cell):
        console.print(f"  {line}", style="dim", markup=False, highlight=False, soft_wrap=True)
    if missing:
        console.print(f"  {missing}", style="dim", markup=False, highlight=False, soft_wrap=True)


def _print_polls(console: Console, cell: CellSummary) -> None:
    if note := polls_from(cell):
        console.print(f"  {note}", style="dim")


def print_summary(console: Console, summary: Summary) -> None:
    """Tables, then one sentence per primary comparison."""
    for cell in summary.cells:
        print_cell(console, cell)
    print_answers(console, summary)


def print_answers(console: Console, summary: Summary) -> None:
    """One sentence per primary comparison, and what else must be known."""
    console.print()
    for comparison in summary.comparisons:
        if comparison.primary:
            console.print(comparison.sentence, markup=False, highlight=False, soft_wrap=True)
    if summary.interrupted:
        console.print("Ended early: the figures above are from the trials done until then.")
    for warning in summary.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, soft_wrap=True)
