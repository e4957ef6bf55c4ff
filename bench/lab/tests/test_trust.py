# SPDX-License-Identifier: BSD-3-Clause
"""The measurement of the lab's verdicts: simulated machine, counts, goals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import MACHINE
from statsmodels.stats.proportion import proportion_confint
from trials import changed

from linerate.host.errors import LabError, RunError
from linerate.records.run_file import Session
from linerate.records.trial import Trial, dump
from linerate.records.types import Verdict
from linerate.trial.link_setup import LinkSetup
from linerate.trial.trial import Bench, Plan
from linerate.verdict import comparisons, stats
from linerate.verdict.judgement import Judgement
from linerate_bench.trust import __main__ as command
from linerate_bench.trust import machine, real
from linerate_bench.trust.comparison import QUICK, SCREEN, TESTED, Extent, arms, judged
from linerate_bench.trust.kept import Kept, session_file
from linerate_bench.trust.machine import PROFILES, PROGRAM, Machine, simulate
from linerate_bench.trust.searches import QUICK_SEARCHES
from linerate_bench.trust.searches import simulate as simulate_searches
from linerate_bench.trust.tally import VERDICTS, Line, Tally, lines

NULL, MEMIF = PROFILES
SESSION = Session(
    session=1, command="make bench-trust", started_at="2026-01-01T00:00:00+00:00",
    machine=MACHINE, versions={}, programs={"c-l2fwd": "a"}, memory="no-huge",
)  # fmt: skip


def tally(slow_down: float, extent: Extent = SCREEN, **verdicts: int) -> Tally:
    found = Tally("simulated", "null", extent, slow_down)
    for verdict in VERDICTS:
        for _ in range(verdicts.get(verdict, 0)):
            found.add(verdict, 20)
    assert found.n == sum(verdicts.values())
    return found


def passed(found: Tally) -> list[bool | None]:
    return [line.passed for line in lines(found)]


# -- counting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("false", "good"), [(0, True), (10, True), (15, True), (16, False), (40, False)]
)
def test_false_verdicts_are_held_against_five_per_cent(false: int, good: bool) -> None:
    """Binomial tables, n = 200, p = .05: P(X >= 15) = .078, P(X >= 16) = .044."""
    assert passed(tally(0.0, faster=false // 2, slower=false - false // 2, equal=200 - false)) == [
        good
    ]


@pytest.mark.parametrize(("found", "good"), [(200, True), (185, True), (184, False)])
def test_five_per_cent_must_be_found(found: int, good: bool) -> None:
    assert passed(tally(0.05, slower=found, undecided=200 - found)) == [good, True]


def test_every_ten_per_cent_must_be_found() -> None:
    assert passed(tally(0.10, slower=40)) == [True, True]
    assert passed(tally(0.10, slower=39, undecided=1)) == [False, True]


def of_one(slow_down: float, always: Verdict) -> Tally:
    found = Tally("simulated", "null", SCREEN, slow_down)
    for _ in range(20):
        found.add(always, 40)
    return found


@pytest.mark.parametrize("always", ["undecided", "invalid"])
def test_a_program_that_never_decides_fails(always: Verdict) -> None:
    assert passed(of_one(0.05, always)) == [False, True]
    assert passed(of_one(0.10, always)) == [False, True]


def test_the_other_way_is_never_right() -> None:
    assert passed(tally(0.05, slower=199, faster=1)) == [True, False]
    assert passed(tally(0.05, slower=199, equal=1)) == [True, False]
    assert passed(tally(0.02, slower=100, equal=100)) == [None, True]
    assert passed(tally(0.02, slower=199, faster=1)) == [None, False]


def test_half_a_minute_promises_no_detection() -> None:
    assert passed(tally(0.10, QUICK, undecided=20)) == [None, True]


def test_without_comparisons_there_is_nothing_to_say() -> None:
    assert list(lines(tally(0.05))) == []


@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_intervals_are_clopper_and_pearsons(count: int) -> None:
    line = next(lines(tally(0.0, faster=count, equal=40 - count)))
    low, high = proportion_confint(count, 40, method="beta")
    assert (line.low, line.high) == pytest.approx((low, high), abs=1e-6)
    if count == 0:
        assert line.high == pytest.approx(1 - 0.025 ** (1 / 40))


def test_lines_can_be_read() -> None:
    line = Line("a", "called different", 10, 200, "at most 5%", 0.024, 0.09, 0.5, True)
    assert "10 of 200" in str(line)
    assert str(line).endswith("0.500  PASS")
    assert "5% slower" in str(tally(0.05, slower=3))


# -- the simulated machine -------------------------------------------------------------------------


def test_blocks_are_what_fits_into_half_a_minute() -> None:
    assert QUICK.blocks(0.52) == 19
    assert QUICK.blocks(0.70) == 14
    assert QUICK.blocks(0.1) == QUICK.preset.blocks == 20
    assert SCREEN.blocks(0.52) == SCREEN.preset.blocks == 40


def log_ratios(trials: list[Trial], arm: str) -> list[float]:
    rates: dict[str, dict[int, float]] = {}
    for trial in trials:
        if rate := trial.frames.forwarder_rx_pps:
            rates.setdefault(trial.arm, {})[trial.block] = rate
    return [
        math.log(rate / rates[PROGRAM][block])
        for block, rate in rates[arm].items()
        if block in rates[PROGRAM]
    ]


def test_the_noise_is_that_of_the_machine_it_imitates() -> None:
    """The measured machine had a robust spread of .034, a standard deviation of .067 and a kurtosis
    of 5 (null, 24 blocks).
    """
    every = [
        log_ratios(simulate(NULL, SCREEN, 0.0, seed), PROGRAM + "-again") for seed in range(40)
    ]
    pooled = np.concatenate(every)
    kurtosis = float(np.mean((pooled - pooled.mean()) ** 4) / pooled.var() ** 2)
    assert 0.025 < stats.spread(pooled.tolist()) < 0.05
    assert 0.05 < pooled.std() < 0.1
    assert kurtosis > 4


def test_only_the_arm_under_test_is_slowed() -> None:
    trials = simulate(NULL, SCREEN, 0.3, seed=1)
    assert stats.hodges_lehmann(log_ratios(trials, TESTED)) == pytest.approx(
        math.log(0.7), abs=0.05
    )
    assert abs(stats.hodges_lehmann(log_ratios(trials, PROGRAM + "-again"))) < 0.05


def test_levels_jump_a_third_apart_and_windows_may_see_both() -> None:
    source = np.random.default_rng(2)
    quiet = machine.Profile("null", 1e6, trial_s=0.52, scale=0.0, invalid_share=0.0)
    simulated = Machine(quiet, 0.3, source)
    rates = [simulated.rate(0.0) or 0.0 for _ in range(2000)]
    fast, slow = (sum(rate == level for rate in rates) for level in (1e6, 0.75e6))
    assert min(fast, slow) > 500
    between = [rate for rate in rates if 0.75e6 < rate < 1e6]
    assert len(between) == 2000 - fast - slow
    assert 0 < len(between) < 200


def test_the_same_seed_gives_the_same_trials_and_some_are_invalid() -> None:
    assert simulate(MEMIF, QUICK, 0.05, 3) == simulate(MEMIF, QUICK, 0.05, 3)
    assert simulate(MEMIF, QUICK, 0.05, 3) != simulate(MEMIF, QUICK, 0.05, 4)
    trials = [trial for seed in range(20) for trial in simulate(MEMIF, SCREEN, 0.0, seed)]
    share = sum(not trial.valid for trial in trials) / len(trials)
    assert 0.01 < share < 0.03
    assert all(trial.frames.received is None for trial in trials if not trial.valid)


# -- the lab on it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.link)
def test_ten_per_cent_gets_its_verdict(profile: machine.Profile) -> None:
    """With a control tested at 5 %, one in twenty of these had no verdict."""
    assert command.simulated(profile, SCREEN, 0.10, 60).verdicts == {"slower": 60}


def test_a_biased_baseline_is_seen() -> None:
    """One label of the baseline is 10 % slower: this cell gets no verdict."""
    both = arms(PROGRAM, PROGRAM)
    cell = NULL.cell(SCREEN)
    for seed in range(20):
        trials = simulate(NULL, SCREEN, 0.0, seed)
        for trial in trials:
            if trial.arm == PROGRAM + "-again" and trial.frames.forwarder_rx:
                trial.frames.forwarder_rx = round(trial.frames.forwarder_rx * 0.9)
        assert judged(cell, both, trials).verdict == "invalid"


def test_the_command_prints_its_tables_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SIMULATED", 3)
    file = tmp_path / "trust.json"
    assert command.main(["--simulated-only", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "simulated, null, screen: 10% slower" in printed
    assert "simulated, memif, rfc2544 quick: A/A" in printed
    assert "FAIL" not in printed
    document = json.loads(file.read_text())
    assert {entry["n"] for entry in document["tallies"]} == {3}
    assert all(sum(entry["verdicts"].values()) == 3 for entry in document["tallies"])
    assert all(line["passed"] is not False for line in document["lines"])


def test_the_command_fails_when_the_lab_never_decides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SIMULATED", 3)
    monkeypatch.setattr(comparisons, "judge", lambda *_, **__: Judgement("undecided", "always"))
    assert command.main(["--simulated-only"]) == 3
    assert "FAIL" in capsys.readouterr().out


# -- runs of rfc2544 -------------------------------------------------------------------------------


def test_a_search_is_one_value_and_the_arm_under_test_is_slowed() -> None:
    ratios: list[float] = []
    for seed in range(6):
        rates = simulate_searches(QUICK_SEARCHES, 0.3, seed)
        assert [block for block, _ in rates] == list(range(QUICK_SEARCHES.blocks))
        both = [each for each in rates.values() if TESTED in each and PROGRAM in each]
        ratios += [math.log(each[TESTED] / each[PROGRAM]) for each in both]
    assert stats.hodges_lehmann(ratios) == pytest.approx(math.log(0.7), abs=0.03)
    assert 0.01 < stats.spread(ratios) < 0.06


def test_the_same_seed_gives_the_same_searches_and_some_have_no_result() -> None:
    assert simulate_searches(QUICK_SEARCHES, 0.0, 3) == simulate_searches(QUICK_SEARCHES, 0.0, 3)
    assert simulate_searches(QUICK_SEARCHES, 0.0, 3) != simulate_searches(QUICK_SEARCHES, 0.0, 4)
    every = [
        simulate_searches(replace(QUICK_SEARCHES, failed_share=0.3), 0.0, seed) for seed in range(6)
    ]
    found = sum(len(block) for rates in every for block in rates.values())
    assert 0.5 < found / (6 * 3 * QUICK_SEARCHES.blocks) < 0.9


def test_twenty_per_cent_gets_its_verdict_from_a_run_of_rfc2544() -> None:
    found = command.searched(QUICK_SEARCHES, 0.20, 10)
    assert found.verdicts == {"slower": 10}
    assert set(found.blocks) == {QUICK_SEARCHES.blocks}
    assert [line.passed for line in lines(found)] == [None, True]


@pytest.mark.parametrize(("wrong", "good"), [(0, True), (9, True), (10, False)])
def test_few_searches_may_point_the_other_way_by_chance(wrong: int, good: bool) -> None:
    """Binomial, n = 200, p = .025: P(X >= 9) = .066, P(X >= 10) = .030."""
    found = Tally("simulated", "memif", QUICK_SEARCHES, 0.02)
    for number in range(200):
        found.add("faster" if number < wrong else "undecided", 9)
    *_, line = lines(found)
    assert (line.goal, line.passed) == ("at most 2.5%", good)
    # Where the promise is kept to the letter, it still is.
    assert passed(tally(0.02, faster=1, undecided=199)) == [None, False]


def test_runs_of_rfc2544_that_call_a_program_different_from_itself_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparisons, "judge", lambda *_, **__: Judgement("slower", "always"))
    (line,) = lines(command.searched(QUICK_SEARCHES, 0.0, 4))
    assert (line.count, line.passed) == (4, False)


# -- comparisons on this machine -------------------------------------------------------------------


class Clock:
    """Stands for `time` in `linerate_bench.trust.real`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def quick_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Return trials of the simulated machine; each takes a second of a simulated clock."""
    clock = Clock()
    simulated = Machine(NULL, 0.3, np.random.default_rng(1))

    def run_trial(bench: Bench, plan: Plan, _: LinkSetup) -> Trial:
        clock.now += 1.0
        trial = simulated.trial(plan.arm, plan.block, plan.position, 0.0)
        trial.identity.seed = bench.seed
        return trial

    monkeypatch.setattr(real, "time", clock)
    monkeypatch.setattr(real, "run_trial", run_trial)
    return clock  # type: ignore[return-value]


@pytest.mark.parametrize(("extent", "blocks"), [(QUICK, 10), (SCREEN, 40)])
def test_a_real_comparison_keeps_to_its_time(
    quick_machine: Clock, tmp_path: Path, extent: Extent, blocks: int
) -> None:
    kind = real.Kind("null", PROGRAM, PROGRAM, 0.0, extent)
    found, made = real.compare_once(any_bench(tmp_path), kind, 1, None)
    assert made == blocks
    assert found.arm == TESTED
    assert found.n <= blocks
    assert quick_machine.now == 3.0 * blocks


def test_comparisons_on_record_are_not_made_again(quick_machine: Clock, tmp_path: Path) -> None:
    kind = real.Kind("null", PROGRAM, PROGRAM, 0.0, QUICK)
    path = tmp_path / "records.jsonl"
    kept = Kept(path, SESSION)
    first = [real.compare_once(any_bench(tmp_path), kind, seed, kept) for seed in (1, 2, 3)]
    kept.close()
    # The last one is cut off, in the midst of a line.
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3 * 30
    path.write_bytes(b"".join(lines[:-4]) + lines[-4][:50])
    quick_machine.now = 0.0
    kept = Kept(path, SESSION)
    again = [real.compare_once(any_bench(tmp_path), kind, seed, kept) for seed in (1, 2, 3)]
    kept.close()
    assert again[:2] == first[:2]
    assert quick_machine.now == 30.0
    found = path.read_bytes().splitlines(keepends=True)
    assert found[:60] == lines[:60]
    assert len(found) == len(lines)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"programs": {"c-l2fwd": "b"}}, "c-l2fwd: another build"),
        ({"machine": MACHINE.model_copy(update={"cpu_model": "other"})}, "cpu model: simulated"),
        ({"memory": "hugepages"}, "memory: small pages and huge pages"),
    ],
)
def test_comparisons_of_other_programs_or_machines_are_refused(
    quick_machine: Clock, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    path = tmp_path / "records.jsonl"
    kept = Kept(path, SESSION)
    real.compare_once(any_bench(tmp_path), real.Kind("null", PROGRAM, PROGRAM, 0.0, QUICK), 1, kept)
    kept.close()
    before = path.read_bytes()
    with pytest.raises(RunError, match=f"records.jsonl: not of these programs.*{words}"):
        Kept(path, SESSION.model_copy(update=changed))
    assert path.read_bytes() == before
    assert quick_machine.now > 0


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"build": {"compiler": "cc 1"}}, f"{PROGRAM}: another build"),
        ({"memory": "hugepages"}, "memory: hugepages and no-huge"),
    ],
)
def test_records_with_nothing_beside_them_tell_of_builds_themselves(
    tmp_path: Path, told: dict[str, Any], words: str
) -> None:
    path = tmp_path / "records.jsonl"
    trials = [changed(trial, **told) for trial in simulate(NULL, QUICK, 0.0, 1)]
    path.write_text("".join(f"{dump(trial)}\n" for trial in trials))
    with pytest.raises(RunError, match=words):
        Kept(path, SESSION)
    path.write_text("".join(f"{dump(trial)}\n" for trial in simulate(NULL, QUICK, 0.0, 1)))
    Kept(path, SESSION).close()
    # From then on it is known.
    assert Session.model_validate_json(session_file(path).read_text()) == SESSION


def test_a_machine_on_which_nothing_runs_ends_it(
    quick_machine: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working: Any = vars(real)["run_trial"]

    def run_trial(bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
        trial: Trial = working(bench, plan, setup)
        trial.reject("ended", "it fell over")
        return trial

    monkeypatch.setattr(real, "run_trial", run_trial)
    kind = real.Kind("null", PROGRAM, PROGRAM, 0.0, QUICK)
    with pytest.raises(LabError, match=r"8 trials in a row were invalid.*"):
        real.compare_once(any_bench(tmp_path), kind, 1, None)
    assert quick_machine.now == 8.0


def any_bench(directory: Path) -> Bench:
    class Run:
        path = directory

    class Memory:
        hugepages = False

    run: Any = Run()
    memory: Any = Memory()
    cores: Any = None
    return Bench(run, cores, memory, "trust", seed=0, window_s=0.3)


def test_verdicts_are_the_labs() -> None:
    words: set[Verdict] = {"faster", "slower", "equal", "undecided", "invalid"}
    assert set(tally(0.0, equal=1).facts()["verdicts"]) == words
