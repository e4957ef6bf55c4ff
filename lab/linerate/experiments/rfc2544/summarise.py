# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of a run of `rfc2544`. Pure: the records decide everything.

Verdicts come from `linerate.verdict.comparisons` and `linerate.verdict.judgement`, with one value
per search.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata

from linerate.experiments.rfc2544.figures import figures_of
from linerate.experiments.rfc2544.metrics import Compared, compared, rate_of
from linerate.experiments.rfc2544.presets import THROUGHPUT, Preset
from linerate.experiments.rfc2544.results import Searched, maximum_of, searched
from linerate.records.cells import Arm, Cell
from linerate.records.summary import ArmSummary, Ceiling, CellSummary, Summary
from linerate.records.summary_figures import GoalFigure
from linerate.records.trial import Test, Trial
from linerate.records.types import Limiter
from linerate.runs.run_summary import Setup, books_of, summary_of
from linerate.trial.search.latency import DEFINITION
from linerate.trial.search.replay import RATE_TOLERANCE
from linerate.verdict.arms import arm_of, summarise_arm, summarise_lower_load
from linerate.verdict.ceiling import CEILING_SHARE, UNPROVEN_SHARE, ceiling_of, cost_leads
from linerate.verdict.comparisons import CellPairs, Pairing, both_of, led, pair_costs, pair_searched
from linerate.verdict.metrics import NDR, PDR


@dataclass(kw_only=True)
class Asked(Setup):
    """The request, as far as the records do not contain it."""

    search: Preset
    tests: tuple[Test, ...]
    # Blocks over which the repetitions of a test were spread: of a merged run, those of each part.
    shared_by: int
    # The latency that the sender measures.
    latency_definition: str = DEFINITION
    # For a merged run: the part of each session.
    parts: dict[int, int] = field(default_factory=dict)

    def part_of(self, session: int) -> int:
        return self.parts.get(session, 0)

    def tests_of(self, label: str) -> tuple[Test, ...]:
        return tests_of(label, self.arms, self.tests)

    @property
    def lossless(self) -> str:
        """The goal that answers the experiment's question."""
        return self.search.goals[0].name


def tests_of(label: str, arms: list[Arm], tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """Return the tests of a label: the reference peer has only the throughput."""
    return tests if label in {arm.label for arm in arms} else THROUGHPUT


# The searches of each cell, by link and size.
Searches = Mapping[tuple[str, int], list[Searched]]


def searches_of(asked: Asked, trials: list[Trial]) -> Searches:
    """Run all procedures again. That takes long: do it once for summary, page and others."""
    return {
        (cell.link, cell.size): searched(
            [t for t in trials if t.cell.key == cell.key],
            asked.search,
            asked.tests_of,
            asked.shared_by,
        )
        for cell in asked.cells
    }


@dataclass(frozen=True)
class _Cell:
    """One cell's trials and their searches."""

    cell: Cell
    trials: list[Trial]
    units: list[Searched]

    def of(self, label: str) -> list[Searched]:
        return [each for each in self.units if each.arm == label]


def summarise(
    asked: Asked, trials: list[Trial], searches: Searches | None = None, *, interrupted: bool
) -> Summary:
    """Return the summary. `searches`: of these trials, if they are known."""
    searches = searches_of(asked, trials) if searches is None else searches
    found: list[CellSummary] = []
    pairs: list[CellPairs] = []
    unlike: list[str] = []
    for cell in asked.cells:
        mine = [t for t in trials if t.cell.key == cell.key]
        if not mine:
            continue
        whole = _Cell(cell, mine, searches[cell.link, cell.size])
        summary = _cell_summary(asked, whole)
        found.append(summary)
        pairs += _pairs(asked, whole, summary)
        unlike += _unlike(whole)
    whole_run = summary_of(asked, trials, found, pairs, interrupted=interrupted)
    whole_run.versions |= _library()
    whole_run.warnings += [*_unprobed(asked.cells, trials), *unlike]
    whole_run.conforming = _conforming(whole_run)
    return whole_run


def _library() -> dict[str, str]:
    return {"MLRsearch": metadata.version("MLRsearch")}


def _conforming(summary: Summary) -> bool | None:
    """Return True if every figure was measured as RFC 2544 requires, and completely; None without
    any.
    """
    figures = [arm.search for cell in summary.cells for arm in cell.arms if arm.search]
    if not figures:
        return None
    return not (
        summary.interrupted
        or lacking(summary)
        or any(each.deviations or each.reasons or each.unfinished for each in figures)
    )


def lacking(summary: Summary) -> bool:
    """Return True if an arm has fewer searches than there are blocks."""
    return any(
        arm.search is None or arm.search.searches < cell.blocks
        for cell in summary.cells
        for arm in cell.arms
    )


# -- one cell ------------------------------------------------------------------------------------


def _cell_summary(asked: Asked, whole: _Cell) -> CellSummary:
    cell = whole.cell
    tests = [t for t in whole.trials if (t.role, t.request.load) == ("self-test", "flood")]
    ceiling = _ceiling(asked, whole, tests)
    flooded = _flooded(asked, tests)
    found = [_arm(asked, whole, arm) for arm in asked.arms if whole.of(arm.label)]
    references = []
    names = {trial.arm for trial in tests}
    own = {arm.label for arm in asked.arms}
    for name in sorted(names):
        mine = [trial for trial in tests if trial.arm == name]
        entry = summarise_arm(name, mine, [])
        if whole.of(name) and name not in own:
            entry.search = figures_of(whole.of(name), asked.search, cell, THROUGHPUT)
        references.append(entry)
    # With another generator there is no flood, but a peer is searched as well.
    unflooded = sorted({each.arm for each in whole.units} - names - own)
    references += [_arm(asked, whole, Arm(name, name)) for name in unflooded]
    for entry in found:
        _place(asked, whole, entry, flooded)
    labels = {arm.label for arm in asked.arms}
    low = [t for t in whole.trials if t.request.test == "low-load" and t.arm in labels]
    fixed = [t for t in at_fixed_loads(asked.search, whole.trials) if t.arm in labels]
    return CellSummary(
        link=cell.link,
        size=cell.size,
        blocks=cell.blocks,
        ceiling=ceiling,
        arms=found,
        references=references,
        lower_load=summarise_lower_load(low + fixed),
        books_closed=books_of(whole.trials)[0],
    )


def at_fixed_loads(preset: Preset, trials: Sequence[Trial]) -> list[Trial]:
    """Return the core-use trials by which arms can be compared: not those at an own throughput."""
    return [
        t
        for t in trials
        if t.request.test == "core-use" and t.request.load_share in preset.core_use_loads
    ]


def _unprobed(cells: Sequence[Cell], trials: Sequence[Trial]) -> list[str]:
    """Return a warning for each forwarder that the probe could not measure."""
    warnings = []
    for cell in cells:
        seen: dict[str, bool] = {}
        for trial in trials:
            if (trial.cell.key, trial.request.test) == (cell.key, "core-use"):
                polled = trial.frames.busy_cycles_per_packet is not None
                if trial.valid:
                    seen[trial.forwarder] = seen.get(trial.forwarder, False) or polled
        missing = [name for name, polled in seen.items() if not polled]
        if missing:
            warnings.append(
                f"{cell.link} {cell.size} B: the probe cannot look at {', '.join(missing)}: its "
                "core use, cycles per packet among it, is not known"
            )
    return warnings


def _ceiling(asked: Asked, whole: _Cell, tests: list[Trial]) -> Ceiling | None:
    """Return 100 %: that of the searches, which the sender keeps, not the flood's.

    None if the parts of a merged run had different ones: then each search has its own.
    """
    found, maxima = ceiling_of(tests, asked.line_rate), _maxima(whole)
    if len(maxima) > 1:
        return None
    if found and maxima:
        found.pps = maxima[0]
    return found


def _maxima(whole: _Cell) -> list[float]:
    """Return the values of 100 % in the searches of a cell, each rate once."""
    found: list[float] = []
    for each in whole.units:
        maximum = maximum_of(each.trials)
        if maximum and not any(math.isclose(maximum, one, rel_tol=RATE_TOLERANCE) for one in found):
            found.append(maximum)
    return found


def _unlike(whole: _Cell) -> list[str]:
    """Return a warning if 100 % is not the same rate in all searches."""
    maxima, cell = _maxima(whole), whole.cell
    if len(maxima) < 2:
        return []
    return [
        f"{cell.link} {cell.size} B: 100 % was {', '.join(f'{pps / 1e6:.3f}' for pps in maxima)} "
        "Mpps in the runs that were merged: every share of it is of the search's own run"
    ]


def _flooded(asked: Asked, tests: list[Trial]) -> dict[int, Ceiling]:
    """Return the best reference peer's rate in a flood, by the part of a merged run."""
    by_part: dict[int, list[Trial]] = {}
    for trial in tests:
        by_part.setdefault(asked.part_of(trial.session), []).append(trial)
    return {part: found for part, mine in by_part.items() if (found := ceiling_of(mine, None))}


def _arm(asked: Asked, whole: _Cell, arm: Arm) -> ArmSummary:
    units = whole.of(arm.label)
    trials = [trial for each in units for trial in each.trials]
    figures = figures_of(
        units, asked.search, whole.cell, asked.tests_of(arm.label), asked.latency_definition
    )
    return arm_of(arm, trials, search=figures)


def _place(asked: Asked, whole: _Cell, entry: ArmSummary, flooded: Mapping[int, Ceiling]) -> None:
    """Set how near the arm came to 100 %, and whether generator or link limited it.

    The reference peer is searched in the same blocks: the share is the median over pairings of the
    arm's rate over the peer's; or with --line-rate that of the arm's rates over it.
    """
    goal = asked.lossless
    rates = [rate for each in whole.of(entry.arm) if (rate := rate_of(each, goal))]
    if not rates:
        return
    if asked.line_rate:
        entry.ceiling_share = statistics.median(rates) / asked.line_rate
    elif flooded:
        by_pairing = _by_pairing(whole.units, partial(rate_of, goal=goal), THROUGHPUT)
        ratios = [
            own / best
            for part, ceiling in flooded.items()
            for own, best in both_of(
                {
                    pairing: here
                    for pairing, here in by_pairing.items()
                    if asked.part_of(pairing[1]) == part
                },
                entry.arm,
                ceiling.peer,
            )[0]
        ]
        entry.ceiling_share = statistics.median(ratios) if ratios else None
        entry.ceiling_unproven = bool(entry.ceiling_share and entry.ceiling_share > UNPROVEN_SHARE)
    if _at_maximum(entry.search.goals[0] if entry.search else None):
        entry.limited_by = _limiter(asked, whole.of(entry.arm), flooded)
        entry.ceiling_unproven = False
    elif entry.ceiling_share and entry.ceiling_share >= CEILING_SHARE:
        entry.limited_by = None if entry.ceiling_unproven else "link"


def _limiter(asked: Asked, units: list[Searched], flooded: Mapping[int, Ceiling]) -> Limiter:
    """Return what limits at 100 %: the sender if it does not keep the peer's rate in a flood, else
    the link, which carries no more; or the requested line rate, if the peer carries more in a
    flood.

    The parts of a merged run may differ: then it is the limiter of most searches.
    """

    def by_sender(each: Searched) -> bool:
        peer = flooded.get(asked.part_of(each.trials[0].session))
        maximum = maximum_of(each.trials)
        return bool(peer and maximum and maximum < peer.pps * (1 - RATE_TOLERANCE))

    if asked.line_rate and not all(
        asked.line_rate > peer.pps * (1 - RATE_TOLERANCE) for peer in flooded.values()
    ):
        return "line rate"
    ended = [by_sender(each) for each in units if _ended_by_maximum(each, asked.lossless)]
    return "generator" if 2 * sum(ended) > len(ended) else "link"


def _ended_by_maximum(searched: Searched, goal: str) -> bool:
    throughput = searched.unit.throughput
    found = throughput.found.get(goal) if throughput else None
    return found is not None and found.state == "at_maximum"


def _at_maximum(goal: GoalFigure | None) -> bool:
    """Return True if most searches ended at 100 %."""
    return goal is not None and goal.searches > 0 and 2 * goal.at_maximum > goal.searches


def _pairs(asked: Asked, whole: _Cell, summary: CellSummary) -> list[CellPairs]:
    """Pair every arm with the baseline, first by the metric that answers the question: see
    `comparisons.led`.
    """
    labels = [arm.label for arm in asked.arms]
    begun = _begun(whole.units)
    rates = [
        pair_searched(
            summary,
            PDR if goal.loss_ratio else NDR,
            _by_pairing(whole.units, partial(rate_of, goal=goal.name), THROUGHPUT),
            labels,
            planned=begun,
            primary=place == 0,
        )
        for place, goal in enumerate(asked.search.goals)
    ]
    used = at_fixed_loads(asked.search, whole.trials)
    result = led(rates, pair_costs(summary, used, labels, begun), costs_lead=cost_leads(summary))
    for figure in compared(asked.search):
        values = _by_pairing(whole.units, figure.value, figure.tests)
        # Without any value this was not measured, or is no figure of these forwarders.
        if any(label in here for here in values.values() for label in labels):
            result.append(
                pair_searched(
                    summary,
                    figure.metric,
                    values,
                    labels,
                    planned=begun,
                    load_share=figure.load_share,
                    unknown=_unknown(whole, figure, labels),
                )
            )
    return result


def _unknown(whole: _Cell, figure: Compared, labels: Sequence[str]) -> dict[str, str]:
    """Return why the figure of an arm is unknown, by label: in a search it lay beyond everything
    that was tried.
    """
    found = {}
    for label in labels:
        searches = whole.of(label)
        if reasons := [why for each in searches if (why := figure.beyond(each))]:
            often = f"in {len(reasons)} of {len(searches)} searches of {label}"
            found[label] = f"{often} {reasons[0]}, so that its figure is not known"
    return found


def _begun(units: Sequence[Searched]) -> int:
    """Return the number of blocks with a search."""
    return len({each.block for each in units})


def _by_pairing(
    units: Sequence[Searched], value: Callable[[Searched], float | None], tests: Sequence[Test]
) -> dict[Pairing, dict[str, float]]:
    """Return one value per search whose trials of these tests are of one pairing, by pairing and
    arm.
    """
    found: dict[Pairing, dict[str, float]] = {}
    for each in units:
        pairing = each.pairing_of(*tests)
        if pairing and (one := value(each)) is not None:
            found.setdefault(pairing, {})[each.arm] = one
    return found


@dataclass(frozen=True)
class Rates:
    """The lossless rates of one cell: compared, and one by one."""

    pairs: CellPairs
    by_pairing: dict[Pairing, dict[str, float]]

    def both(self, label: str) -> tuple[list[tuple[float, float]], int]:
        """Return the arm's and the baseline's, for each pairing that both have; and in how many one
        was 0.
        """
        return both_of(self.by_pairing, label, self.pairs.baseline)


def rates_of(asked: Asked, summary: CellSummary, units: list[Searched]) -> Rates:
    """Return the rates. `units`: of this cell."""
    rates = _by_pairing(units, partial(rate_of, goal=asked.lossless), THROUGHPUT)
    labels = [arm.label for arm in asked.arms]
    pairs = pair_searched(summary, NDR, rates, labels, planned=_begun(units), primary=True)
    return Rates(pairs, rates)
