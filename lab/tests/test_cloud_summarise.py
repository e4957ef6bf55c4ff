# SPDX-License-Identifier: BSD-3-Clause
"""From the records of whole runs to the summary: figures of cells, and what was not measured."""

from __future__ import annotations

import json
from dataclasses import replace

import by_schema
import pytest
from cloud_data import (
    DPDK,
    PART,
    XDP,
    Truth,
    design,
    levels,
    records,
    setup,
    split,
    void,
    with_part,
    work_beside,
)
from trials import made_trial

from linerate.experiments.cloud.analysis.summarise import summarise
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import place_of
from linerate.experiments.cloud.window import levels_of
from linerate.records.cloud_summary import CloudAnswers, CloudCellFigures, NotRun
from linerate.records.summary import Summary, dump
from linerate.records.trial import Trial

AGAIN = f"{DPDK}-again"
WITH_NOBODY = with_part(tenants=(0, 2), loads=("idle", "cpu"))
SLOWED = Truth(
    throughput={(("load", "cpu"),): -0.7},
    work={(("framework", XDP),): -0.7},
    spread=1e-4,
    loss_at=-1,
)


def summary(
    of: CloudDesign, trials: list[Trial] | None = None, *, interrupted: bool = False
) -> Summary:
    """Return the summary as it is written, after validation by its schema."""
    given = records(of, SLOWED) if trials is None else trials
    found = summarise(setup(of), of, given, interrupted=interrupted)
    by_schema.check(json.loads(dump(found)), "summary-1.json")
    return found


def answers(found: Summary) -> CloudAnswers:
    assert found.cloud
    return found.cloud


def cell(
    found: Summary, framework: str = XDP, load: str = "cpu", size: int = 64
) -> CloudCellFigures:
    (one,) = [
        each
        for each in answers(found).cells
        if (each.framework, each.load, each.size) == (framework, load, size)
    ]
    return one


def test_every_cell_has_its_figures() -> None:
    of = design(WITH_NOBODY, blocks=6)
    found = summary(of)
    told = [(each.framework, each.size, each.load) for each in answers(found).cells]
    assert told == [(place.framework, place.size, place.cell.load) for place in of.places]
    busy = cell(found)
    assert (busy.trials, busy.invalid, busy.tenants, busy.kind) == (6, 0, 2, "container")
    assert busy.left
    assert busy.left.median == pytest.approx(0.497, abs=0.001)
    assert busy.left.n == 6
    assert busy.offered_pps
    assert busy.received_pps
    assert busy.offered_pps.median == pytest.approx(busy.received_pps.median)
    assert busy.loss
    assert (busy.loss.median, busy.loss_free) == (0, 1)
    assert set(busy.latency_us) == {"0.5", "0.9", "0.99", "0.999"}
    assert busy.latency_us["0.99"].median == pytest.approx(3 * busy.latency_us["0.5"].median)
    assert busy.forwarder_cpu
    assert busy.forwarder_cpu.median == 0.5
    assert busy.tenants_cpu
    assert busy.tenants_cpu.median == pytest.approx(0.4)
    assert busy.steal
    assert busy.steal.median == pytest.approx(0.01)
    assert busy.softirq
    assert busy.softirq.median == pytest.approx(0.1)
    assert busy.switches_per_s
    assert busy.switches_per_s.median == 4
    assert set(busy.work) == set(busy.work_left) == {"bogo_ops"}
    assert busy.work_left["bogo_ops"].median == pytest.approx(0.497, abs=0.001)


def test_what_cannot_be_had_is_absent() -> None:
    found = summary(design(WITH_NOBODY, blocks=2))
    alone = cell(found, load="none")
    assert alone.left is None
    assert alone.tenants_cpu is None
    assert not alone.work
    assert alone.throttled is None
    assert alone.cache_misses_per_s is None
    assert cell(summary(design(blocks=2))).left is None
    idle = cell(found, load="idle")
    assert not idle.work_left
    assert idle.left


def test_what_is_left_is_of_the_same_bed() -> None:
    of = design(WITH_NOBODY, blocks=4)
    whole, torn = records(of, SLOWED), split(records(of, SLOWED), 0)
    before = cell(summary(of, whole)).left
    after = [cell(summary(of, torn), name, size=size).left for name in (DPDK, XDP)
             for size in (64, 1518)]  # fmt: skip
    assert before
    assert before.n == 4
    counts = {each.n for each in after if each}
    assert counts <= {3, 4}
    assert 3 in counts


def test_lost_frames_are_counted_where_they_were() -> None:
    of = design(blocks=2)
    found = cell(summary(of, records(of, Truth(loss_at=0.2, loss_spread=1e-6))))
    assert found.loss
    assert found.lost_at_ingress
    assert found.loss.median == pytest.approx(0.2, abs=1e-3)
    assert found.lost_at_ingress.median == pytest.approx(0.1, abs=1e-3)
    assert found.loss_free == 0


def test_windows_that_were_repeated_count_once() -> None:
    of = design(blocks=3)
    trials = [each for trial in records(of) for each in (void(trial), trial)]
    found = summary(of, trials)
    assert (cell(found).trials, cell(found).invalid) == (3, 0)
    assert found.invalid_trials == len(trials) / 2
    assert not answers(found).not_run


def test_own_rates_are_those_of_the_cells() -> None:
    found = answers(summary(design(blocks=1)))
    assert [(each.framework, each.size, each.pps) for each in found.own_rates] == [
        (DPDK, 64, 400e3), (DPDK, 1518, 400e3), (XDP, 64, 500e3), (XDP, 1518, 500e3),
    ]  # fmt: skip


def test_a_framework_without_its_own_rate_is_listed() -> None:
    of = design(blocks=3)
    trials = [trial for trial in records(of) if (trial.arm, trial.cell.key[1]) != (XDP, 64)]
    search = made_trial(experiment="cloud", role="search", arm=XDP, link="veth", load="paced")
    search.reject("idle", "nothing was carried")
    found = answers(summary(of, [search, *trials]))
    (rate,) = [each for each in found.own_rates if each.pps is None]
    assert (rate.framework, rate.size) == (XDP, 64)
    assert "nothing was carried" in rate.note
    assert [(each.what, each.reason, each.cells, each.trials) for each in found.not_run] == [
        (f"{XDP}: 3 of 6 cells", "its rate alone at 64 B is unknown", 3, 9)
    ]


def test_what_did_not_fit_is_listed() -> None:
    of = replace(design(blocks=4), minutes=2.5)
    trials = [trial for trial in records(of) if trial.block < 3]
    found = answers(summary(of, trials, interrupted=True))
    told = {each.what: (each.reason, each.cells, each.trials) for each in found.not_run}
    reason = "did not fit into --minutes 2.5, or the run was ended: --resume goes on with it"
    assert told == {
        f"{DPDK}: 6 of 6 cells": (reason, 6, 6),
        f"{AGAIN}: 6 of 6 cells": (reason, 6, 6),
        f"{XDP}: 6 of 6 cells": (reason, 6, 6),
        "tenants alone: 2 of 2 cells": (reason, 2, 2),
    }


def test_a_run_that_ended_in_its_first_block_lacks_no_rate() -> None:
    of = design(blocks=2)
    trials = [trial for trial in records(of) if trial.arm == DPDK and trial.block == 0]
    found = answers(summary(of, trials, interrupted=True))
    assert {each.reason for each in found.not_run} == {
        "the run ended before: --resume goes on with it"
    }
    assert sum(each.trials for each in found.not_run) == 2 * (18 + 2) - 6


def test_void_windows_are_listed_with_their_reason() -> None:
    of = design(blocks=3)
    trials = records(of)
    mine = [trial for trial in trials if trial.arm == XDP and trial.cell.key[1] == 64]
    spoilt = [void(trial) if trial in mine[:4] else trial for trial in trials]
    found = answers(summary(of, spoilt))
    (told,) = found.not_run
    assert (told.reason, told.trials) == ("the sender was late in every window", 4)
    assert told.what == f"{XDP}: {told.cells} of 6 cells"


def test_levels_that_the_machine_cannot_hold_are_listed() -> None:
    lost = NotRun(what="a core of its own", reason="there is none", cells=12, trials=0)
    found = answers(summary(replace(design(blocks=2), not_held=[lost])))
    assert found.not_run == [lost]


def test_levels_are_those_that_were_measured() -> None:
    of = design(with_part(tenants=(0, 2)), blocks=2)
    trials = [
        void(trial) if (place := place_of(trial)) and place.cell.load == "network" else trial
        for trial in records(of)
    ]
    assert answers(summary(of, trials)).factors == {
        "framework": [DPDK, XDP],
        "kind": ["none", "container"],
        "load": ["none", "idle", "cpu"],
        "tenants": ["0", "2"],
        "cpu": ["shared"],
        "size": ["64", "1518"],
        "rate": ["90 %"],
    }


def test_tables_of_all_experiments_have_what_they_need() -> None:
    found = summary(design(blocks=2))
    assert [(each.link, each.size) for each in found.cells] == [("veth", 64), ("veth", 1518)]
    arms = {each.arm: (each.trials, each.invalid, each.language) for each in found.cells[0].arms}
    assert arms == {DPDK: (6, 0, "C"), AGAIN: (6, 0, "C"), XDP: (6, 0, "Rust")}
    assert not found.comparisons
    assert found.smallest_detectable is None
    assert not found.warnings
    assert answers(found).took_s == 600
    assert answers(found).estimated_s


def test_a_resumed_run_does_not_know_how_long_it_took() -> None:
    of = design(blocks=2)
    assert answers(summary(of, split(records(of), 1))).took_s is None


def test_that_tenants_take_the_core_is_no_warning() -> None:
    of = design(WITH_NOBODY, blocks=6)
    trials = records(of)
    for trial in trials:
        for process in trial.program.processes:
            process.ran_s, process.waited_s = 50.0, 50.0
    assert any("other programs used" in each for each in summary(of, trials).warnings)
    for trial in trials:
        if levels_of(trial) and not levels(trial).tenants:
            for process in trial.program.processes:
                process.ran_s, process.waited_s = 100.0, 0.0
    assert not summary(of, trials).warnings


def test_what_ran_the_machines_is_told() -> None:
    of = design(with_part(kinds=("vm",)), blocks=1)
    trials = records(of)
    assert answers(summary(of, trials)).accelerator is None
    for trial in trials:
        if levels_of(trial):
            work_beside(trial).accelerator = "tcg"
    assert "emulated" in (answers(summary(of, trials)).accelerator or "")
    last = [trial for trial in trials if levels_of(trial) and work_beside(trial).accelerator][-1]
    work_beside(last).accelerator = "kvm"
    told = answers(summary(of, trials)).accelerator or ""
    assert told.startswith("TCG: ")
    assert ", in other sessions KVM: the processor" in told


def test_the_same_records_give_the_same_summary() -> None:
    of = design(with_part(tenants=(0, 1, 2)), blocks=3)
    assert dump(summary(of, records(of))) == dump(summary(of, records(of)))


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(with_part(frameworks=(XDP,)), id="one framework"),
        pytest.param(with_part(tenants=(0,)), id="no tenants"),
        pytest.param(with_part(loads=("network",)), id="one load"),
        pytest.param(with_part(loads=("idle",), sizes=(64,)), id="idle, one size"),
        pytest.param(with_part(sizes=(64,), rates=(0.5, 0.9, 1.2)), id="rates"),
        pytest.param(
            with_part(frameworks=(DPDK,), loads=("cpu",), sizes=(64,)), id="one cell beside"
        ),
        pytest.param(
            with_part(kinds=("container", "vm"), loads=("mixed", "io"), tenants=(0, 1, 2)),
            id="kinds",
        ),
    ],
)
@pytest.mark.parametrize("blocks", [1, 7])
def test_any_design_is_summarised(part: object, blocks: int) -> None:
    of = design(part, blocks=blocks)  # type: ignore[arg-type]
    found = summary(of)
    assert len([each for each in found.takeaways if each.origin == "study"]) == 8
    assert not answers(found).not_run
    if blocks == 1:
        assert {each.verdict for each in found.takeaways} == {"undecided"}


def test_a_run_without_records_is_summarised() -> None:
    found = summary(design(PART, blocks=2), [], interrupted=True)
    assert not answers(found).cells
    assert {each.verdict for each in found.takeaways} == {"undecided"}
    assert len(answers(found).not_run) == 4
    assert found.interrupted


def test_a_design_without_parts_is_summarised() -> None:
    found = summary(replace(design(), parts=[]), [])
    assert {each.verdict for each in found.takeaways} == {"undecided"}
    assert answers(found).cells == []


def test_cells_that_were_not_run_are_named() -> None:
    asked = design(with_part(tenants=(0, 2)), blocks=2)
    trials = [trial for trial in records(asked) if trial.block == 0]
    found = summarise(setup(asked), asked, trials, interrupted=True).cloud
    assert found
    for each in found.not_run:
        assert len(each.places) == each.cells
        assert all(" B at " in place for place in each.places)
