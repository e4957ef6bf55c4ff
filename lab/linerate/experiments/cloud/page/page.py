# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `cloud`: the study's conclusions first, then their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from linerate.experiments.cloud import window
from linerate.experiments.cloud.design.design import LATE_AFTER_US
from linerate.experiments.cloud.design.estimate import duration
from linerate.experiments.cloud.design.levels import FRAMEWORK, LOAD, OWN, RATE, TENANTS, rate_words
from linerate.experiments.cloud.design.settings import (
    drawn,
    in_design_order,
    levels_of,
    main_setting,
)
from linerate.experiments.cloud.page import charts as cloud_charts
from linerate.experiments.cloud.page import curves as cloud_curves
from linerate.experiments.cloud.page import published, sentences
from linerate.experiments.cloud.page.answer import Untold, answer, lost, untold
from linerate.experiments.cloud.page.places import anchor
from linerate.host.text import counted
from linerate.links import FindLink
from linerate.records.cloud_summary import CloudAnswers, CloudCellFigures, TakeawayEntry
from linerate.records.summary import Summary
from linerate.records.trial import Trial
from linerate.report.page import Charts, render_page

TEMPLATE = Path(__file__).with_name("cloud.html.j2")

# The titles of sections, and the prefixes of their metrics' names.
SECTIONS = {
    "Throughput": ("throughput", "left", "received", "offered"),
    "Loss": ("loss", "lost"),
    "Latency": ("latency",),
    "The core's time": (
        "forwarder_cpu", "throttled", "tenants_cpu", "steal", "softirq", "switches", "cache",
        "memory", "cpu",
    ),
    "What the tenants get done": ("work", "tenant"),
}  # fmt: skip
OTHERS = "Further figures"
# A table with more rows is folded.
SHOWN_ROWS = 60
# The most statements of each metric that are shown, with the largest effects; the others are
# folded.
SHOWN_HELD = 6
# The chart that shows the answer.
LEAD = "heat-left"


@dataclass(frozen=True)
class Drawing:
    """A figure with the places of its charts."""

    anchor: str
    title: str
    caption: str
    panels: list[tuple[str, str]]

    @property
    def alone(self) -> bool:
        return len(self.panels) == 1


@dataclass
class Section:
    """A section. `name`: of its heading's place."""

    name: str
    title: str
    drawings: list[Drawing] = field(default_factory=list)


@dataclass(frozen=True)
class Bed:
    """Values for the drawing of the test bed. `apart`: some tenants were on a core of their own."""

    generator: str
    forwarder: str
    apart: bool
    link: str
    frameworks: str
    kinds: str
    most: int

    @property
    def boxes(self) -> int:
        return min(self.most, 3)


@dataclass(frozen=True)
class Told:
    """A takeaway, and its facts on the page."""

    entry: TakeawayEntry
    facts: list[str]
    reason: str


@dataclass(frozen=True)
class Group:
    """The tests of one metric. `folded`: the count, the verdict, and the entries; `untold`: the
    undecided ones, by reason.
    """

    title: str
    held: list[Told]
    folded: list[tuple[str, str, list[Told]]]
    untold: list[Untold]


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    answers = summary.cloud or CloudAnswers(factors={}, reference="-")
    takeaways = summary.takeaways
    answers = answers.model_copy(update={"cells": in_design_order(answers)})
    study = [_tell(each) for each in takeaways if each.origin == "study"]
    lead, sections = _sections(answers.cells, takeaways, placed)
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        cloud=answers,
        answer=answer(answers, takeaways),
        lost=lost(answers),
        lead=lead,
        study=[each for each in study if each.entry.verdict != "undecided"],
        asked=len(study),
        untold=untold(each.entry for each in study),
        groups=groups(takeaways),
        control=[_tell(each) for each in answers.control],
        sections=sections,
        cloud_bed=bed_of(answers.cells, trials),
        published=published,
        counts=_counts(takeaways),
        closed=len(answers.cells) > SHOWN_ROWS,
        has_vm=any(cell.kind == "vm" for cell in answers.cells),
        packages=_packages(trials),
        beside=sentences.beside_words,
        rate_words=rate_words,
        own_rate_words=sentences.own_rate_words,
        metric_words=sentences.metric_words,
        effect_words=sentences.effect_words,
        control_words=sentences.control_words,
        control_verdict=sentences.control_verdict,
        work_units=sentences.WORK_UNITS,
        work_kinds=[
            kind for kind in sentences.WORK_UNITS if any(kind in c.work for c in answers.cells)
        ],
        duration=duration_words,
        late_after_us=LATE_AFTER_US,
    )


def groups(takeaways: Sequence[TakeawayEntry]) -> list[Group]:
    """Return the groups by metric, in the order of the sections; entries in their rank."""
    tested = [each for each in takeaways if each.origin == "tested"]
    found = []
    order = [*SECTIONS, OTHERS]
    metrics = dict.fromkeys(each.metric for each in tested)
    for metric in sorted(metrics, key=lambda name: order.index(_section_of(name))):
        mine = [_tell(each) for each in tested if each.metric == metric]
        held = [each for each in mine if each.entry.verdict == "held"]
        folded = {"held": held[SHOWN_HELD:]}
        folded["not held"] = [each for each in mine if each.entry.verdict == "not held"]
        words = sentences.metric_words(metric)
        noun = "further statement" if held else "statement"
        folds = [(counted(len(each), noun), name, each) for name, each in folded.items()]
        found.append(
            Group(
                f"{words[:1].upper()}{words[1:]}",
                held[:SHOWN_HELD],
                [f for f in folds if f[2]],
                untold(each.entry for each in mine),
            )
        )
    return found


def _tell(entry: TakeawayEntry) -> Told:
    """Return the takeaway with its effect, p, test, and what the run could have found."""
    facts = sentences.facts(entry)
    if least := sentences.detectable_words(entry):
        facts.append(f"such a run finds {least} in four of five cases")
    return Told(entry, facts, entry.reason.removesuffix("."))


def _counts(takeaways: Sequence[TakeawayEntry]) -> str:
    """Return the number of statements beside the study's conclusions, by verdict."""
    tested = [each for each in takeaways if each.origin == "tested"]
    if not tested:
        return "-"
    held = sum(each.verdict == "held" for each in tested)
    return f"{held} of {counted(len(tested), 'statement')} held"


def duration_words(seconds: float | None) -> str:
    """Format a duration, such as `1 h 05 min`; a dash if it is unknown."""
    return "-" if seconds is None else duration(seconds)


# -- charts --------------------------------------------------------------------------------------


def _sections(
    cells: Sequence[CloudCellFigures], takeaways: Sequence[TakeawayEntry], placed: Charts
) -> tuple[Drawing | None, list[Section]]:
    """Return the chart that shows the answer, if there is one, and the others: those that every run
    has, and those that takeaways link to; each place once.
    """
    lead = None
    sections = {
        title: Section("about-" + title.lower().replace("'", "").replace(" ", "-"), title)
        for title in (*SECTIONS, OTHERS)
    }
    there: set[str] = set()
    for title, drawing in _always(cells, placed):
        if drawing.anchor == LEAD:
            lead = drawing
        else:
            sections[title].drawings.append(drawing)
    for metric, about, at in [*_curves(cells), *_linked(takeaways)]:
        if at in there:
            continue
        there.add(at)
        made = cloud_curves.figure(cells, metric, about, at)
        panels = [(each.title, placed.place(each.spec) or "") for each in made.panels]
        drawing = Drawing(made.anchor, made.title, made.caption, panels)
        sections[_section_of(metric)].drawings.append(drawing)
    return lead, [section for section in sections.values() if section.drawings]


def _section_of(metric: str) -> str:
    return next((t for t, begins in SECTIONS.items() if metric.startswith(begins)), OTHERS)


def _linked(takeaways: Sequence[TakeawayEntry]) -> list[tuple[str, tuple[str, ...], str]]:
    """Return metric, factors and place of every chart that a takeaway names."""
    return [
        (each.metric, tuple(each.about), each.chart.partition("#")[2])
        for each in takeaways
        if each.chart and "#" in each.chart
    ]


def _always(cells: Sequence[CloudCellFigures], placed: Charts) -> list[tuple[str, Drawing]]:
    main = main_setting(cells)
    if not main:
        return []
    setting = f"At {rate_words(main[0].rate)} of what is 100 %, CPU {main[0].cpu}"
    smallest = min(cell.size for cell in main)
    found = []
    for title, at, name, metric, caption in (
        ("Throughput", LEAD, "Throughput left, load by tenants", "left",
         f"{setting}: received frames, relative to the same forwarder in the same block without "
         "tenants. Medians over blocks; the stronger the colour, the less is left."),
        ("Loss", "heat-loss", "Loss, load by tenants", "loss",
         f"{setting}: share of the intended frames that was lost. Medians over blocks; the "
         "stronger the colour, the more."),
    ):  # fmt: skip
        panels = [
            (framework, placed.place(spec))
            for framework in levels_of(main, FRAMEWORK)
            if (spec := cloud_charts.heat_map(main, framework, metric))
        ]
        if panels:
            found.append((title, Drawing(at, name, caption, [(a, b or "") for a, b in panels])))
    small = [cell for cell in main if cell.size == smallest]
    bars = [
        (framework, placed.place(spec))
        for framework in levels_of(small, FRAMEWORK)
        if (spec := cloud_charts.cpu_time(small, framework))
    ]
    if bars:
        caption = (
            f"{setting}, {smallest} B. Time of the shared core, by control groups and, in ticks "
            "of 1/100 s, by the kernel. The other two include a part of the softirqs, so a bar "
            "can pass 100 %. Tenants on a core of their own count on that core."
        )
        title = "The core's time"
        found.append(
            (title, Drawing("cpu-time", "CPU time", caption, [(a, b or "") for a, b in bars]))
        )
    return found


def _curves(cells: Sequence[CloudCellFigures]) -> list[tuple[str, tuple[str, ...], str]]:
    """Return loss, latency and work by the varied factor: over rates, or tenants at one rate."""
    there = drawn(cells)
    if not there:
        return []
    over = RATE if len(levels_of(there, RATE)) > 1 else TENANTS
    about = (FRAMEWORK, LOAD, over)
    found = [("loss", about)]
    for quantile, metric in (("0.5", "latency_p50_us"), ("0.99", "latency_p99_us")):
        if any(quantile in cell.latency_us for cell in there):
            found.append((metric, about))
    if any(cell.work_left for cell in there):
        found.append(("work_left", (FRAMEWORK, LOAD, TENANTS)))
    return [(metric, factors, anchor(metric, factors)) for metric, factors in found]


# -- what it ran on ------------------------------------------------------------------------------


def bed_of(cells: Sequence[CloudCellFigures], trials: Sequence[Trial]) -> Bed:
    """Return the test bed; cores are those of the first trial that has them."""
    cpus: dict[str, int] = {}
    for trial in trials:
        for process in trial.program.processes:
            cpus.setdefault(process.role, process.cpus[0])
        found, cell = window.beside_of(trial), window.levels_of(trial)
        if found and found.core and cell and cell.cpu != "own":
            cpus.setdefault("shared", found.core.cpu)
    forwarder = cpus.get("forwarder", cpus.get("shared"))
    kinds = dict.fromkeys({"vm": "VM"}.get(cell.kind, cell.kind) for cell in cells if cell.tenants)
    frameworks = len(levels_of(drawn(cells), FRAMEWORK)) if cells else 0
    return Bed(
        generator=str(cpus.get("generator", "-")),
        forwarder="-" if forwarder is None else str(forwarder),
        apart=any(cell.tenants and cell.cpu == OWN for cell in cells),
        link=", ".join(dict.fromkeys(trial.cell.name for trial in trials)) or "-",
        frameworks=str(frameworks or "-"),
        kinds=" or ".join(kinds),
        most=max((cell.tenants for cell in cells), default=0),
    )


def _packages(trials: Sequence[Trial]) -> dict[str, str]:
    """Return the versions of the packages in the virtual machines."""
    return {
        name: version
        for trial in trials
        if (found := window.beside_of(trial))
        for name, version in found.tenant_packages.items()
    }
