# SPDX-License-Identifier: BSD-3-Clause
"""From the records of whole runs to statements: which hold, which do not, and why some are not
known.

The rates at the end are of whole runs, over 200 seeds. Exact binomial tests at .05 reject neither
that at least 90 % of effects of one spread are found, nor that at most 5 % of absent effects are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from cloud_data import (
    DPDK,
    PART,
    SAME_PPS,
    XDP,
    Effects,
    Truth,
    design,
    levels,
    records,
    void,
    with_part,
    work_beside,
)
from factorial_data import false_p, missed_p, seeds

from linerate.experiments.cloud.analysis.control import Control
from linerate.experiments.cloud.analysis.statements import affordable
from linerate.experiments.cloud.analysis.study import names_of
from linerate.experiments.cloud.analysis.summary_entries import size_of
from linerate.experiments.cloud.analysis.takeaways import Takeaways, takeaways
from linerate.experiments.cloud.analysis.windows import windows_of
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import (
    CPU,
    FACTORS,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
)
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.page.places import link_to
from linerate.experiments.cloud.window import levels_of
from linerate.records.cloud_summary import TakeawayEntry
from linerate.runs.plans.blocks import arms
from linerate.verdict.stats import ALPHA

NETWORK, CPU_LOAD, SMALL = (LOAD, "network"), (LOAD, "cpu"), (SIZE, "64")
WORSE: Effects = {(NETWORK,): -0.7, ((LOAD, "cpu"),): -0.3, (NETWORK, SMALL): -0.4}
LOSES: Effects = {(NETWORK,): 0.2, ((LOAD, "cpu"),): 0.05, (NETWORK, SMALL): 0.1}
# All of the study's findings, with neighbours that lose more than half of their work to polling.
SHARE = ", as a share of that under idle load"
NOISY = Truth(
    throughput={**WORSE, ((FRAMEWORK, DPDK), NETWORK): -0.3, ((FRAMEWORK, DPDK), CPU_LOAD): -0.1},
    loss={**LOSES, ((FRAMEWORK, DPDK),): 0.03},
    latency={((LOAD, "cpu"),): 1.0},
    work={((FRAMEWORK, DPDK),): -0.8, ((FRAMEWORK, XDP),): -0.3},
)


def asked(
    of: CloudDesign, truth: Truth = NOISY, seed: int = 1, metrics: Iterable[str] = ("throughput",)
) -> Takeaways:
    windows = windows_of(records(of, truth, seed))
    return takeaways(windows, of, metrics=list(metrics), permutations=199)


def one(found: Takeaways, *words: str) -> TakeawayEntry:
    """Return the only statement with all of these words."""
    (entry,) = [each for each in found.entries if all(word in each.statement for word in words)]
    return entry


def study(found: Takeaways) -> list[str]:
    return [each.verdict for each in found.entries if each.origin == "study"]


def test_the_studys_conclusions_hold_where_they_are_true() -> None:
    found = asked(design(), metrics=("throughput", "loss"))
    assert study(found) == ["held"] * 8
    assert [each.statement for each in found.entries[:8]] == [
        f"packet size matters for throughput{SHARE}",
        f"the kind of load matters for throughput{SHARE}",
        f"network load with small packets is worst in throughput{SHARE}",
        f"DPDK and XDP differ in throughput{SHARE}",
        "packet size matters for loss",
        "the kind of load matters for loss",
        "network load with small packets is worst in loss",
        "DPDK and XDP differ in loss",
    ]


def test_the_studys_conclusions_do_not_hold_where_they_are_false() -> None:
    calm = Truth(spread=0.008, loss_at=-1.0, own_pps=SAME_PPS)
    found = asked(design(blocks=14), calm, metrics=("throughput", "loss"))
    assert study(found) == ["not held"] * 8


def test_other_loads_that_are_worse_refute_the_worst() -> None:
    truth = Truth(throughput={((LOAD, "cpu"),): -0.9, (NETWORK,): -0.3})
    found = one(asked(design(), truth), "worst")
    assert found.verdict == "not held"
    assert "load cpu" in found.reason


def test_idle_tenants_are_no_kind_of_load() -> None:
    """Both loads halve the throughput: only whether there is a load matters, not which."""
    truth = Truth(throughput={(NETWORK,): -0.7, ((LOAD, "cpu"),): -0.7}, spread=0.008)
    assert one(asked(design(), truth), "kind of load").verdict == "not held"


def study_of(part: Part, metric: str) -> list[TakeawayEntry]:
    found = asked(design(part), metrics=[metric])
    return [each for each in found.entries if each.origin == "study"]


def test_no_tenants_stand_for_idle_ones() -> None:
    part = with_part(loads=("cpu", "network"), tenants=(0, 2))
    found = one(asked(design(part)), "worst")
    assert found.statement.endswith("as a share of that under no load")
    assert found.verdict == "held"
    assert not [each for each in study_of(part, "loss") if "idle" in str(each)]
    without = asked(design(with_part(loads=("cpu", "network"))))
    assert one(without, "worst").statement == (
        "network load with small packets is worst in throughput"
    )


def test_the_part_that_crosses_what_is_asked_answers() -> None:
    one_size = with_part(name="first", sizes=(64,))
    found = asked(design(one_size, with_part(name="second")))
    assert study(found) == ["held"] * 4
    apart = [one_size, with_part(name="second", loads=("cpu",))]
    answers = asked(design(*apart))
    assert study(answers) == ["undecided", "held", "undecided", "held"]
    sizes = with_part(name="second", loads=("network",))
    assert study(asked(design(one_size, sizes)))[0] == "held"


def test_what_uses_neither_is_neither_dpdk_nor_xdp() -> None:
    taking_part = arms(["c-l2fwd", "xdp-tx", "xdp-redirect", "af-xdp", "testpmd-af-xdp"])
    every = [*taking_part, *arms(["kernel-bridge", "rust-l2fwd"])]
    of = with_part(frameworks=[arm.forwarder for arm in every if arm.label == arm.forwarder])
    names = names_of(every, windows_of(records(design(of), NOISY, 1)))
    assert names.dpdk == ["c-l2fwd", "c-l2fwd-again", "rust-l2fwd"]
    assert names.xdp == ["xdp-tx", "xdp-redirect"]


@pytest.mark.parametrize(
    ("part", "which", "reason"),
    [
        (with_part(sizes=(64,)), 0, "one level of size"),
        (with_part(loads=("idle", "network")), 1, "fewer than two loads beside idle"),
        (with_part(loads=("network",)), 1, "one level of load"),
        (with_part(loads=("network",)), 2, "no load beside network"),
        (with_part(loads=("idle", "cpu")), 2, "no network load"),
        (with_part(tenants=(0,)), 1, "one level of load"),
        (with_part(frameworks=(XDP,)), 3, "no forwarder with DPDK"),
        (with_part(frameworks=(DPDK, "af-xdp")), 3, "no forwarder with XDP"),
    ],
)
def test_what_the_design_lacks_is_undecided(part: object, which: int, reason: str) -> None:
    of = design(part)  # type: ignore[arg-type]
    found = asked(of, metrics=("throughput", "loss"))
    for entry in (found.entries[which], found.entries[4 + which]):
        assert entry.verdict == "undecided"
        assert reason in entry.reason


def test_one_block_decides_nothing() -> None:
    found = asked(design(blocks=1), metrics=("throughput", "loss", "work_left"))
    assert {each.verdict for each in found.entries} == {"undecided"}
    assert all(each.reason for each in found.entries)


@pytest.mark.parametrize("spoil", [lambda _: None, void], ids=["no trial", "all void"])
def test_without_a_valid_window_nothing_is_decided(spoil: object) -> None:
    of = design(with_part(tenants=(0, 1, 2)), blocks=3)
    trials = [each for trial in records(of) if (each := spoil(trial))]  # type: ignore[operator]
    found = takeaways(windows_of(trials), of)
    assert {each.verdict for each in [*found.entries, *found.control]} == {"undecided"}
    assert all(each.effect is None for each in found.entries)
    assert found.entries[0].reason == "no valid window tells it"


# -- what was tested -----------------------------------------------------------------------------


def test_loads_are_told_for_each_framework() -> None:
    found = asked(design(), seed=4, metrics=("throughput", "loss", "latency_p99_us"))
    leaves = one(found, "network tenants leave xdp-tx", "throughput")
    assert leaves.statement == (
        f"network tenants leave xdp-tx {leaves.effect:.2f} of the throughput that it has beside "
        "idle ones"
    )
    assert leaves.effect == pytest.approx(0.41, abs=0.02)
    assert leaves.effect
    assert leaves.low
    assert leaves.high
    assert leaves.low < leaves.effect < leaves.high
    assert leaves.test == "Wilcoxon signed rank in blocks, Holm over 4"
    loses = one(found, "network tenants raise the loss of c-l2fwd by", "percentage points")
    assert loses.measure == "difference"
    assert loses.cliffs_delta == 1
    assert loses.effect == pytest.approx(0.25, abs=0.02)
    slower = one(found, "cpu tenants raise the 99 % latency of c-l2fwd to")
    assert slower.effect == pytest.approx(2.7, abs=0.1)
    same = one(found, "network tenants change the 99 % latency of c-l2fwd")
    assert same.verdict == "not held"


def test_loads_are_compared_with_none_where_there_are_no_idle_ones() -> None:
    found = asked(design(with_part(loads=("cpu", "network"), tenants=(0, 2))))
    leaves = one(found, "cpu tenants leave xdp-tx")
    assert leaves.statement.endswith("of the throughput that it has without any")
    assert leaves.effect == pytest.approx(0.74, abs=0.02)


def test_trends_over_the_number_of_tenants_have_their_load() -> None:
    truth = Truth(
        throughput={(NETWORK, (TENANTS, "1")): -0.3, (NETWORK, (TENANTS, "2")): -0.6}, spread=0.01
    )
    found = asked(design(with_part(tenants=(0, 1, 2))), truth)
    falls = one(found, "falls with the number of network tenants")
    assert falls.verdict == "held"
    assert falls.effect == pytest.approx(0.55, abs=0.02)
    assert falls.about == [TENANTS, LOAD]
    assert one(found, "the number of cpu tenants").verdict == "not held"
    assert not [each for each in asked(design()).entries if "number of" in each.statement]


def test_trends_over_quotas_sizes_and_rates() -> None:
    part = with_part(
        loads=("cpu",),
        cpus=("shared", "quota-100", "quota-25", "quota-50"),
        sizes=(64, 512, 1518),
        rates=(0.5, 0.9, 1.2),
    )
    truth = Truth(
        throughput={
            ((CPU, "quota-25"),): -0.6,
            ((CPU, "quota-50"),): -0.3,
            ((SIZE, "512"),): -0.1,
            ((SIZE, "1518"),): -0.2,
        }
    )
    found = asked(design(part, blocks=6), truth)
    for words in (
        "throughput rises with the forwarder's CPU quota",
        "throughput falls with the frame size",
    ):
        assert one(found, words).verdict == "held"
    quota = one(found, "CPU quota")
    assert quota.cliffs_delta
    assert quota.cliffs_delta > 0.5
    assert quota.compared == "cpu quota-100 against quota-25"
    assert quota.effect == pytest.approx(1.82, abs=0.05)


def test_work_that_is_too_little_to_be_counted_decides_nothing() -> None:
    """Without the smallest shares of work, the rest would look like more."""
    of = design()
    trials = records(of, NOISY)
    mine = [t for t in trials if t.arm == DPDK and levels_of(t) and levels(t).load == "cpu"]
    for tenant in work_beside(mine[0]).tenants:
        tenant.bogo_ops = 0
    found = takeaways(windows_of(trials), of, metrics=["work_left"], permutations=199)
    cpu = [e for e in found.entries if "cpu tenants" in e.compared or e.test.startswith("Freedman")]
    assert len(cpu) > 3
    assert {each.verdict for each in cpu} == {"undecided"}
    assert any("less than is counted (without that: held" in each.reason for each in cpu)
    network = [e for e in found.entries if "network tenants: " in e.compared]
    assert {each.verdict for each in network} == {"held"}


def test_what_was_offered_is_no_finding() -> None:
    """Each framework is offered a share of its own NDR; the NDRs differ by a quarter here."""
    part = with_part(loads=("cpu", "network"), rates=(0.5, 0.9, 1.2))
    truth = Truth(loss={((RATE, "90 %"),): 0.1, ((RATE, "120 %"),): 0.2})
    found = asked(design(part, blocks=6), truth, metrics=("throughput", "loss"))
    about = {frozenset(e.about) for e in found.entries if e.origin == "tested"
             and e.metric == "throughput"}  # fmt: skip
    assert not about & {frozenset({FRAMEWORK}), frozenset({RATE}), frozenset({FRAMEWORK, RATE})}
    # Both sizes were offered the same, and a load was offered nothing.
    assert {frozenset({SIZE}), frozenset({LOAD}), frozenset({LOAD, FRAMEWORK})} <= about
    assert one(found, "loss rises with the offered rate").verdict == "held"
    alike = asked(design(part, blocks=6), replace(truth, own_pps=SAME_PPS))
    assert one(alike, "throughput depends on framework, on average").verdict != "held"


def test_virtual_machines_are_compared_with_containers() -> None:
    part = with_part(kinds=("container", "vm"), loads=("cpu",), sizes=(64,))
    truth = Truth(
        throughput={((KIND, "vm"), (FRAMEWORK, XDP)): -0.5},
        work={((KIND, "vm"),): 0.0},
        spread=0.01,
    )
    found = asked(design(part), truth, metrics=("throughput", "work_left"))
    other = one(found, "the throughput of xdp-tx is 0.6", "beside virtual machines")
    assert other.verdict == "held"
    assert one(found, "machines and containers differ", "throughput of c-l2fwd").verdict != "held"
    assert one(found, "c-l2fwd leaves virtual machines and containers").verdict != "held"


def test_neighbours_tell_what_was_left_to_them() -> None:
    found = asked(design(), metrics=["work_left"])
    polls = one(found, "c-l2fwd, which polls, leaves cpu tenants")
    assert polls.statement == "c-l2fwd, which polls, leaves cpu tenants 0.45 of their work"
    assert polls.verdict == "held"
    assert polls.effect == pytest.approx(0.45, abs=0.01)
    shares = one(found, "XDP leaves network tenants", "of their work as DPDK")
    assert shares.effect == pytest.approx(1.65, abs=0.03)
    assert shares.verdict == "held"
    assert one(found, "depends on framework").verdict == "held"
    # With one denominator for a whole block no test of cells is possible.
    assert not [each for each in found.entries if set(each.about) <= {LOAD, KIND, TENANTS}]


def test_neighbours_that_lose_nothing_are_told_so() -> None:
    found = asked(design(blocks=14), Truth(spread=0.01), metrics=["work_left"])
    takes = one(found, "xdp-tx takes from the work of cpu tenants")
    assert takes.verdict == "not held"
    assert one(found, "XDP and DPDK leave cpu tenants different shares").verdict == "not held"


def test_neighbours_of_shared_cores_are_asked_where_there_are_some() -> None:
    part = with_part(cpus=("shared", "quota-50"))
    truth = Truth(work={((CPU, "quota-50"),): -2.0}, spread=0.01)
    found = asked(design(part, blocks=8), truth, metrics=["work_left"])
    assert one(found, "c-l2fwd, which polls, takes from the work of cpu").effect == pytest.approx(
        1.0, abs=0.02
    )
    quotas = asked(design(with_part(cpus=("quota-50",)), blocks=8), truth, metrics=["work_left"])
    assert one(quotas, "c-l2fwd", "leaves cpu tenants").effect == pytest.approx(0.135, abs=0.01)


def test_a_load_of_several_works_tells_of_each() -> None:
    part = with_part(loads=("mixed",))
    found = asked(design(part), metrics=["work_left"])
    for work in ("computing", "disk traffic", "network traffic"):
        assert one(found, "c-l2fwd, which polls, leaves mixed tenants", work).verdict == "held"


def test_parts_are_named_where_there_are_several() -> None:
    parts = [PART, with_part(name="rates", rates=(0.5, 0.9))]
    found = asked(design(*parts, blocks=3))
    assert {each.part for each in found.entries if each.origin == "tested"} == {"all", "rates"}
    for each in found.entries:
        assert each.statement.endswith(f" (part {each.part})") == bool(each.part)
    alone = asked(design(blocks=3))
    assert {each.part for each in alone.entries} == {None}


def test_levels_that_the_machine_cannot_hold_are_told() -> None:
    of = design(with_part(cpus=("shared", "own")))
    trials = [
        trial
        for trial in records(of, NOISY)
        if not (levels_of(trial) and levels(trial).cpu == "own")
    ]
    found = takeaways(windows_of(trials), of, metrics=["throughput"], permutations=199)
    assert one(found, "packet size matters").verdict == "held"
    assert one(found, "packet size matters").reason.endswith("; without cpu own")
    assert one(found, "throughput depends on load, on average").reason.endswith("; without cpu own")


def test_rates_of_nothing_are_left_out_and_counted() -> None:
    of = design()
    trials = records(of, NOISY)
    none = next(trial for trial in trials if trial.role == "measure" and trial.arm == XDP)
    none.frames.received = 0
    found = takeaways(windows_of(trials), of, metrics=["throughput"], permutations=199)
    assert "1 value of 0 left out" in one(found, "throughput depends on load, on average").reason


# -- the control ---------------------------------------------------------------------------------


def about_frameworks(found: Takeaways) -> list[TakeawayEntry]:
    return [each for each in found.entries if FRAMEWORK in each.about]


def test_a_control_that_differs_leaves_frameworks_undecided() -> None:
    found = asked(design(), replace(NOISY, again=0.1), metrics=("throughput", "loss", "work_left"))
    (throughput, loss, work) = found.control
    assert loss.cliffs_delta == 1
    assert throughput.verdict == loss.verdict == work.verdict == "held"
    assert throughput.statement == "c-l2fwd differs from itself in throughput"
    assert throughput.effect == pytest.approx(1.105, abs=0.02)
    assert {each.verdict for each in about_frameworks(found)} == {"undecided"}
    differ = one(found, "DPDK and XDP differ in throughput")
    assert "c-l2fwd against itself, differs by this metric" in differ.reason
    assert "without the control: held" in differ.reason
    # Statements about other factors are not affected.
    assert one(found, "packet size matters for throughput").verdict == "held"


def test_a_control_forbids_by_its_metric_only() -> None:
    of = design()
    trials = records(of, NOISY)
    for trial in trials:
        if trial.arm.endswith("-again") and trial.frames.latency:
            quantiles = trial.frames.latency.quantiles_ns
            trial.frames.latency.quantiles_ns = {
                name: 2 * value for name, value in quantiles.items()
            }
    found = takeaways(
        windows_of(trials), of, metrics=["throughput", "latency_p50_us"], permutations=199
    )
    told = {each.metric: each.verdict for each in found.control}
    assert told == {"throughput": "not held", "latency_p50_us": "held"}
    assert one(found, "DPDK and XDP differ in throughput").verdict == "held"
    slower = one(found, "cpu tenants raise the median latency of xdp-tx")
    assert slower.verdict == "undecided"


def test_a_control_that_is_alike_touches_nothing() -> None:
    found = asked(design())
    assert [each.verdict for each in found.control] == ["not held"]
    assert "held" in {each.verdict for each in about_frameworks(found)}


@pytest.mark.parametrize(
    ("control", "low", "high", "verdict"),
    [
        (1.018, 1.012, 1.03, "undecided"),
        (1.018, 1.019, 1.03, "held"),
        (0.985, 0.97, 0.99, "undecided"),
        (0.985, 0.96, 0.98, "held"),
        (1.018, 0.96, 0.98, "held"),
        (1.018, 0.96, 0.99, "undecided"),
        (0.985, 1.01, 1.03, "undecided"),
        (0.985, 1.02, 1.03, "held"),
        (0.985, 0.97, 1.05, "undecided"),
    ],
)
def test_what_the_control_differs_by_explains_what_is_no_larger(
    control: float, low: float, high: float, verdict: str
) -> None:
    """The control's difference is less than the margin, so it prevents nothing by itself."""
    told = one(asked(design(blocks=3)), "DPDK and XDP differ in throughput")
    itself = told.model_copy(update={"effect": control, "p": 0.01})
    found = told.model_copy(
        update={"verdict": "held", "effect": (low + high) / 2, "low": low, "high": high}
    )
    judged = Control({"throughput": itself}, {}).judged(found)
    assert judged.verdict == verdict
    assert ("differed as far" in judged.reason) == (verdict == "undecided")
    unclear = itself.model_copy(update={"p": 0.2})
    assert Control({"throughput": unclear}, {}).judged(found).verdict == "held"


def test_without_a_control_frameworks_are_undecided() -> None:
    found = asked(design(control=False))
    assert not found.control
    assert {each.verdict for each in about_frameworks(found)} == {"undecided"}
    assert "no A/A control was measured" in one(found, "DPDK and XDP differ").reason
    assert one(found, "packet size matters").verdict == "held"


def offered(shares: dict[tuple[str, int], float]) -> Takeaways:
    """Return the statements if 100 % was these shares of the NDRs."""
    of = design()
    trials = records(of, NOISY)
    for trial in trials:
        if full_pps := trial.request.maximum_pps:
            share = shares.get((trial.forwarder, trial.cell.key[1]), 1.0)
            trial.request.alone_pps = full_pps / share
    return takeaways(windows_of(trials), of, metrics=["throughput", "loss"], permutations=199)


def test_sizes_that_were_offered_different_shares_are_not_compared() -> None:
    """A quarter of the NDR at 64 B and seven tenths at 1518 B are not an effect of the size."""
    unlike = offered(
        {(name, size): s for name in (DPDK, XDP) for size, s in ((64, 0.25), (1518, 0.7))}
    )
    about_size = [each for each in unlike.entries if SIZE in each.about]
    assert len(about_size) > 4
    for each in about_size:
        assert each.verdict == "undecided"
        assert each.reason.startswith("frame sizes with ")
        assert each.reason.endswith("different shares of their NDR: 25% (64 B), 70% (1518 B)")
    assert one(unlike, "the kind of load matters for loss").verdict == "held"
    alike = offered(dict.fromkeys([(DPDK, 64), (DPDK, 1518), (XDP, 64), (XDP, 1518)], 0.25))
    assert study(alike) == ["held"] * 8


def searched_again(again: float) -> Takeaways:
    """Return the statements if XDP's second highest rate at 64 B is this share of the highest."""
    of = design()
    trials = records(of, NOISY)
    for trial in trials:
        if full_pps := trial.request.maximum_pps:
            unsure = (trial.forwarder, trial.cell.key[1]) == (XDP, 64)
            trial.request.alone_pps = full_pps
            trial.request.alone_again_pps = full_pps * (again if unsure else 0.95)
    return takeaways(windows_of(trials), of, metrics=["loss"], permutations=199)


@pytest.mark.parametrize(
    ("again", "found"),
    [
        (0.5, "the highest two searches found 500.0 and 250.0 kpps"),
        (0.0, "only one search found a rate"),
    ],
)
def test_searches_that_do_not_agree_forbid_statements_on_sizes(again: float, found: str) -> None:
    """A compiler halved the rate of one size, and the page claimed that size matters for loss."""
    unsure = searched_again(again)
    for each in unsure.entries:
        if {SIZE, FRAMEWORK} & set(each.about):
            assert each.verdict == "undecided"
            assert each.reason.startswith(
                f"what xdp-tx carries alone at 64 B is not known: {found}"
            )
    assert one(unsure, "the kind of load matters for loss").verdict == "held"
    assert one(searched_again(0.92), "packet size matters for loss").verdict == "held"


def test_frameworks_that_were_offered_different_shares_are_not_compared() -> None:
    unlike = offered({(XDP, 64): 0.25, (XDP, 1518): 0.25})
    assert one(unlike, "DPDK and XDP differ in loss").reason.startswith("frameworks at 64 B were")
    assert one(unlike, "packet size matters for loss").verdict == "held"


def test_a_control_with_few_blocks_is_none() -> None:
    of = design()
    trials = [
        void(trial) if trial.arm.endswith("-again") and trial.block > 4 else trial
        for trial in records(of, NOISY)
    ]
    found = takeaways(windows_of(trials), of, metrics=["throughput"], permutations=199)
    assert "has 5 blocks by this metric" in one(found, "DPDK and XDP differ").reason


# -- all of them ---------------------------------------------------------------------------------


def test_every_statement_has_its_chart_and_its_test() -> None:
    found = asked(design(with_part(tenants=(0, 1, 2))), metrics=("throughput", "loss", "work_left"))
    for each in found.entries:
        assert each.test
        assert each.reason
        assert set(each.about) <= set(FACTORS)
        assert each.chart == link_to(each.metric, each.about)
        # For a share of variance below what chance gives, the interval is 0 alone.
        if each.low is not None and each.high:
            assert each.effect is not None
            assert each.low <= each.effect <= each.high
    assert one(found, "worst in throughput").chart == "report.html#throughput-load-size"
    told = [(each.part, each.statement) for each in found.entries]
    assert len(set(told)) == len(told)


def test_the_studys_come_first_then_what_held_by_size() -> None:
    found = asked(design(), metrics=("throughput", "work_left")).entries
    origins = [each.origin for each in found]
    assert origins == sorted(origins)
    tested = [each for each in found if each.origin == "tested"]
    orders = ["held", "not held", "undecided"]
    places = [orders.index(each.verdict) for each in tested]
    assert places == sorted(places)
    for measure in ("ratio", "partial eta squared"):
        sizes = [
            size_of(each) for each in tested if (each.verdict, each.measure) == ("held", measure)
        ]
        assert len(sizes) > 2
        assert sizes == sorted(sizes, reverse=True)
    measures = [each.measure for each in tested if each.verdict == "held"]
    assert measures == sorted(measures, reverse=True)


def test_the_same_records_and_seed_say_the_same() -> None:
    first, again = asked(design(seed=5)), asked(design(seed=5))
    assert first == again


def test_permutations_are_enough_to_reject_after_correction() -> None:
    assert affordable(1999, 14, 240) == 1999
    for family in (1, 14, 63):
        for values in (10, 1_000_000):
            count = affordable(1999, family, values)
            assert family / (count + 1) < ALPHA
    assert affordable(1999, 10, 5760) < 1999


# -- rates ---------------------------------------------------------------------------------------

SPREAD = 0.05
SMALLER = with_part(loads=("cpu", "network"))
RATES = Truth(
    throughput={(NETWORK,): -SPREAD},
    work={((FRAMEWORK, XDP),): -SPREAD},
    spread=SPREAD,
    own_pps=SAME_PPS,
)
LOST = Truth(loss={(SMALL,): 0.01}, loss_at=0.01, own_pps=SAME_PPS)


def tally(
    truth: Truth, blocks: int, metrics: list[str], scenario: int, claims: dict[str, list[str]]
) -> Counter[str]:
    """Return in how many runs a statement with some of a claim's words held."""
    found: Counter[str] = Counter()
    for seed in seeds(scenario):
        of = design(SMALLER, blocks=blocks, seed=seed)
        told = takeaways(
            windows_of(records(of, truth, seed)), of, metrics=metrics, permutations=99
        ).entries
        held = [each.statement for each in told if each.verdict == "held"]
        for claim, words in claims.items():
            found[claim] += any(word in each for each in held for word in words)
    return found


@pytest.mark.second_tier
def test_effects_on_rates_and_work_are_found_and_no_others() -> None:
    true = {
        "kind of load": ["the kind of load matters for throughput"],
        "load": ["throughput depends on load, on average"],
        "work": ["work left to tenants depends on framework, on average"],
        "left": ["DPDK leaves cpu tenants"],
    }
    false = {
        "size": ["packet size matters for throughput"],
        "differ": ["DPDK and XDP differ in throughput"],
        "worst": ["worst in throughput"],
        "others": [
            "throughput depends on size, on",
            "throughput depends on framework, on",
            "on throughput depends",
        ],
        "other work": ["work left to tenants depends on size, on", "on work left"],
        "taken": ["c-l2fwd, which polls, leaves", "beside c-l2fwd"],
    }
    found = tally(RATES, 14, ["throughput", "work_left"], 12, true | false)
    for claim in true:
        assert missed_p(found[claim]) > ALPHA, (claim, found)
    for claim in false:
        assert false_p(found[claim]) > ALPHA, (claim, found)


@pytest.mark.second_tier
def test_effects_on_loss_are_found_and_no_others() -> None:
    true = {
        "size": ["packet size matters for loss"],
        "effect": ["loss depends on size, on average"],
    }
    false = {
        "kind of load": ["the kind of load matters for loss"],
        "differ": ["DPDK and XDP differ in loss"],
        "worst": ["worst in loss"],
        "others": ["depends on load, on average", "depends on framework, on average", "effect of"],
    }
    found = tally(LOST, 12, ["loss"], 13, true | false)
    for claim in true:
        assert missed_p(found[claim]) > ALPHA, (claim, found)
    for claim in false:
        assert false_p(found[claim]) > ALPHA, (claim, found)
