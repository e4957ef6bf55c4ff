# SPDX-License-Identifier: BSD-3-Clause
"""Which program carries a rate: what records show, and what they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import simulated_paths
from advice_runs import BLOCKS, each_block, flood, run_of, window
from simulated import MACHINE, Simulation
from simulated_paths import SENDER_PPS, Way, Wire

from linerate.experiments.cloud.window import CloudCell, CloudTrialCell
from linerate.experiments.latency.loads import LOADS, Step
from linerate.experiments.placement.advise import advise
from linerate.experiments.placement.question import Question, question
from linerate.experiments.placement.record import Advice, Placement
from linerate.host.errors import UsageError
from linerate.records.trial import Trial
from linerate.runs.kept.stored import Stored, stored

MEGA = 1e6


def told(asked: Question, *runs: Stored) -> Advice:
    return advise(asked, runs, MACHINE, [])


def asked(rate: str = "2Mpps", *latency: str, loss: str = "0", size: int = 64) -> Question:
    return question(rate, size, latency, loss)


def one(found: Advice) -> Placement:
    """Return the only program of the only setting."""
    (setting,) = found.settings
    (placement,) = setting.placements
    return placement


def answer(trials: list[Trial], *words: str, **named: Any) -> str:
    return one(told(asked(*words, **named), run_of(trials))).answer


# -- rates ---------------------------------------------------------------------------------------


def test_a_greater_load_that_was_carried_is_enough() -> None:
    found = told(asked("2Mpps"), run_of(each_block("fast", 3 * MEGA)))
    assert (found.answer, one(found).answer, found.settings[0].cores) == ("yes", "yes", 1)
    rate = one(found).rates[0]
    assert (rate.source, rate.carried, rate.blocks, rate.at_least) == (
        "fixed loads", BLOCKS, BLOCKS, True,
    )  # fmt: skip
    assert rate.reached_pps
    assert (rate.reached_pps.low, rate.reached_pps.high) == (3 * MEGA, 3 * MEGA)


def test_a_lower_load_says_nothing_about_a_greater_one() -> None:
    found = told(asked("2Mpps"), run_of(each_block("slow", 1.9 * MEGA)))
    assert found.answer == "not measured"
    assert "the greatest load that was offered, 1.9 Mpps, was carried" in one(found).sentence


def test_a_lower_load_that_lost_frames_is_a_no() -> None:
    found = told(asked("2Mpps"), run_of(each_block("slow", 1.5 * MEGA, lost=0.01)))
    assert found.answer == "no"
    assert "did not carry 2 Mpps: loads of 1.5 Mpps lost frames in 6 of 6 blocks" in (
        one(found).sentence
    )


def test_between_two_loads_nothing_is_known() -> None:
    trials = each_block("mid", 1 * MEGA) + each_block("mid", 3 * MEGA, lost=0.2)
    found = told(asked("2Mpps"), run_of(trials))
    assert found.answer == "not measured"
    assert "1 Mpps was carried, loads of 3 Mpps lost frames, and nothing between was offered" in (
        one(found).sentence
    )


def test_the_load_itself_is_found_whatever_its_last_digits() -> None:
    assert answer(each_block("a", 0.9 * (2 * MEGA / 0.9))) == "yes"
    assert answer(each_block("a", 0.7 * (2 * MEGA / 0.7), lost=0.5)) == "no"


def test_so_much_may_be_lost() -> None:
    trials = each_block("a", 2 * MEGA, lost=0.004)
    assert answer(trials) == "no"
    assert answer(trials, loss="0.5%") == "yes"


def test_a_load_above_one_that_lost_frames_was_not_carried() -> None:
    trials = each_block("a", 1 * MEGA, lost=0.1) + each_block("a", 3 * MEGA)
    assert answer(trials) == "no"


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [(9, 0, "yes"), (8, 1, "yes"), (7, 2, "undecided"), (2, 7, "undecided"), (1, 8, "no")],
)
def test_the_interval_of_the_median_decides(good: int, bad: int, expected: str) -> None:
    """With 9 blocks it excludes one value at each end."""
    trials = [window("a", 2 * MEGA, block) for block in range(good)]
    trials += [window("a", 2 * MEGA, good + block, lost=0.1) for block in range(bad)]
    assert answer(trials) == expected


def test_few_blocks_decide_nothing() -> None:
    found = told(asked(), run_of(each_block("a", 3 * MEGA, blocks=5)))
    assert found.answer == "undecided"
    assert "an interval needs 6 blocks" in one(found).sentence


def test_windows_that_are_void_do_not_count() -> None:
    trials = each_block("a", 3 * MEGA, blocks=5)
    trials.append(window("a", 3 * MEGA, 5, invalid="97 % were sent late", invalid_code="late"))
    assert answer(trials) == "undecided"


def test_what_stands_beside_the_arms_is_no_answer() -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {"role": "self-test"}, {"role": "probed"}, {"test": "spans"}, {"protocol": "arp"},
    )  # fmt: skip
    for fields in kinds:
        assert told(asked(), run_of(each_block("a", 3 * MEGA, **fields))).settings == [], fields
    again = [*each_block("a", 3 * MEGA), *each_block("a-again", 3 * MEGA, forwarder="a")]
    assert one(told(asked(), run_of(again))).rates[0].blocks == BLOCKS


# -- floods --------------------------------------------------------------------------------------


def test_a_flood_that_lost_frames_below_the_rate_is_a_no() -> None:
    found = told(asked("2Mpps"), run_of([flood("a", 0.8 * MEGA, b, lost=0.28) for b in range(6)]))
    assert found.answer == "no"
    assert "floods of 800 kpps lost 28 % in 6 of 6 blocks" in one(found).sentence


def test_a_flood_above_the_rate_that_lost_frames_says_nothing_about_it() -> None:
    found = told(asked("2Mpps"), run_of([flood("a", 5 * MEGA, b, lost=0.5) for b in range(6)]))
    assert found.answer == "not measured"
    assert "says nothing about lower loads" in one(found).sentence


def test_a_flood_that_was_held_back_is_no_load_that_was_carried() -> None:
    """The link took only what the program left room for: that rate was not offered."""
    trials = [flood("a", 3 * MEGA, b, lost=0.0, refused=10**7) for b in range(6)]
    assert told(asked("2Mpps"), run_of(trials)).answer == "not measured"


def test_what_link_or_generator_limit_is_no_limit_of_the_program(
    tmp_path: Path, simulation: Simulation
) -> None:
    """One of the two returns all but 2 % of what the generator sends."""
    ways = {"xdp-redirect": Way(0.98 * SENDER_PPS, 0, 900), "c-l2fwd": Way(200e3, 1000, 1500)}
    Wire(ways).install(simulation)
    simulated_paths.start(tmp_path / "run", forwarders=["c-l2fwd", "xdp-redirect"])
    (setting,) = told(asked("2Mpps"), stored(tmp_path / "run")).settings
    found = {each.forwarder: each for each in setting.placements}
    assert (found["c-l2fwd"].answer, found["xdp-redirect"].answer) == ("no", "not measured")
    assert "the generator was the limit" in found["xdp-redirect"].sentence


def test_fixed_loads_decide_before_floods() -> None:
    trials = each_block("a", 2 * MEGA) + [flood("a", 1 * MEGA, b, lost=0.5) for b in range(6)]
    assert answer(trials) == "yes"


# -- delays --------------------------------------------------------------------------------------


def test_delays_are_judged_at_the_rate() -> None:
    trials = each_block("a", 2 * MEGA, p99_us=40.0)
    found = told(asked("2Mpps", "p99:50us"), run_of(trials))
    assert found.answer == "yes"
    assert "p99 was within 50 us in 6 of 6 blocks, at 2 Mpps" in one(found).sentence
    assert answer(trials, "2Mpps", "p99:30us") == "no"
    assert answer(trials, "2Mpps", "p50:30us", "p99:50us") == "yes"


@pytest.mark.parametrize("load", [1.8, 2.3])
def test_delays_at_other_loads_say_nothing(load: float) -> None:
    trials = each_block("a", load * MEGA, p99_us=40.0) + each_block("a", 3 * MEGA)
    found = told(asked("2Mpps", "p99:50us"), run_of(trials))
    assert found.answer == "not measured"
    assert one(found).rates[0].answer == "yes"
    assert f"delays were measured at {load} Mpps" in one(found).sentence


def test_a_percentile_that_no_record_has() -> None:
    found = told(asked("2Mpps", "p90:50us"), run_of(each_block("a", 2 * MEGA, p99_us=40.0)))
    assert found.answer == "not measured"
    assert "have no p90" in one(found).sentence


def test_a_window_with_too_few_frames_for_a_percentile() -> None:
    found = told(asked("200pps", "p99:50us"), run_of(each_block("a", 200, p99_us=40.0)))
    assert found.answer == "not measured"
    assert "too few frames for it" in one(found).sentence


def test_rate_and_delay_may_come_from_two_runs_of_one_setting() -> None:
    rates = run_of(each_block("a", 3 * MEGA), "rates")
    delays = run_of(each_block("a", 2 * MEGA, p99_us=40.0, blocks=9, lost=0.0), "delays")
    found = told(asked("2Mpps", "p99:50us"), rates, delays)
    assert found.answer == "yes"
    assert [rate.run for rate in one(found).rates] == [1, 2]


def test_the_cost_near_the_rate_is_shown() -> None:
    found = told(asked(), run_of(each_block("a", 2 * MEGA, busy=0.4)))
    share = one(found).rates[0].core_share
    assert share
    assert share.median == 0.4


# -- what is never combined ------------------------------------------------------------------------


def test_machines_are_apart() -> None:
    other = MACHINE.model_copy(update={"cpu_model": "another"})
    found = told(
        asked("2Mpps", "p99:50us"),
        run_of(each_block("a", 3 * MEGA), "one"),
        run_of(each_block("a", 2 * MEGA, p99_us=40.0, blocks=3), "two", here=other),
    )
    assert len(found.settings) == 2
    assert found.answer != "yes"
    assert {setting.here for setting in found.settings} == {True, False}


@pytest.mark.parametrize(
    "difference",
    [
        {"here": MACHINE.model_copy(update={"kernel": "6.1"})},
        {"memory": "hugepages"},
    ],
)
def test_kernels_and_memory_are_apart(difference: dict[str, Any]) -> None:
    runs = run_of(each_block("a", 3 * MEGA), "one"), run_of(each_block("a", 3 * MEGA), **difference)
    assert len(told(asked(), *runs).settings) == 2


@pytest.mark.parametrize(
    "fields", [{"link": "veth"}, {"directions": "one"}, {"ip": 6}]
)  # fmt: skip
def test_links_and_traffic_are_apart(fields: dict[str, Any]) -> None:
    trials = each_block("a", 3 * MEGA) + each_block("a", 3 * MEGA, **fields)
    assert len(told(asked(), run_of(trials)).settings) == 2


def test_builds_are_apart() -> None:
    runs = [
        run_of(each_block("a", load * MEGA), programs={"a": digest})
        for digest, load in (("1" * 64, 3), ("2" * 64, 1))
    ]
    (setting,) = told(asked(), *runs).settings
    assert [(each.build, each.answer) for each in setting.placements] == [
        ("1" * 64, "yes"), ("2" * 64, "not measured"),
    ]  # fmt: skip


def test_numbers_of_cores_are_apart_and_the_fewest_are_named() -> None:
    trials = each_block("two", 3 * MEGA, cpus=[1, 2]) + each_block("one", 3 * MEGA, cpus=[1])
    trials += each_block("four", 3 * MEGA, cpus=[1, 2, 3, 4])
    (setting,) = told(asked(), run_of(trials)).settings
    assert [(each.forwarder, each.cores) for each in setting.placements] == [
        ("one", 1), ("two", 2), ("four", 4),
    ]  # fmt: skip
    assert (setting.cores, setting.sentence) == (1, "Yes, on 1 core: one.")


def test_one_core_is_not_scaled() -> None:
    found = told(asked("4Mpps"), run_of(each_block("a", 2 * MEGA)))
    assert found.answer == "not measured"
    assert any("nothing is scaled" in each for each in found.not_measured)


def test_two_blocks_of_two_runs_are_no_six() -> None:
    runs = [run_of(each_block("a", 3 * MEGA, blocks=3), name) for name in ("one", "two")]
    assert told(asked(), *runs).answer == "undecided"


def test_runs_that_contradict_each_other_decide_nothing() -> None:
    found = told(
        asked(),
        run_of(each_block("a", 3 * MEGA), "one"),
        run_of(each_block("a", 2 * MEGA, lost=0.5), "two"),
    )
    assert found.answer == "undecided"
    assert "run 1" in one(found).sentence
    assert "run 2" in one(found).sentence


def test_neighbours_are_apart() -> None:
    levels = CloudCell(kind="container", load="network", tenants=2, cpu="shared", rate=0.5)
    cell = CloudTrialCell(link="memif", size=64, levels=levels)
    trials = each_block("a", 3 * MEGA) + each_block("a", 3 * MEGA, lost=0.1, cell=cell)
    found = told(asked("3Mpps"), run_of(trials))
    answers = {setting.beside: setting.answer for setting in found.settings}
    assert answers == {"": "yes", "beside 2 containers (load network), CPU shared": "no"}
    assert not any("other programs" in each for each in found.not_measured)


# -- what is missing -------------------------------------------------------------------------------


def test_another_size_is_another_question() -> None:
    found = told(asked(size=512), run_of(each_block("a", 3 * MEGA) + each_block("b", 3 * MEGA)))
    assert (found.answer, found.settings) == ("not measured", [])
    assert "a, b on memif: measured at 64 B, not at 512 B" in found.not_measured


def test_commands_measure_what_is_lacking() -> None:
    trials = each_block("c-l2fwd", 1 * MEGA) + each_block("reflect", 3 * MEGA)
    assert told(asked("2Mpps"), run_of(trials)).commands == [
        "linerate run rfc2544 --tests throughput --link memif --sizes 64 --forwarders c-l2fwd"
    ]
    assert told(asked("2Mpps", "p99:50us"), run_of(trials)).commands == [
        "linerate run latency --frames udp --line-rate 2222222.222 --link memif --sizes 64 "
        "--forwarders reflect,c-l2fwd"
    ]
    assert told(asked("2Mpps", size=512), run_of(trials)).commands == [
        "linerate run rfc2544 --tests throughput --link memif --sizes 512 "
        "--forwarders c-l2fwd,reflect"
    ]


def test_the_command_for_delays_offers_the_rate() -> None:
    """With the experiment's own plan."""
    trials = each_block("reflect", 3 * MEGA)
    (command,) = told(asked("2Mpps", "p99:50us"), run_of(trials)).commands
    line_rate = float(command.split("--line-rate ")[1].split()[0])
    offered = [Step("udp", load).pps(line_rate) for load in LOADS]
    found = told(
        asked("2Mpps", "p99:50us"),
        run_of([w for pps in offered for w in each_block("reflect", pps, p99_us=40.0)]),
    )
    assert found.answer == "yes"
    assert found.commands == []


def test_no_command_for_another_machine() -> None:
    other = MACHINE.model_copy(update={"cpu_model": "another"})
    found = told(asked(), run_of(each_block("c-l2fwd", 1 * MEGA), here=other))
    assert found.commands == []
    assert any(each.startswith("this machine") for each in found.not_measured)


# -- the question ----------------------------------------------------------------------------------


def test_words_of_the_question() -> None:
    found = question("2.5 Mpps", 128, ["p99.9:1ms", "p50:900ns"], "0.5%")
    assert (found.pps, found.size, found.loss_ratio) == (2.5e6, 128, 0.005)
    assert [(each.quantile, each.us, each.name) for each in found.latency] == [
        ("0.999", 1000.0, "p99.9"), ("0.5", 0.9, "p50"),
    ]  # fmt: skip
    assert [question(each, 64).pps for each in ("500k", "500kpps", "500000")] == [5e5] * 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fast", 64), "--rate fast: not a number of frames per second"),
        (("0", 64), "--rate 0: not a number of frames per second above 0"),
        (("-1", 64), "--rate -1: not a number"),
        (("10Gbps", 64), "--rate 14.881Mpps at 64 bytes"),
        (("1M", 63), "--size 63: not within 64 to 1518"),
        (("1M", 64, ["50us"]), "--latency 50us: not a percentile and a time"),
        (("1M", 64, ["p0:50us"]), "--latency p0:50us: not a percentile"),
        (("1M", 64, ["p99:0us"]), "--latency p99:0us: not a percentile"),
        (("1M", 64, ["p99:1us", "p99.0:2us"]), "p99 has a limit already"),
        (("1M", 64, [], "all"), "--loss all: not a share"),
        (("1M", 64, [], "100%"), "--loss 100%: not a share from 0 to below 1"),
    ],
)
def test_wrong_questions(words: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        question(*words)
    assert message in str(refused.value)
