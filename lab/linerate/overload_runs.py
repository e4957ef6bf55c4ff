# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from linerate import report
from linerate.arms import median_of
from linerate.comparisons import METRICS, CellPairs, Metric, pair_cell, pairs_of
from linerate.console import print_summary
from linerate.design import AA_SUFFIX
from linerate.errors import RunError
from linerate.experiments import Comparable, Control, Experiment, Sample
from linerate.journal import Journal
from linerate.links import remember_ports, use_ports
from linerate.output import REPORT
from linerate.overload import (
    DEFAULT_FORWARDERS,
    DEFAULT_LINKS,
    DEFAULT_SIZES,
    NAME,
    Options,
    Overload,
    cells,
    design_of,
)
from linerate.overload_summary import Design, Setup, summarise
from linerate.process import RunDirectory
from linerate.records import Trial, first_complaint
from linerate.run_file import RUN, Run
from linerate.summary import SUMMARY, CellSummary, Summary, dump
from linerate.verdict import unstable

T = TypeVar("T")

OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(Design)

COST = Metric(
    "busy_cycles_per_packet",
    "busy cycles per packet",
    lambda trial: trial.busy_cycles_per_packet,
)


def _read(kind: TypeAdapter[T], data: dict[str, Any], what: str) -> T:
    try:
        return kind.validate_python(data)
    except ValidationError as error:
        raise RunError(
            f"{RUN}: {what}.{first_complaint(error)}",
            "the file was changed, or another version of linerate wrote it",
        ) from error


@dataclass(frozen=True)
class Found:
    """The summary with the trials that the report draws."""

    summary: Summary
    trials: list[Trial]

    def files(self) -> dict[str, str]:
        return {SUMMARY: dump(self.summary), REPORT: report.render(self.summary, self.trials)}

    def show(self, console: Console) -> None:
        print_summary(console, self.summary)


class OverloadRuns(Experiment):
    name = NAME

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return asdict(design_of(_read(OPTIONS, options, "options")))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = _read(OPTIONS, options, "options")
        own_cells = cells(asked) != cells(
            replace(asked, links=asked.links or DEFAULT_LINKS, sizes=asked.sizes or DEFAULT_SIZES)
        )
        return {
            "--preset": asked.preset.name,
            "--link": asked.links or ([] if own_cells else DEFAULT_LINKS),
            "--sizes": asked.sizes or ([] if own_cells else DEFAULT_SIZES),
            "--forwarders": asked.forwarders or DEFAULT_FORWARDERS,
            "--blocks": asked.blocks if asked.blocks or own_cells else asked.preset.blocks,
            "--seed": asked.seed,
            "--line-rate": asked.line_rate,
            "--hugepages": asked.hugepages,
            "--keep-going": asked.keep_going,
            "--probe": asked.probe,
            "--generator-port": asked.generator_ports,
            "--forwarder-port": asked.forwarder_ports,
        }

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Overload:
        asked = _read(OPTIONS, options, "options")
        use_ports(asked.links, asked.generator_ports, asked.forwarder_ports)
        return Overload(asked, run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = _read(DESIGN, run.design, "design")
        remember_ports(design.generator_ports, design.forwarder_ports)
        setup = setup_of(run, design, trials)
        setup.warnings += _interrupted_blocks(trials)
        return Found(summarise(setup, trials, interrupted=not run.complete(len(trials))), trials)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [_read(DESIGN, each, "design") for each in designs]
        first = every[0]
        for other in every[1:]:
            _refuse_to_merge(first, other)
        blocks = [{(c.link, c.size): c.blocks for c in each.cells} for each in every]
        return asdict(
            replace(
                first,
                preset="merged",
                preset_note=f"{len(every)} runs, merged: "
                + "; ".join(f"{each.preset}, seed {each.seed}" for each in every),
                cells=[
                    replace(cell, blocks=sum(each[cell.link, cell.size] for each in blocks))
                    for cell in first.cells
                ],
            )
        )

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        found = self.findings(run, trials)
        design = _read(DESIGN, run.design, "design")
        result = Comparable()
        for cell in found.summary.cells:
            mine = [t for t in trials if (t.link, t.size) == (cell.link, cell.size)]
            measured = [t for t in mine if t.role == "measure"]
            # The first metric answers the experiment's question.
            pairs = pair_cell(cell, measured, [arm.label for arm in design.arms])[0]
            result.samples.extend(_rates(pairs, measured))
            result.controls.append(_control(pairs, measured))
            baseline = design.arms[0].label
            result.samples.extend(
                _costs(cell, [t for t in mine if t.role == "lower-load"], baseline)
            )
        return result


def setup_of(run: Run, design: Design, trials: list[Trial]) -> Setup:
    """The design and what the sessions say: the summary's, whenever and wherever it is made."""
    if not run.sessions:
        raise RunError(f"{RUN}: the run ended before its first trial", "start a new one")
    first, last = run.sessions[0], run.sessions[-1]
    return Setup(
        experiment=NAME,
        question=design.question,
        preset=design.preset,
        preset_note=design.preset_note,
        command=first.command,
        seed=design.seed,
        window_s=design.window_s,
        started_at=first.started_at,
        cells=design.cells,
        arms=design.arms,
        line_rate=design.line_rate,
        tsc_hz=first.tsc_hz,
        warnings=run.warnings,
        # A session that was killed has no end but its last trial.
        finished_at=last.ended_at or (trials[-1] if trials else last).started_at,
        machine=first.machine,
        versions=first.versions,
    )


def _interrupted_blocks(trials: list[Trial]) -> list[str]:
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


def _refuse_to_merge(first: Design, other: Design) -> None:
    def cells_of(design: Design) -> list[str]:
        return [f"{cell.link} {cell.size} B" for cell in design.cells]

    for what, mine, theirs in (
        ("forwarders", [a.label for a in first.arms], [a.label for a in other.arms]),
        ("cells", cells_of(first), cells_of(other)),
        ("window", first.window_s, other.window_s),
        ("--line-rate", first.line_rate, other.line_rate),
        ("--probe", first.probe, other.probe),
        ("--generator-port", first.generator_ports, other.generator_ports),
        ("--forwarder-port", first.forwarder_ports, other.forwarder_ports),
    ):
        if mine != theirs:
            raise RunError(
                f"the runs have different options: {what} {_told(mine)} and {_told(theirs)}",
                "merge runs of the same experiment with the same options; seed and number of "
                "blocks may differ",
            )


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _logs(trials: list[Trial], arm: str, baseline: str, metric: Metric) -> tuple[float, ...]:
    found, _ = pairs_of(trials, arm, baseline, metric)
    return tuple(math.log(a / b) for a, b in found)


def _rates(pairs: CellPairs, trials: list[Trial]) -> list[Sample]:
    limits = {arm.arm: arm.limited_by for arm in pairs.cell.arms}
    samples = []
    for label in pairs.pairs:
        held = [name for name in (label, pairs.baseline) if limits.get(name)]
        obstacle = None
        if held:
            by = " or the ".join(dict.fromkeys(str(limits[name]) for name in held))
            was = "was" if len(held) == 1 else "were"
            obstacle = f"{' and '.join(held)} {was} limited by the {by}"
        samples.append(
            Sample(
                link=pairs.cell.link,
                size=pairs.cell.size,
                arm=label,
                baseline=pairs.baseline,
                metric=pairs.metric,
                words=METRICS[pairs.metric].words,
                logs=_logs(trials, label, pairs.baseline, METRICS[pairs.metric]),
                obstacle=obstacle,
            )
        )
    return samples


def _control(pairs: CellPairs, trials: list[Trial]) -> Control:
    baseline = pairs.baseline
    judgement = unstable(pairs.worst_spread, pairs.low_load_loss)
    return Control(
        link=pairs.cell.link,
        size=pairs.cell.size,
        metric=pairs.metric,
        logs=_logs(trials, baseline + AA_SUFFIX, baseline, METRICS[pairs.metric]),
        unsound=judgement.reason if judgement else None,
    )


def _costs(cell: CellSummary, trials: list[Trial], baseline: str) -> list[Sample]:
    """Cycles per packet at the fixed lower loads, against the baseline's on the same bed."""
    found = []
    labels = [arm.arm for arm in cell.arms if not arm.arm.endswith(AA_SUFFIX)]
    for share in sorted({t.load_share for t in trials if t.load_share is not None}):
        mine = [t for t in trials if t.load_share == share]
        offered = median_of(
            t.attempted / t.duration_s for t in mine if t.valid and t.attempted and t.duration_s
        )
        found += [
            Sample(
                link=cell.link,
                size=cell.size,
                arm=label,
                baseline=baseline,
                metric=COST.name,
                words=f"{COST.words} at {share * 100:.0f} % load",
                logs=_logs(mine, label, baseline, COST),
                better="lower",
                load_share=share,
                level=offered,
            )
            for label in labels
            if label != baseline
        ]
    return [each for each in found if each.logs]
