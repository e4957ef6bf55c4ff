# SPDX-License-Identifier: BSD-3-Clause
"""What all experiments do alike with a run that lies in a directory."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from linerate.host.errors import RunError
from linerate.links import remember_ports
from linerate.links.ports import MAX_PORTS, NAME
from linerate.records.cells import AA_SUFFIX
from linerate.records.output import REPORT
from linerate.records.run_file import RUN
from linerate.records.summary import SUMMARY, CellSummary, Summary, dump
from linerate.records.trial import Trial, cell_words, first_complaint
from linerate.runs.experiment import Comparable, Control, Sample
from linerate.runs.options import Options
from linerate.runs.run_summary import Design
from linerate.verdict.arms import median_of
from linerate.verdict.ceiling import cost_loads
from linerate.verdict.comparisons import CellPairs, blocks_of, pair_at_loads, pairs_of
from linerate.verdict.judgement import unequal_work
from linerate.verdict.metrics import COST, TrialMetric, words_of

T = TypeVar("T")
AnyDesign = TypeVar("AnyDesign", bound=Design)
AnyOptions = TypeVar("AnyOptions", bound=Options)

_CHANGED = "the file was changed, or another version of linerate wrote it"


@dataclass(frozen=True)
class SummaryFound(ABC):
    """A run's summary with the trials that its report draws. Each experiment says who shows it."""

    summary: Summary
    trials: list[Trial]

    @staticmethod
    @abstractmethod
    def page(summary: Summary, trials: list[Trial], /) -> str:
        """The report."""

    @staticmethod
    @abstractmethod
    def tell(console: Console, summary: Summary, /) -> None:
        """Print it."""

    def files(self) -> dict[str, str]:
        return {SUMMARY: dump(self.summary), REPORT: self.page(self.summary, self.trials)}

    def show(self, console: Console) -> None:
        self.tell(console, self.summary)


def read(kind: TypeAdapter[T], data: dict[str, Any], what: str) -> T:
    """A part of run.json; raises `RunError` naming the field that is wrong."""
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        raise RunError(f"{RUN}: {what}.{first_complaint(error)}", _CHANGED) from error


def remember_devices(links: Sequence[str], asked: Options | Design, what: str) -> None:
    """Make the link `ports` that of a run, of whose cells `links` are the links.

    Raises `RunError` for devices that make no link; whether they are there is not asked.
    """
    ours, theirs = len(asked.generator_ports), len(asked.forwarder_ports)
    if ours != theirs or not (NAME in links) <= ours <= MAX_PORTS:
        raise RunError(
            f"{RUN}: {what}: {ours} generator_ports and {theirs} forwarder_ports, where link "
            f"{NAME} has as many of one as of the other, and up to {MAX_PORTS}",
            _CHANGED,
        )
    remember_ports(asked.generator_ports, asked.forwarder_ports)


def read_options(kind: TypeAdapter[AnyOptions], options: dict[str, Any]) -> AnyOptions:
    """The options of a run, which may name devices."""
    asked = read(kind, options, "options")
    remember_devices(asked.links, asked, "options")
    return asked


def as_stored(kind: TypeAdapter[AnyDesign], design: AnyDesign) -> dict[str, Any]:
    """As it comes back from run.json: JSON has no tuples."""
    found: dict[str, Any] = kind.dump_python(design, mode="json")
    return found


def interrupted_blocks(trials: list[Trial]) -> list[str]:
    """A warning when blocks were cut by the end of a session: it costs them pairs."""
    sessions: dict[tuple[str, int, bool, int], set[int]] = {}
    for trial in trials:
        key = (trial.link, trial.size, trial.role == "lower-load", trial.block)
        sessions.setdefault(key, set()).add(trial.session)
    cut = sum(len(each) > 1 for each in sessions.values())
    if not cut:
        return []
    return [
        f"{cut} of {len(sessions)} blocks were interrupted and finished in another session: their "
        "trials are paired only within a session, so that some arms have a pair less"
    ]


def merge_designs(
    every: Sequence[AnyDesign], further: Sequence[tuple[str, str]] = (), *, free: str
) -> AnyDesign:
    """The design of runs put together; raises `RunError` naming what keeps them apart.

    `further`: the experiment's own options that must be alike, with the fields they are in.
    `free`: what may differ, for the error.
    """
    first = every[0]
    for other in every[1:]:
        _refuse_to_merge(first, other, further, free)
    blocks = [{(c.link, c.size): c.blocks for c in each.cells} for each in every]
    return replace(
        first,
        preset="merged",
        preset_note=f"{len(every)} runs, merged: "
        + "; ".join(f"{each.preset}, seed {each.seed}" for each in every),
        cells=[
            replace(cell, blocks=sum(each[cell.link, cell.size] for each in blocks))
            for cell in first.cells
        ],
    )


def _refuse_to_merge(
    first: Design, other: Design, further: Sequence[tuple[str, str]], free: str
) -> None:
    def cells_of(design: Design) -> list[str]:
        return [cell_words(cell.link, cell.size) for cell in design.cells]

    def asked(design: Design) -> dict[str, object]:
        return {
            "forwarders": [arm.label for arm in design.arms],
            "cells": cells_of(design),
            "window": design.window_s,
            "--line-rate": design.line_rate,
            **ports_of(design),
            **{what: getattr(design, field) for what, field in further},
        }

    refuse_unlike(
        asked(first),
        asked(other),
        f"merge runs of the same experiment with the same options; {free}",
    )


def ports_of(design: Design) -> dict[str, object]:
    """Of link `ports`, by option: others make it another link."""
    return {
        "--generator-port": design.generator_ports,
        "--forwarder-port": design.forwarder_ports,
    }


def refuse_unlike(one: Mapping[str, object], other: Mapping[str, object], hint: str) -> None:
    """Raise `RunError` naming the first option in which two runs differ."""
    for what, mine in one.items():
        theirs = other[what]
        if mine != theirs:
            raise RunError(
                f"the runs have different options: {what} {_told(mine)} and {_told(theirs)}", hint
            )


def _told(value: object) -> str:
    if value is None or value == []:
        return "none"
    value = getattr(value, "name", value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def logs(pairs: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Of the ratios, the first over the second."""
    return tuple(math.log(a / b) for a, b in pairs)


def rate_sample(
    pairs: CellPairs, label: str, values: Sequence[tuple[float, float]], zero_blocks: int
) -> Sample:
    """An arm's rate against its baseline's; a limit of link or generator is an obstacle."""
    limits = {arm.arm: arm.limited_by for arm in pairs.cell.arms}
    held = [name for name in (label, pairs.baseline) if limits.get(name)]
    obstacle = None
    if held:
        by = " or the ".join(dict.fromkeys(str(limits[name]) for name in held))
        was = "was" if len(held) == 1 else "were"
        obstacle = f"{' and '.join(held)} {was} limited by the {by}"
    return Sample(
        link=pairs.cell.link,
        size=pairs.cell.size,
        arm=label,
        baseline=pairs.baseline,
        metric=pairs.metric,
        words=words_of(pairs.metric),
        logs=logs(values),
        zero_blocks=zero_blocks,
        obstacle=obstacle,
    )


def control_sample(pairs: CellPairs, values: Sequence[tuple[float, float]]) -> Control:
    """Return the baseline against itself, by this metric."""
    return Control(
        link=pairs.cell.link,
        size=pairs.cell.size,
        metric=pairs.metric,
        logs=logs(values),
        load_share=pairs.load_share,
    )


def compared_costs(
    cell: CellSummary,
    trials: list[Trial],
    labels: list[str],
    metric: TrialMetric = COST,
    loads: Sequence[float] | None = None,
) -> Comparable:
    """The cost of a packet at the fixed lower loads, against the baseline's on the same bed.

    `trials`: those at such loads. `labels`: the arms, the baseline first. `loads`: None: where
    cycles per packet are known.
    """
    baseline = labels[0]
    shares = cost_loads(cell) if loads is None else loads
    found = Comparable()
    for pairs in pair_at_loads(cell, trials, labels, blocks_of(trials), metric, shares):
        mine = [t for t in trials if t.load_share == pairs.load_share]
        offered = median_of(_offered_pps(t) for t in mine if t.valid)
        itself = pairs_of(mine, baseline + AA_SUFFIX, baseline, metric)[0]
        found.controls.append(control_sample(pairs, itself))
        for label in pairs.pairs:
            values = pairs_of(mine, label, baseline, metric)[0]
            if not values:
                continue
            unequal = unequal_work(pairs.lost_by(label))
            sample = Sample(
                link=cell.link,
                size=cell.size,
                arm=label,
                baseline=baseline,
                metric=metric.name,
                words=words_of(metric.name, pairs.load_share),
                logs=logs(values),
                better="lower",
                load_share=pairs.load_share,
                level=offered,
                unsound=unequal.reason if unequal else None,
            )
            found.samples.append(sample)
    return found


def _offered_pps(trial: Trial) -> float | None:
    """Another generator does not tell for how long it sent."""
    if trial.attempted and trial.duration_s:
        return trial.attempted / trial.duration_s
    return trial.asked_pps
