# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `paths`: tables of the floods and of the fixed loads, then the answers."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from linerate.host.text import counted
from linerate.records.summary import Band, CellSummary, Summary
from linerate.records.summary_figures import PathFigures
from linerate.report.console import interval, median, new_table, number, percent, print_notes, share
from linerate.report.in_short import print_in_short
from linerate.runs.progress import say


def flood_table(cell: CellSummary) -> Table:
    columns = (
        "path", "sent", "back", "95 % interval", "lost", "process", "NAPI", "ns/packet", "core",
        "valid",
    )  # fmt: skip
    title = (
        f"{cell.link}, {cell.size} B, {counted(cell.blocks, 'block')}, flood (kpps of this machine)"
    )
    table = new_table(title, columns)
    for arm in cell.arms:
        path = arm.path or PathFigures()
        kpps = arm.received_mpps.scaled(1e3) if arm.received_mpps else None
        sent = arm.generator_tx_mpps
        table.add_row(
            arm.arm,
            number(None if sent is None else sent * 1e3, 1),
            median(kpps, 1),
            interval(kpps, 0),
            share(None if arm.ceiling_share is None else max(1 - arm.ceiling_share, 0.0)),
            *_costs(path),
            f"{arm.trials - arm.invalid}/{arm.trials}",
        )
    return table


def load_table(cell: CellSummary) -> Table:
    columns = (
        "load", "path", "kpps", "lost", "process", "NAPI", "ns/packet", "core", "p50 us", "p99 us",
        "valid",
    )  # fmt: skip
    title = f"{cell.link}, {cell.size} B, the same rate for all"
    table = new_table(title, columns, text_columns=2)
    for entry in cell.lower_load:
        path = entry.path or PathFigures()
        offered = entry.offered_mpps
        table.add_row(
            f"{entry.load_share * 100:g} %",
            entry.arm,
            number(None if offered is None else offered * 1e3, 1),
            share(entry.loss_share),
            *_costs(path),
            median(path.latency_us.get("0.5"), 1),
            median(path.latency_us.get("0.99"), 1),
            f"{entry.trials - entry.invalid}/{entry.trials}",
        )
    return table


def lost_by(path: PathFigures) -> str:
    """Format every counter that names lost frames, with its share of the sent frames; a dash if
    unknown.
    """
    if path.lost is None:
        return "-"
    return ", ".join(f"{place} {share(part)}" for place, part in path.lost.items()) or "nothing"


def _costs(path: PathFigures) -> list[str]:
    return [
        median(path.process_ns, 0),
        median(path.napi_ns, 0),
        median(path.cpu_ns_per_packet, 0),
        percent(path.core_share.median if path.core_share else None),
    ]


def band_line(band: Band) -> str:
    """Format one published ratio, and ours beside it."""
    published = (
        f"published: {band.path} {band.ratio:.2f} of DPDK (taken as {band.low:.2f} to "
        f"{band.high:.2f})"
    )
    if band.ours is None:
        return f"{published}; ours: none, {band.note}"
    ours = f"ours: {band.arm} {band.ours:.2f} of {band.baseline}"
    if band.ours_low is not None and band.ours_high is not None:
        ours += f", {band.ours_low:.2f} to {band.ours_high:.2f}"
    if band.ours_in_band:
        where = {
            "inside": "inside that band",
            "partly": "partly inside that band",
            "outside": "outside that band",
        }
        return f"{published}; {ours}: {where[band.ours_in_band]}"
    return f"{published}; {ours}: {band.note}"


def who_pays(cell: CellSummary) -> str | None:
    """Describe which cores pay for which work; None if no trial recorded it."""
    for arm in cell.arms:
        cpus = arm.path.cpus if arm.path else {}
        if "process" in cpus and "napi" in cpus:
            process, napi = (", ".join(map(str, cpus[part])) for part in ("process", "napi"))
            return (
                f"CPU time per packet is the time of the path's process (CPU {process}) and of the "
                f"kernel's threads that receive for it (NAPI, CPU {napi}), over the frames that "
                "came back; receiving for the generator runs on the generator's own core"
            )
    return None


def notes(cell: CellSummary) -> list[str]:
    """Return the notes needed to read a cell's tables."""
    found = []
    if cell.ceiling:
        found.append(f"the generator put up to {cell.ceiling.pps / 1e3:,.1f} kpps on the wire")
    held = [arm.arm for arm in cell.arms if arm.limited_by]
    if held:
        found.append(
            f"limited by the generator, not by the path: {', '.join(held)}: each brought back "
            "nearly all that was sent"
        )
    if cell.common_pps:
        found.append(f"100 % of the common rate is {cell.common_pps / 1e3:,.1f} kpps")
    books = {True: "closed", False: "NOT closed", None: "none to close"}[cell.books_closed]
    return [*found, *filter(None, [who_pays(cell)]), f"books {books}"]


def print_summary(console: Console, summary: Summary) -> None:
    """Print tables, the answer in short, a sentence per primary comparison, and the published
    ratios.
    """
    for cell in summary.cells:
        console.print()
        console.print(flood_table(cell))
        if cell.lower_load:
            console.print(load_table(cell))
        for note in notes(cell):
            say(console, f"  {note}", "dim")
    print_in_short(console, summary)
    console.print()
    answers = [each.sentence for each in summary.comparisons if each.primary]
    for line in [*answers, *map(band_line, summary.bands)]:
        say(console, line)
    print_notes(console, summary)
