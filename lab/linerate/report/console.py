# SPDX-License-Identifier: BSD-3-Clause
"""Print the tables and the answer at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from linerate.host.text import counted, probability
from linerate.links import link
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import LowerLoad, Quartiles
from linerate.runs.progress import say
from linerate.verdict.ceiling import cost_leads, cost_loads, limits
from linerate.verdict.sentences import no_lower_load


def number(value: float | None, digits: int = 2) -> str:
    """Format a figure, or a dash if there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    if value is None:
        return "-"
    return "0 %" if value == 0 else f"{value:.2%}".replace("%", " %")


def p_value(value: float | None, digits: int = 4) -> str:
    """Format a p value; a value too small for these digits is shown as small, not 0."""
    return "-" if value is None else probability(value, digits).removeprefix("p ")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


def median(figure: Quartiles | None, digits: int = 2) -> str:
    return number(figure.median if figure else None, digits)


def interval(figure: Quartiles | None, digits: int = 2) -> str:
    """Format the median's 95 % interval, or a dash when there are too few trials for one."""
    if figure is None or figure.low is None or figure.high is None:
        return "-"
    return f"{number(figure.low, digits)} - {number(figure.high, digits)}"


# The published metric first: empty polls count in it, so a core that waits dilutes it.
BURSTS = "RX burst:\nall polls/\nnon-empty"


def bursts(entry: ArmSummary | LowerLoad, digits: int = 1) -> str:
    """Format both average bursts; one dash for a program that reports neither."""
    if entry.average_rx_burst is None:
        return "-"
    every, nonempty = entry.average_rx_burst, entry.average_nonempty_rx_burst
    return f"{median(every, digits)}/{median(nonempty, digits)}"


def polls_from(cell: CellSummary) -> str | None:
    """Return the source of the poll figures; None if there are none."""
    counts = sorted({arm.probed_trials for arm in [*cell.arms, *cell.references]} - {0})
    if not counts:
        return None
    many = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    trials = "trial" if many == "1" else "trials"
    return f"RX bursts: seen by the probe, in {many} further {trials} of each program"


def new_table(title: str, columns: Sequence[str], text_columns: int = 1) -> Table:
    """Make a table. `text_columns`: how many columns from the left hold words; the others hold
    figures.
    """
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


def own_share(cell: CellSummary, entry: LowerLoad) -> str:
    """Format the offered load as a share of the forwarder's own capacity in a flood. If something
    else limited the flood, its capacity is higher, and the share is an upper bound.
    """
    flood = next((arm for arm in cell.arms if arm.arm == entry.arm), None)
    if flood is None or flood.received_mpps is None or entry.offered_mpps is None:
        return "-"
    if not flood.received_mpps.median or flood.ceiling_unproven:
        return "-"
    most = "<= " if flood.limited_by else ""
    return f"{most}{percent(entry.offered_mpps / flood.received_mpps.median)}"


def lower_load_table(cell: CellSummary) -> Table:
    columns = (
        "load", "forwarder", "Mpps", "of its\nflood", "cycles/packet", BURSTS, "loss", "valid",
    )  # fmt: skip
    title = f"{cell.link}, {cell.size} B, fixed lower loads: cycles per packet while busy"
    table = new_table(title, columns, text_columns=2)
    for entry in cell.lower_load:
        table.add_row(
            f"{entry.load_share * 100:.0f} %",
            entry.arm,
            number(entry.offered_mpps),
            own_share(cell, entry),
            median(entry.busy_cycles_per_packet, 1),
            bursts(entry, 2),
            share(entry.loss_share),
            f"{entry.trials - entry.invalid}/{entry.trials}",
        )
    return table


def limit_lines(cell: CellSummary) -> list[str]:
    """Return sentences on what limited each forwarder, and what decides then."""
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
        say(console, f"  {line}", "dim")
    if missing:
        say(console, f"  {missing}", "dim")


def _print_polls(console: Console, cell: CellSummary) -> None:
    if note := polls_from(cell):
        console.print(f"  {note}", style="dim")


def print_summary(console: Console, summary: Summary) -> None:
    """Print tables, then one sentence per primary comparison."""
    for cell in summary.cells:
        print_cell(console, cell)
    print_answers(console, summary)


def print_answers(console: Console, summary: Summary) -> None:
    """Print one sentence per primary comparison, and the notes."""
    console.print()
    for comparison in summary.comparisons:
        if comparison.primary:
            say(console, comparison.sentence)
    print_notes(console, summary)


def print_notes(console: Console, summary: Summary, unit: str = "trials") -> None:
    """Print if the run ended early, and the notes on all figures. `unit`: its unit of work."""
    if summary.interrupted:
        say(console, f"Ended early: the figures above are from the {unit} done until then.")
    for warning in summary.warnings:
        say(console, f"note: {warning}")
