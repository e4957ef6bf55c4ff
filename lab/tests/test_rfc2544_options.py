# SPDX-License-Identifier: BSD-3-Clause
"""The options of rfc2544, and what conforms to the RFC."""

from __future__ import annotations

from pathlib import Path

import pytest
from rfc2544_runs import arm, run
from simulated import KilledError
from simulated_lab import (
    SimulatedLab,
    options,
    quiet,
    start,
)

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.estimate import estimate
from linerate.experiments.rfc2544.plan import cells
from linerate.experiments.rfc2544.runs import Found
from linerate.experiments.rfc2544.table import conformity
from linerate.host.errors import UsageError
from linerate.records.trial import Test, Trial
from linerate.runs.kept import rebuild
from linerate.verdict.stats import ALPHA


def test_sizes_with_names() -> None:
    assert presets.named_sizes("standard", 4) == [64, 128, 256, 512, 1024, 1280, 1518]
    assert presets.named_sizes("standard", 6) == [84, 128, 256, 512, 1024, 1280, 1518]
    published = presets.named_sizes("published", 4)
    assert published is not None
    assert (len(published), published[0], published[-1]) == (26, 64, 1518)
    assert presets.named_sizes("64", 4) is None


@pytest.mark.parametrize(
    "given",
    [
        {"sizes": [63]}, {"sizes": [1519]}, {"sizes": [64], "ip": 6}, {"blocks": 0},
        {"links": ["null"]}, {"directions": "one"}, {"links": ["nowhere"]},
        {"sizes": [84], "ip": 6, "forwarders": ["c-l3fwd-lpm", "c-l3fwd-graph"]},
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        cells(options(**given))


def test_forwarders_that_route_take_ipv6_where_they_can() -> None:
    names = ["c-l3fwd-lpm", "c-l3fwd-em", "c-l3fwd-acl"]
    assert cells(options(ip=6, forwarders=names, sizes=[84]))
    assert cells(options(forwarders=[*names, "c-l3fwd-graph"]))


def test_one_direction_needs_two_ports() -> None:
    assert [cell.link for cell in cells(options(links=["memif2"], directions="one"))] == ["memif2"]


@pytest.mark.parametrize(
    ("sizes", "tests", "family"),
    [
        ([64], ("throughput",), 1),
        ([64], ("throughput", "core-use"), 6),
        ([64], ("throughput", "latency"), 3),
        (list(presets.STANDARD_SIZES), ("throughput", "loss"), 7),
        (list(presets.STANDARD_SIZES), presets.TESTS, 7 * 6),
        (list(presets.published_sizes()), presets.TESTS, 26 * 6),
    ],
)
def test_one_failed_search_leaves_blocks_that_can_decide(
    sizes: list[int], tests: tuple[Test, ...], family: int
) -> None:
    """At one size and load, with the correction for all of them together; a few searches of each
    forwarder where that needs few blocks.
    """
    blocks = cells(options(sizes=sizes, tests=tests))[0].blocks
    assert family * 2 / 2 ** (blocks - 1) < ALPHA
    assert family * 2 / 2 ** (blocks - 2) >= ALPHA or blocks == 10


def test_throughput_is_always_measured() -> None:
    assert presets.tests_of([]) == presets.TESTS
    assert presets.tests_of(["loss"]) == ("throughput", "loss")
    with pytest.raises(UsageError, match="reset"):
        presets.tests_of(["reset"])


def test_estimates_are_in_proportion() -> None:
    def seconds(name: str) -> float:
        preset = presets.preset(name)
        return estimate(preset, presets.TESTS, cells=1, blocks=6, whole=2, short=2).seconds

    assert 60 < seconds("quick") < 1200
    assert 3 * seconds("quick") < seconds("csit") < seconds("conforming") / 10


def test_conforming_has_the_rfc_s_durations_and_repetitions() -> None:
    preset = presets.preset("conforming")
    goal = preset.goals[0]
    assert (goal.final_s, goal.loss_ratio, goal.exceed_ratio) == (60, 0, 0)
    assert preset.latency_share(6) * 6 >= 20
    assert preset.burst_share(6) * 6 >= 50
    _, found = run(
        SimulatedLab(), preset=preset, tests=("throughput",), forwarders=["c-l2fwd"], blocks=1
    )
    assert found.conforming is True


CONFORMING = presets.preset("conforming")


def test_a_conforming_run_that_was_cut_off_does_not_conform(tmp_path: Path) -> None:
    """After one of eight blocks."""
    lab = SimulatedLab()

    def kill(trial: Trial) -> None:
        if (trial.role, trial.block) == ("search", 1):
            raise KilledError

    lab.before_window = kill
    asked = {"preset": CONFORMING, "forwarders": ["c-l2fwd"], "tests": ("throughput", "latency")}
    with pytest.raises(KilledError):
        start(lab, tmp_path / "run", **asked)
    found = rebuild.report([tmp_path / "run"], None, quiet())
    assert isinstance(found, Found)
    summary = found.summary
    assert (summary.interrupted, summary.conforming) == (True, False)
    # Three of the twenty repetitions, not the number that eight blocks would give.
    assert conformity(summary) == (
        "Preset conforming, NOT conforming to RFC 2544: latency repeated 3 times instead of 20; "
        "the run ended early."
    )
    summary.interrupted = False
    assert "not every forwarder was searched in every block" in conformity(summary)


def test_a_conforming_run_with_a_test_that_has_no_result_does_not_conform() -> None:
    """No frame comes back with its latency."""
    lab = SimulatedLab()
    lab.timeless = True
    _, found = run(
        lab, preset=CONFORMING, tests=("throughput", "latency"), forwarders=["c-l2fwd"], blocks=2
    )
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    assert (figures.unfinished, figures.latency, found.interrupted) == (0, [], False)
    assert found.conforming is False
    assert conformity(found) == (
        "Preset conforming, NOT conforming to RFC 2544: latency repeated 0 times instead of 20; "
        "not every test of every search has a result."
    )
