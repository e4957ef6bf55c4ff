# SPDX-License-Identifier: BSD-3-Clause
"""Figures of an arm from its searches' results: a search is one value, never too good a one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from linerate.experiments.rfc2544.figures import figures_of
from linerate.experiments.rfc2544.metrics import compared, rate_of
from linerate.experiments.rfc2544.presets import TESTS, Preset, preset
from linerate.experiments.rfc2544.results import Searched
from linerate.experiments.rfc2544.table import latency_table, loss_table, recovery_table
from linerate.experiments.rfc2544.units import Unit
from linerate.records.cells import Cell
from linerate.records.summary import ArmSummary, CellSummary
from linerate.records.summary_figures import SearchFigures
from linerate.trial.search.back_to_back import back_to_back
from linerate.trial.search.device import Changed, Latency, Outcome
from linerate.trial.search.frame_loss import frame_loss
from linerate.trial.search.latency import latency
from linerate.trial.search.procedure import Invalid
from linerate.trial.search.recovery import recovery
from linerate.trial.search.simulated import Model, SimulatedForwarder
from linerate.trial.search.throughput import Found, Throughput
from linerate.verdict.metrics import BUFFER, RECOVERY

QUICK = preset("quick")


def figures(units: Sequence[Unit], of: Preset = QUICK) -> SearchFigures:
    """Return the figures of one arm whose searches were all completed."""
    found = [
        Searched("arm", block, unit=unit, complete=True, trials=[])
        for block, unit in enumerate(units)
    ]
    return figures_of(found, of, Cell("memif", 64, len(units)), TESTS)


def throughput(of: Preset = QUICK) -> Throughput:
    goals = {goal.name: Found(goal, "found", 4e6, 4.01e6, 4e6) for goal in of.goals}
    return Throughput(found=goals)


class Delays(SimulatedForwarder):
    """Its frames take this many microseconds, repetition by repetition."""

    def __init__(self, *middles: float) -> None:
        super().__init__(Model(1e6, 1e7))
        self._middles = iter(middles)

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        middle = next(self._middles) / 1e6
        found = Latency(
            5000, middle / 2, middle * 1.1, middle * 3, {0.5: middle, 0.99: 2 * middle},
            jitter=middle / 10, ipdv={0.5: middle / 5},
        )  # fmt: skip
        return Outcome(5000, 5000, seconds, found)


def test_latency_has_one_value_per_search() -> None:
    """Six processes with three repetitions each give six values, however often each repeats."""
    firsts = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)
    results = [
        latency(Delays(first, first + 1, first + 5), 1e6, seconds=1, repetitions=3, loads=(0.5,))
        for first in firsts
    ]
    (found,) = figures(
        [Unit(throughput=throughput(), latency=result) for result in results]
    ).latency
    assert (found.share, found.trials) == (0.5, 18)
    means = [1.1 * (first + 2) for first in firsts]
    assert found.average_us == pytest.approx(statistics.fmean(means))
    assert found.mean_us.n == 6
    assert found.mean_us.median == pytest.approx(statistics.median(means))
    assert (found.mean_us.low, found.mean_us.high) == pytest.approx((means[0], means[-1]))
    # The middle one of three repetitions.
    middles = [first + 1 for first in firsts]
    middle = statistics.median(middles)
    every = [*found.quantiles_us.values(), *found.pdv_us.values(), *(found.ipdv_us or {}).values()]
    assert len(every) == 5
    assert found.jitter_us is not None
    for each in [*every, found.jitter_us]:
        assert each.n == 6
        ends = [each.median * end / middle for end in (middles[0], middles[-1])]
        assert (each.low, each.high) == pytest.approx(ends)
    assert found.quantiles_us["0.99"].median == pytest.approx(2 * middle)
    assert found.pdv_us["0.99"].median == pytest.approx(1.5 * middle)
    assert (found.minimum_us, found.maximum_us) == pytest.approx((5, 195))


def test_bursts_have_one_value_per_search() -> None:
    results = [
        back_to_back(
            SimulatedForwarder(Model(4e6, 1e7, queue=queue, spread=0.01), seed=queue), 4e6,
            repetitions=9, longest_s=0.05,
        )
        for queue in (300, 350, 400, 450, 500, 550)
    ]  # fmt: skip
    found = figures(
        [Unit(throughput=throughput(), back_to_back=result) for result in results]
    ).back_to_back
    assert found is not None
    assert (found.repetitions, found.frames.n) == (54, 6)
    means = [statistics.fmean(result.lengths) for result in results]
    assert found.frames.median == pytest.approx(statistics.median(means))
    assert (found.frames.low, found.frames.high) == pytest.approx((min(means), max(means)))
    # RFC 9004 reports over all repetitions.
    every = [length for result in results for length in result.lengths]
    assert (found.minimum, found.maximum) == (min(every), max(every))
    assert found.average == pytest.approx(statistics.fmean(every))
    assert found.deviation == pytest.approx(statistics.stdev(every))
    assert found.implied_s is not None
    assert found.corrected_s is not None
    assert found.implied_s.median == pytest.approx(found.frames.median / 1e7)
    assert found.corrected_s.median == pytest.approx(0.6 * found.implied_s.median)


def test_bursts_that_reach_the_limit_leave_no_buffer_time() -> None:
    """The buffer time of the others would be too short."""
    results = [
        back_to_back(SimulatedForwarder(Model(capacity, 1e7)), 4e6, repetitions=2, longest_s=0.05)
        for capacity in (4e6, 4e6, 1.1e7)
    ]
    found = figures(
        [Unit(throughput=throughput(), back_to_back=each) for each in results]
    ).back_to_back
    assert found is not None
    assert (found.at_limit, found.maximum) == (2, 500_000)
    assert (found.implied_s, found.corrected_s) == (None, None)


class Tired(SimulatedForwarder):
    """Loses frames for this many seconds after the change, repetition by repetition."""

    def __init__(self, *seconds: float) -> None:
        super().__init__(Model(1e6, 1e7))
        self._seconds = iter(seconds)

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return Changed(
            Outcome(100, 90, seconds), Outcome(100, 99, then_seconds), next(self._seconds)
        )


def recovered(*searches: Sequence[float]) -> SearchFigures:
    return figures(
        [
            Unit(
                throughput=throughput(),
                recovery=recovery(Tired(*seconds), 1e6, watched_s=10, repetitions=len(seconds)),
            )
            for seconds in searches
        ]
    )


def test_recovery_has_one_value_per_search() -> None:
    found = recovered(*([first, first + 1, first + 5] for first in (1, 1.1, 1.2, 1.3, 1.4, 1.5)))
    assert found.recovery is not None
    assert found.recovery.repetitions == 18
    assert found.recovery.recovered_s is not None
    assert found.recovery.recovered_s.n == 6
    assert found.recovery.recovered_s.median == pytest.approx(3.25)
    assert found.recovery.recovered_s.low == pytest.approx(3)
    assert found.recovery.average_s == pytest.approx(3.25)


def test_one_repetition_that_did_not_recover_leaves_no_time() -> None:
    """The time of the others would be too good; the table says how many there are."""
    found = recovered([1, 1], [1, 9.9], *[[1, 1]] * 4)
    assert found.recovery is not None
    assert (found.recovery.repetitions, found.recovery.not_recovered) == (12, 1)
    assert (found.recovery.recovered_s, found.recovery.average_s) == (None, None)
    (row,) = printed(recovery_table(cell_of(arm=found)), "arm")
    assert row.split() == ["arm", "-", "-", "-", "0", "1", "12"]


def test_figures_beyond_what_was_tried_are_known_as_such() -> None:
    beyond = {each.metric.name: each.beyond for each in compared(QUICK)}

    def of(metric: str, unit: Unit) -> str | None:
        return beyond[metric](Searched("arm", 0, unit=unit))

    long, short = (
        back_to_back(SimulatedForwarder(Model(capacity, 1e7)), 4e6, repetitions=2, longest_s=0.05)
        for capacity in (1.1e7, 4e6)
    )
    assert of(BUFFER.name, Unit(back_to_back=long)) == "the longest burst that was tried passed"
    assert of(BUFFER.name, Unit(back_to_back=short)) is None
    well, ill = (
        recovery(Tired(*seconds), 1e6, watched_s=10, repetitions=2)
        for seconds in ([1, 1], [1, 9.9])
    )
    idle = recovery(SimulatedForwarder(Model(1e7, 1e7)), 1e6, watched_s=1, repetitions=1)
    assert of(RECOVERY.name, Unit(recovery=well)) is None
    assert of(RECOVERY.name, Unit(recovery=ill)) == "frames were lost to the end"
    assert of(RECOVERY.name, Unit(recovery=idle)) == "the overload lost nothing"
    assert of(RECOVERY.name, Unit()) is None


def test_a_search_that_found_no_load_found_0_and_one_without_a_result_nothing() -> None:
    goal = QUICK.goals[0]
    none = Throughput(found={goal.name: Found(goal, "below_minimum", None, 1e4, None)})
    assert rate_of(Searched("arm", 0, unit=Unit(throughput=none)), goal.name) == 0
    assert rate_of(Searched("arm", 0, unit=Unit(throughput=throughput())), goal.name) == 4e6
    failed = Throughput(invalid=Invalid("error", "its time was over"))
    assert rate_of(Searched("arm", 0, unit=Unit(throughput=failed)), goal.name) is None


def test_repetitions_without_a_result_do_not_count() -> None:
    """A test that failed in all searches but one was not repeated as often as planned."""
    conforming = preset("conforming")
    one = Tired(*range(1, 11))
    whole = recovery(one, 1e6, repetitions=10)
    failed = recovery(SimulatedForwarder(Model(1e6, 1e7, failing=1)), 1e6, repetitions=10)
    assert failed.invalid
    units = [
        Unit(throughput=throughput(conforming), recovery=each) for each in (whole, failed, failed)
    ]
    found = figures(units, conforming)
    # Its ten repetitions are enough, and failed ones do not count.
    assert not any("recovery" in each for each in found.deviations)
    assert "latency repeated 0 times instead of 20" in found.deviations
    assert "back-to-back repeated 0 times instead of 50" in found.deviations
    assert sum(found.reasons.values()) == 2
    found = figures(units[1:], conforming)
    assert "recovery repeated 0 times instead of 10" in found.deviations
    less = recovery(Tired(*range(1, 10)), 1e6, repetitions=9)
    units[0] = Unit(throughput=throughput(conforming), recovery=less)
    assert "recovery repeated 9 times instead of 10" in figures(units, conforming).deviations


def losses(*capacities: float, seconds: float = 1.0, failing: float = 0.0) -> SearchFigures:
    """Return searches of forwarders with these shares of 10 Mpps and a queue of two frames."""
    return figures(
        [
            Unit(
                throughput=throughput(),
                loss=frame_loss(
                    SimulatedForwarder(Model(each, 1e7, queue=2, failing=failing), seed=seed),
                    seconds=seconds,
                    attempts=1,
                ),
            )
            for seed, each in enumerate(capacities)
        ]
    )


def test_loss_at_a_load_that_searches_ended_above_has_no_median() -> None:
    """Five carry 95 % and end at 80 %; the sixth loses frames down to 60 %."""
    found = losses(*[9.5e6] * 5, 5.5e6)
    assert [(each.share, each.searches) for each in found.loss] == [(1, 6), (0.9, 6), (0.8, 6)]
    assert found.loss[0].loss_ratio.median == pytest.approx(0.05, abs=1e-6)
    assert [each.loss_ratio.median for each in found.loss[1:]] == [0, 0]
    assert [(each.share, each.tried, each.ended) for each in found.loss_ended] == [
        (0.7, 1, 5), (0.6, 1, 5), (0.5, 1, 5), (0.4, 1, 5),
    ]  # fmt: skip


def test_loss_of_a_search_whose_test_failed_is_that_of_the_loads_before() -> None:
    """The failure does not depend on what it lost, so the loads below keep their median."""
    found = losses(*[2e6] * 6, failing=0.2)
    counts = [each.searches for each in found.loss]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] > 0
    assert found.loss_ended == []
    for each in found.loss:
        assert each.loss_ratio.n == each.searches
        assert each.loss_ratio.median == pytest.approx(max(1 - 0.2 / each.share, 0), abs=1e-5)


def cell_of(**arms: SearchFigures) -> CellSummary:
    found = [
        ArmSummary(arm=name, forwarder=name, language="C", trials=1, invalid=0, search=each)
        for name, each in arms.items()
    ]
    return CellSummary(link="memif", size=64, blocks=6, arms=found, references=[], lower_load=[])


def printed(table: Table | None, first: str) -> list[str]:
    """Return the rows that begin with this."""
    assert table is not None
    text = StringIO()
    Console(file=text, width=150).print(table)
    return [line for line in text.getvalue().splitlines() if line.split()[:1] == [first]]


def test_the_table_says_how_many_tried_a_load() -> None:
    table = loss_table(cell_of(arm=losses(*[9.5e6] * 5, 5.5e6), other=losses(*[9.5e6] * 6)))
    (row,) = printed(table, "100")
    assert "5.00 % (6)" in row
    (row,) = printed(table, "60")
    assert "tried by 1 of 6" in row
    assert "not tried" in row


def test_latency_says_which_one_it_is() -> None:
    run = latency(Delays(10), 1e6, seconds=1, repetitions=1, loads=(0.5,))
    found = figures([Unit(throughput=throughput(), latency=run)])
    assert found.latency_definition == "RFC 1242, 3.8: store and forward"
    table = latency_table(cell_of(arm=found))
    assert table is not None
    assert "store and forward" in str(table.title)
