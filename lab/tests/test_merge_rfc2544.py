# SPDX-License-Identifier: BSD-3-Clause
"""Several runs of rfc2544: compared, merged search by search, and refused if they differ."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from simulated import printed
from simulated_lab import (
    CAPACITY,
    CEILING_PPS,
    SimulatedLab,
    options,
    quiet,
    start,
)

from linerate.cli import compare_screen as regression_screen
from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.page.rows import Row, rows_of
from linerate.experiments.rfc2544.runs import Found, Rfc2544Runs
from linerate.host.errors import RunError
from linerate.host.exit_status import ExitStatus
from linerate.records.output import REPORT
from linerate.records.run_file import RUN
from linerate.runs import compare as regression
from linerate.runs.kept import rebuild
from linerate.runs.kept.stored import stored
from linerate.traffic.other_generator import Named

SHORT: dict[str, Any] = {"tests": ("throughput",), "blocks": 2}


def test_a_slower_forwarder_is_a_regression(tmp_path: Path) -> None:
    for name, factor in (("before", 1.0), ("after", 0.93), ("same", 1.0)):
        lab = SimulatedLab(capacity={"rust-l2fwd": CAPACITY["rust-l2fwd"] * factor}, seed=len(name))
        start(lab, tmp_path / name, tests=("throughput",), blocks=8)
    found = regression.compare(stored(tmp_path / "before"), stored(tmp_path / "after"), margin=0.02)
    assert [(each.arm, each.metric, each.verdict) for each in found.changes] == [
        ("rust-l2fwd", "ndr_pps", "slower")
    ]
    found = regression.compare(stored(tmp_path / "before"), stored(tmp_path / "same"), margin=0.02)
    assert "slower" not in {each.verdict for each in found.changes}


def test_runs_are_merged_search_by_search(tmp_path: Path) -> None:
    one, two = (
        start(SimulatedLab(seed=seed), tmp_path / name, blocks=3, seed=seed)
        for name, seed in (("one", 1), ("two", 2))
    )
    found = rebuild.report([tmp_path / "one", tmp_path / "two"], tmp_path / "both", quiet())
    assert isinstance(found, Found)
    arm = found.summary.cells[0].arms[0]
    assert arm.search is not None
    assert (arm.search.searches, arm.search.reasons) == (6, {})
    # Twice the six repetitions of the preset, which are spread over three blocks.
    assert {each.trials for each in arm.search.latency} == {12}
    assert next(c for c in found.summary.comparisons if c.primary).n == 6
    # Both runs' windows are counted, one search at a time.
    apart = [row.counted for row in _rows(one) + _rows(two) if row.arm.arm == arm.arm]
    (both,) = [row.counted for row in _rows(found) if row.arm.arm == arm.arm]
    assert both is not None
    assert both.sent == sum(each.sent for each in apart if each) > 0
    # The value of both, which is the same.
    (ceiling,) = [cell.ceiling for cell in found.summary.cells]
    assert ceiling == one.summary.cells[0].ceiling
    page = found.files()[REPORT]
    assert f"<td>{both.sent:,}</td>" in page
    assert "this run by the published arithmetic" in page


def late_above(most: float, pps: float) -> float:
    """The share of windows that are void."""
    return float(pps > most)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs: the sender of the first is late at more than 85 % of what the peer carries."""
    found = []
    for seed, most in enumerate((0.86, 1.1, 1.1), start=1):
        lab = SimulatedLab(
            capacity={"c-l2fwd": 12e6, "rust-l2fwd": 4e6},
            late=partial(late_above, most * CEILING_PPS),
            seed=seed,
        )
        found.append(tmp_path_factory.mktemp("parts") / "run")
        start(lab, found[-1], tests=("throughput",), blocks=1, seed=seed)
    return found


def merged(parts: list[Path], out: Path) -> Found:
    found = rebuild.report(parts, out, quiet())
    assert isinstance(found, Found)
    return found


def test_searches_of_merged_runs_have_each_its_own_100_per_cent(
    parts: list[Path], tmp_path: Path
) -> None:
    found = merged(parts[:2], tmp_path / "both")
    (cell,) = found.summary.cells
    assert cell.ceiling is None
    told = "100 % was 8.500, 10.000 Mpps in the runs that were merged"
    assert any(told in text for text in found.summary.warnings)
    searches = found.searches[cell.link, cell.size]
    for arm in cell.arms:
        assert arm.search is not None
        shares = [
            each.unit.lossless.lower_pps / each.trials[0].request.maximum_pps
            for each in searches
            if each.arm == arm.arm
            and each.unit.lossless
            and each.unit.lossless.lower_pps
            and each.trials[0].request.maximum_pps
        ]
        assert len(shares) == 2
        assert arm.search.goals[0].share == pytest.approx(statistics.median(shares))
    # An arm at its own 100 % is at 100 %.
    assert cell.arms[0].search is not None
    assert cell.arms[0].search.goals[0].share == pytest.approx(1)
    console = quiet()
    found.show(console)
    assert "memif, 64 B: books closed" in printed(console)
    page = found.files()[REPORT]
    assert "100 % is " not in page
    assert "100 % (best peer)" not in page
    assert "100.0 %" in page


def test_who_limits_merged_runs_is_asked_run_by_run(parts: list[Path], tmp_path: Path) -> None:
    """Most searches were not ended by the sender of the first run."""
    found = merged(parts, tmp_path / "all")
    assert [(each.arm, each.by) for each in found.summary.limited_by] == [("c-l2fwd", "link")]


def _rows(found: Found) -> list[Row]:
    return rows_of(found.summary, found.searches)


def test_runs_with_other_tests_are_not_merged(tmp_path: Path) -> None:
    start(SimulatedLab(), tmp_path / "one", tests=("throughput",), blocks=2)
    start(SimulatedLab(), tmp_path / "two", tests=("throughput", "loss"), blocks=2, seed=2)
    with pytest.raises(RunError, match=r"--tests throughput and throughput, loss"):
        rebuild.report([tmp_path / "one", tmp_path / "two"], tmp_path / "both", quiet())
    assert not (tmp_path / "both").exists()


def test_runs_with_other_blocks_are_not_merged_and_the_hint_is_true(tmp_path: Path) -> None:
    for name, blocks in (("one", 2), ("two", 3)):
        start(SimulatedLab(), tmp_path / name, tests=("throughput",), blocks=blocks, seed=blocks)
    with pytest.raises(RunError) as refused:
        rebuild.report([tmp_path / "one", tmp_path / "two"], tmp_path / "both", quiet())
    differing, hint = str(refused.value).splitlines()
    assert differing == "the runs have different options: --blocks 2 and 3"
    assert "--seed" in hint
    assert "--blocks" not in hint


@pytest.mark.parametrize(
    ("option", "asked"),
    [
        ("--ip 4 and 6", {"ip": 6}),
        ("--directions both and one", {"links": ["memif2"], "directions": "one"}),
        ("--preset quick and csit", {"preset": presets.preset("csit")}),
        (
            "--generator none and http://127.0.0.1:1",
            {"generator": Named("http://127.0.0.1:1"), "line_rate": 4e6},
        ),
    ],
)
def test_runs_that_were_asked_different_things_are_not_compared(
    tmp_path: Path, option: str, asked: dict[str, Any]
) -> None:
    """Their cells have the same names."""
    runs = Rfc2544Runs()
    for name, given in (("before", {"links": asked.get("links", [])}), ("after", asked)):
        start(SimulatedLab(), tmp_path / name, sizes=[128], **SHORT)
        path = tmp_path / name / RUN
        design = runs.design(asdict(options(sizes=[128], tests=("throughput",), **given)))
        path.write_text(json.dumps(json.loads(path.read_text()) | {"design": design}))
    one, other = (stored(tmp_path / name) for name in ("before", "after"))
    with pytest.raises(RunError, match=option):
        regression.compare(one, other, margin=0.02)
    with pytest.raises(RunError) as refused:
        regression_screen.run(
            one.directory, other.directory, "2%", strict=False, json_output=False, console=quiet()
        )
    assert refused.value.exit_code == ExitStatus.USAGE


def test_another_seed_and_number_of_blocks_do_not_keep_runs_from_being_compared(
    tmp_path: Path,
) -> None:
    for name, blocks in (("one", 6), ("two", 7)):
        start(SimulatedLab(), tmp_path / name, tests=("throughput",), blocks=blocks, seed=blocks)
    found = regression.compare(stored(tmp_path / "one"), stored(tmp_path / "two"), margin=0.02)
    assert [(each.n_before, each.n_after) for each in found.changes] == [(6, 7)]
