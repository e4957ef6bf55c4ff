# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `rfc2544`: per size one table of rates, and one of each other test."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from linerate.experiments.rfc2544.answer import answers
from linerate.experiments.rfc2544.summarise import lacking
from linerate.host.text import counted
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import ArmSummary, CellSummary, Comparison, Summary
from linerate.records.summary_figures import GoalFigure, SearchFigures
from linerate.records.trial import DISTURBED
from linerate.records.types import BoundKind
from linerate.report.console import (
    BURSTS,
    bursts,
    interval,
    limit_lines,
    median,
    new_table,
    number,
    print_notes,
    share,
)
from linerate.runs.progress import say
from linerate.verdict.ceiling import cost_leads
from linerate.verdict.sentences import controls

_GIGA = 1e9


def _searched(cell: CellSummary) -> list[tuple[ArmSummary, SearchFigures]]:
    """Return the arms, then the reference peer unless it is an arm."""
    return [(arm, arm.search) for arm in [*cell.arms, *cell.peers] if arm.search]


_BOUNDS: dict[BoundKind, str] = {
    "disturbed": "greater loads: no quiet window",
    "trials": "fewer trials than its goal asks for",
}


def bound_words(goal: GoalFigure) -> str:
    """Return why the forwarder may carry more than the rate; empty if it may not."""
    if not goal.is_bound:
        return ""
    return _BOUNDS[goal.at_least.kind] if goal.at_least else "100 % reached"


def reason_lines(reasons: Mapping[str, int]) -> list[str]:
    """Return one line for each kind of reason: reasons that differ only in numbers are one."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(re.sub(r"\d[\d.,]*", "#", reason), []).append(reason)
    return [
        f"{sum(reasons[each] for each in alike)} without a whole result: {alike[0]}"
        + (", and the like" if len(alike) > 1 else "")
        for alike in kinds.values()
    ]


def throughput_table(cell: CellSummary) -> Table | None:
    columns = (
        "forwarder", "goal", "loss up to", "Mpps", "95 % interval", "L1 Gbit/s", "L2 Gbit/s",
        "of 100 %", "searches", "bound",
    )  # fmt: skip
    found = new_table(
        f"{cell.link}, {cell.size} B, {counted(cell.blocks, 'block')}: throughput", columns, 2
    )
    for arm, figures in _searched(cell):
        for goal in figures.goals:
            rate = goal.rate
            mega = rate.pps.scaled(1e-6) if rate.pps else None
            least = "at least " if goal.is_bound else ""
            found.add_row(
                arm.arm,
                goal.goal,
                share(goal.loss_ratio),
                least + median(mega, 3),
                interval(mega, 3),
                number(rate.l1_bps / _GIGA if rate.l1_bps else None, 3),
                number(rate.l2_bps / _GIGA if rate.l2_bps else None, 3),
                f"{rate.share:.1%}".replace("%", " %") if rate.share is not None else "-",
                f"{rate.pps.n if rate.pps else 0}/{figures.searches}",
                bound_words(goal),
            )
    return found if found.row_count else None


def latency_table(cell: CellSummary) -> Table | None:
    """Return the latency table. `average` is RFC 2544's; all others but the least are medians over
    searches.
    """
    columns = (
        "forwarder", "load", "min", "average", "median", "p99", "p99.9", "PDV p99.9", "jitter",
        "trials",
    )  # fmt: skip
    definitions = {each.latency_definition for _, each in _searched(cell)} - {None}
    said = ", ".join(sorted(filter(None, definitions)))
    title = f"{cell.link}, {cell.size} B: latency in us ({said}), by share of the own throughput"
    found = new_table(title, columns)
    for arm, figures in _searched(cell):
        for entry in figures.latency:
            quantiles, pdv = entry.quantiles_us, entry.pdv_us
            found.add_row(
                arm.arm,
                f"{entry.share:.0%}".replace("%", " %"),
                number(entry.minimum_us, 1),
                number(entry.average_us, 1),
                median(quantiles.get("0.5"), 1),
                median(quantiles.get("0.99"), 1),
                median(quantiles.get("0.999"), 1),
                median(pdv.get("0.999"), 1),
                median(entry.jitter_us, 1),
                str(entry.trials),
            )
    return found if found.row_count else None


def loss_table(cell: CellSummary) -> Table | None:
    """Return the loss table. A load below the end of some searches has no median: it shows how many
    tried it.
    """
    arms = [(arm.arm, _losses(figures)) for arm, figures in _searched(cell) if figures.loss]
    shares = sorted({each for _, points in arms for each in points}, reverse=True)
    if not shares:
        return None
    title = f"{cell.link}, {cell.size} B: frame loss by offered load, median (number of searches)"
    found = new_table(title, ("load", *(name for name, _ in arms)))
    for each in shares:
        losses = [points.get(each, "not tried") for _, points in arms]
        found.add_row(f"{each:.0%}".replace("%", " %"), *losses)
    return found


def _losses(figures: SearchFigures) -> dict[float, str]:
    found = {
        each.share: f"{share(each.loss_ratio.median)} ({each.searches})" for each in figures.loss
    }
    return found | {
        each.share: f"tried by {each.tried} of {each.tried + each.ended}"
        for each in figures.loss_ended
    }


def burst_table(cell: CellSummary) -> Table | None:
    """Return the burst table. All repetitions, as RFC 9004 reports them; the interval and the times
    are of searches.
    """
    columns = (
        "forwarder", "average", "min", "max", "std dev", "95 % interval", "implied us",
        "corrected buffer us", "at limit", "repetitions",
    )  # fmt: skip
    title = f"{cell.link}, {cell.size} B: longest burst without loss, in frames"
    found = new_table(title, columns)
    for arm, figures in _searched(cell):
        if (entry := figures.back_to_back) is None:
            continue
        # A burst that passed at the longest length has a longer maximum.
        least = "at least " if entry.at_limit or entry.disturbed else ""
        found.add_row(
            arm.arm,
            least + number(entry.average, 0),
            number(entry.minimum, 0),
            least + number(entry.maximum, 0),
            number(entry.deviation, 0),
            interval(entry.frames, 0),
            median(entry.implied_s.scaled(1e6) if entry.implied_s else None, 1),
            median(entry.corrected_s.scaled(1e6) if entry.corrected_s else None, 1),
            str(entry.at_limit),
            str(entry.repetitions),
        )
    return found if found.row_count else None


def recovery_table(cell: CellSummary) -> Table | None:
    """Return the recovery table; without a time if some repetition did not recover."""
    columns = (
        "forwarder", "average ms to the last lost frame", "median", "95 % interval",
        "not overloaded", "not recovered", "repetitions",
    )  # fmt: skip
    found = new_table(f"{cell.link}, {cell.size} B: recovery from an overload", columns)
    for arm, figures in _searched(cell):
        if (entry := figures.recovery) is None:
            continue
        taken = entry.recovered_s.scaled(1e3) if entry.recovered_s else None
        found.add_row(
            arm.arm,
            number(None if entry.average_s is None else entry.average_s * 1e3, 1),
            median(taken, 1),
            interval(taken, 1),
            str(entry.not_overloaded),
            str(entry.not_recovered),
            str(entry.repetitions),
        )
    return found if found.row_count else None


def core_use_table(cell: CellSummary) -> Table | None:
    """Return the table at the loads where the probe counted, then at each forwarder's own
    throughput.
    """
    columns = (
        "load", "forwarder", "Mpps", "cycles/packet", "95 % interval", BURSTS, "busy", "full polls",
        "empty polls", "loss", "valid",
    )  # fmt: skip
    title = f"{cell.link}, {cell.size} B: core use, by share of 100 % (own: at the own throughput)"
    found = new_table(title, columns, 2)
    own = [each.at_throughput for _, each in _searched(cell) if each.at_throughput]
    shown = [(f"{entry.load_share:.0%}".replace("%", " %"), entry) for entry in cell.lower_load]
    for load, entry in [*shown, *(("own", entry) for entry in own)]:
        if entry.busy_cycles_per_packet is None:
            continue
        found.add_row(
            load,
            entry.arm,
            number(entry.offered_mpps, 3),
            median(entry.busy_cycles_per_packet, 1),
            interval(entry.busy_cycles_per_packet, 1),
            bursts(entry, 2),
            share(entry.busy_share.median if entry.busy_share else None),
            share(entry.full_share.median if entry.full_share else None),
            share(entry.rx_spin.median if entry.rx_spin else None),
            share(entry.loss_share),
            f"{entry.trials - entry.invalid}/{entry.trials}",
        )
    return found if found.row_count else None


def _print_cell(console: Console, cell: CellSummary) -> None:
    console.print()
    told = {True: "closed", False: "NOT closed", None: "none to close"}[cell.books_closed]
    found = f"books {told}"
    if cell.ceiling:
        flood = max(cell.ceiling.measured_mpps.values(), default=None)
        carried = "" if flood is None else f"; a flood carries {flood:.3f}"
        found = f"100 % = {cell.ceiling.pps / 1e6:.3f} Mpps ({cell.ceiling.peer}{carried}); {found}"
    say(console, f"{cell.link}, {cell.size} B: {found}")
    tables = [throughput_table, latency_table, loss_table, burst_table, recovery_table]
    tables.insert(0 if cost_leads(cell) else len(tables), core_use_table)
    for each in tables:
        if table := each(cell):
            # A title of the table's own would be wrapped to its width.
            say(console, str(table.title), "bold")
            table.title = None
            console.print(table)
    for line in limit_lines(cell):
        say(console, f"  {line}", "dim")
    for arm, figures in _searched(cell):
        if figures.void_windows:
            say(
                console,
                f"  {arm.arm}: {figures.void_windows} of {figures.windows} windows were void "
                "(sender late or forwarder starved) and repeated",
                "dim",
            )
        for line in reason_lines(figures.reasons):
            say(console, f"  {arm.arm}: {line}", "dim")


def conformity(summary: Summary) -> str:
    """Say whether these are figures of RFC 2544, and if not, why."""
    if summary.conforming:
        return "Measured as RFC 2544 has it."
    arms = [arm for cell in summary.cells for arm in cell.arms if arm.search]
    told = list(
        dict.fromkeys(
            deviation
            for arm in arms
            if not arm.arm.endswith(AA_SUFFIX) and arm.search
            for deviation in arm.search.deviations
        )
    )
    if any(arm.search.reasons or arm.search.unfinished for arm in arms if arm.search):
        told.append("not every test of every search has a result")
    if summary.interrupted:
        told.append("the run ended early")
    elif lacking(summary):
        told.append("not every forwarder was searched in every block")
    words = "; ".join(told) or "the control was not measured so"
    return f"Preset {summary.preset}, NOT conforming to RFC 2544: {words}."


def _print_secondary(console: Console, found: list[Comparison]) -> None:
    """Print those with an answer; count the others."""
    if found:
        console.print()
        say(console, "Secondary, exploratory:")
        _print_answered(console, found)
    console.print()


def _print_answered(console: Console, found: list[Comparison]) -> None:
    answered = [each for each in found if each.verdict in ("faster", "slower", "equal")]
    for comparison in answered:
        say(console, comparison.sentence)
    if len(answered) < len(found):
        counts = Counter(each.verdict for each in found)
        told = [f"{counts[name]} {name}" for name in ("undecided", "invalid") if counts[name]]
        say(
            console,
            f"{len(found) - len(answered)} of {len(found)} have no answer ({', '.join(told)}): the "
            "sentences in summary.json say why.",
        )


def _print_void(console: Console, summary: Summary) -> None:
    """Print why windows are void, and which processes had the lab's CPUs in them."""
    for reason in summary.invalid_reasons:
        if reason.code in DISTURBED:
            who = ", ".join(f"{name} {part:.0%}" for name, part in (reason.others or {}).items())
            said = f"{counted(reason.count, 'window')} void, such as: {reason.example}"
            said += f". Others had the lab's CPUs, in shares of one CPU: {who}" if who else ""
            say(console, said.replace("%", " %").replace("  %", " %"), "dim")


def print_rfc2544(console: Console, summary: Summary, *, verdicts: bool) -> None:
    """Print the answer, tables, then one sentence per comparison, then the notes. `verdicts`: the
    preset promises some; otherwise undecided comparisons are only counted.
    """
    console.print()
    for line in answers(summary, verdicts=verdicts):
        say(console, line, "bold")
    for cell in summary.cells:
        _print_cell(console, cell)
    console.print()
    primary = [each for each in summary.comparisons if each.primary]
    if verdicts:
        for comparison in primary:
            say(console, comparison.sentence)
    else:
        _print_answered(console, primary)
    _print_secondary(console, [each for each in summary.comparisons if not each.primary])
    _print_void(console, summary)
    say(console, f"The baseline against itself: {controls(summary.aa)}.")
    say(console, conformity(summary))
    print_notes(console, summary, "searches")
