# SPDX-License-Identifier: BSD-3-Clause
"""What a run of `rfc2544` prints: per size one table of rates, and one of each other test."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from linerate.console import interval, limits, median, new_table, number, share
from linerate.design import AA_SUFFIX
from linerate.sentences import controls
from linerate.summary import ArmSummary, CellSummary, SearchFigures, Summary

_GIGA = 1e9


def _searched(cell: CellSummary) -> list[tuple[ArmSummary, SearchFigures]]:
    """The arms, then the reference peer."""
    return [(arm, arm.search) for arm in [*cell.arms, *cell.references] if arm.search]


def throughput_table(cell: CellSummary) -> Table | None:
    columns = (
        "forwarder", "goal", "loss up to", "Mpps", "95 % interval", "L1 Gbit/s", "L2 Gbit/s",
        "of 100 %", "searches",
    )  # fmt: skip
    found = new_table(f"{cell.link}, {cell.size} B, {cell.blocks} blocks: throughput", columns, 2)
    for arm, figures in _searched(cell):
        for goal in figures.goals:
            mega = goal.pps.scaled(1e-6) if goal.pps else None
            reached = goal.pps.median / cell.ceiling.pps if goal.pps and cell.ceiling else None
            found.add_row(
                arm.arm,
                goal.goal,
                share(goal.loss_ratio),
                median(mega, 3),
                interval(mega, 3),
                number(goal.l1_bps / _GIGA if goal.l1_bps else None, 3),
                number(goal.l2_bps / _GIGA if goal.l2_bps else None, 3),
                f"{reached:.1%}".replace("%", " %") if reached is not None else "-",
                f"{goal.pps.n if goal.pps else 0}/{figures.searches}",
            )
    return found if found.row_count else None


def latency_table(cell: CellSummary) -> Table | None:
    columns = ("forwarder", "load", "min", "mean", "median", "p99", "p99.9", "PDV p99.9", "trials")
    title = f"{cell.link}, {cell.size} B: latency in us, by share of the own throughput"
    found = new_table(title, columns)
    for arm, figures in _searched(cell):
        for entry in figures.latency:
            quantiles, pdv = entry.quantiles_us, entry.pdv_us
            found.add_row(
                arm.arm,
                f"{entry.share:.0%}".replace("%", " %"),
                number(entry.minimum_us, 1),
                median(entry.mean_us, 1),
                median(quantiles.get("0.5"), 1),
                median(quantiles.get("0.99"), 1),
                median(quantiles.get("0.999"), 1),
                median(pdv.get("0.999"), 1),
                str(entry.trials),
            )
    return found if found.row_count else None


def loss_table(cell: CellSummary) -> Table | None:
    arms = [
        (arm.arm, {each.share: each.loss_ratio for each in figures.loss})
        for arm, figures in _searched(cell)
        if figures.loss
    ]
    shares = sorted({each for _, points in arms for each in points}, reverse=True)
    if not shares:
        return None
    title = f"{cell.link}, {cell.size} B: frame loss by offered load (median; - : not reached)"
    found = new_table(title, ("load", *(name for name, _ in arms)))
    for each in shares:
        losses = [points[each].median if each in points else None for _, points in arms]
        found.add_row(f"{each:.0%}".replace("%", " %"), *map(share, losses))
    return found


def burst_table(cell: CellSummary) -> Table | None:
    columns = ("forwarder", "frames", "95 % interval", "corrected buffer us", "repetitions")
    found = new_table(f"{cell.link}, {cell.size} B: longest burst without loss", columns)
    for arm, figures in _searched(cell):
        if (entry := figures.back_to_back) is None:
            continue
        least = "at least " if 2 * entry.at_limit > entry.repetitions else ""
        corrected = entry.corrected_s.scaled(1e6) if entry.corrected_s else None
        found.add_row(
            arm.arm,
            least + median(entry.frames, 0),
            interval(entry.frames, 0),
            median(corrected, 1),
            str(entry.repetitions),
        )
    return found if found.row_count else None


def recovery_table(cell: CellSummary) -> Table | None:
    columns = (
        "forwarder", "ms to the last lost frame", "95 % interval", "not overloaded",
        "not recovered", "repetitions",
    )  # fmt: skip
    found = new_table(f"{cell.link}, {cell.size} B: recovery from an overload", columns)
    for arm, figures in _searched(cell):
        if (entry := figures.recovery) is None:
            continue
        taken = entry.recovered_s.scaled(1e3) if entry.recovered_s else None
        found.add_row(
            arm.arm,
            median(taken, 1),
            interval(taken, 1),
            str(entry.not_overloaded),
            str(entry.not_recovered),
            str(entry.repetitions),
        )
    return found if found.row_count else None


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)


def _print_cell(console: Console, cell: CellSummary) -> None:
    console.print()
    if cell.ceiling:
        flood = max(cell.ceiling.measured_mpps.values(), default=None)
        carried = "" if flood is None else f"; a flood carries {flood:.3f}"
        books = {True: "closed", False: "NOT closed", None: "none to close"}[cell.books_closed]
        _say(
            console,
            f"{cell.link}, {cell.size} B: 100 % = {cell.ceiling.pps / 1e6:.3f} Mpps "
            f"({cell.ceiling.peer}{carried}); books {books}",
        )
    for each in (throughput_table, latency_table, loss_table, burst_table, recovery_table):
        if found := each(cell):
            # A title of the table's own would be wrapped to its width.
            _say(console, str(found.title), "bold")
            found.title = None
            console.print(found)
    for names in limits(cell).values():
        _say(console, f"  limited by generator or link: {', '.join(names)}", "dim")
    for arm, figures in _searched(cell):
        if figures.void_windows:
            _say(
                console,
                f"  {arm.arm}: {figures.void_windows} of {figures.windows} windows were void "
                "(sender late or forwarder starved) and repeated",
                "dim",
            )
        for reason, count in figures.reasons.items():
            _say(console, f"  {arm.arm}: {count} without result: {reason}", "dim")


def conformity(summary: Summary) -> str:
    """Whether these are figures of RFC 2544, and if not, why."""
    if summary.conforming:
        return "Measured as RFC 2544 has it."
    deviations = {
        deviation: None
        for cell in summary.cells
        for arm in cell.arms
        if not arm.arm.endswith(AA_SUFFIX) and arm.search
        for deviation in arm.search.deviations
    }
    told = "; ".join(deviations) or "not every search has a result"
    return f"Preset {summary.preset}, NOT conforming to RFC 2544: {told}."


def print_rfc2544(console: Console, summary: Summary) -> None:
    """Tables, then one sentence per comparison, then what must be known to read them."""
    for cell in summary.cells:
        _print_cell(console, cell)
    console.print()
    for comparison in summary.comparisons:
        _say(console, comparison.sentence)
    if summary.aa:
        _say(console, f"The baseline against itself: {controls(summary.aa)}.")
    _say(console, conformity(summary))
    if summary.interrupted:
        _say(console, "Ended early: the figures above are from the searches done until then.")
    for warning in summary.warnings:
        _say(console, f"note: {warning}")
