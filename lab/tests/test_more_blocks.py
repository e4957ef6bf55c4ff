# SPDX-License-Identifier: BSD-3-Clause
"""`--resume DIR --blocks N` adds blocks to a run that has ended, and its tests get stricter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import by_schema
import pytest
from rich.console import Console
from simulated import Simulation, killed_at, printed, quiet, resume, start

from linerate.host import foreign
from linerate.host.errors import RunError, UsageError
from linerate.records.run_file import RUN
from linerate.records.summary import SUMMARY
from linerate.records.trial import RECORDS
from linerate.runs.kept import extension
from linerate.runs.kept.rebuild import report
from linerate.runs.kept.stored import stored
from linerate.verdict import stats
from linerate.verdict.comparisons import pairs_of
from linerate.verdict.judgement import judge
from linerate.verdict.metrics import FORWARDED

ASKED: dict[str, Any] = {"links": ["null"], "forwarders": ["c-l2fwd", "rust-l2fwd"], "probe": False}


def summary_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / SUMMARY).read_text())
    return found


def more(run: Path, blocks: int, console: Console | None = None, **given: Any) -> None:
    resume(run, console, **{"--blocks": blocks, **given})


def test_blocks_are_added(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    start(run, **ASKED, blocks=6)
    records, before = (run / RECORDS).read_bytes(), len(simulation.ran)
    console = quiet()
    more(run, 10, console)
    assert "4 blocks more of each cell" in printed(console)
    # The first records are unchanged, and four blocks of three arms and two peers are new.
    assert (run / RECORDS).read_bytes() == records
    new = [plan for plan in simulation.ran[before:] if plan.role == "measure"]
    assert [plan.block for plan in new] == [block for block in range(4) for _ in range(3)]
    summary = summary_of(run)
    assert [cell["blocks"] for cell in summary["cells"]] == [10]
    assert {each["n"] for each in summary["comparisons"]} == {10}
    assert any("a level of 0.025 instead of 0.05" in each for each in summary["warnings"])
    by_schema.check(json.loads((run / "more-1" / RUN).read_text()), "run-1.json")
    found = stored(run)
    assert (found.run.looks, found.run.complete(len(found.trials))) == (2, True)
    # Each new block has its own order.
    assert {trial.seed for trial in found.trials} == {1, 2}
    written = (run / SUMMARY).read_text()
    report([run], None, quiet())
    assert (run / SUMMARY).read_text() == written


def test_each_look_is_stricter_than_the_last(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    start(run, **ASKED, blocks=6)
    for blocks, level in ((10, 0.025), (12, 0.0125)):
        more(run, blocks)
        mine = [trial for trial in stored(run).trials if trial.role == "measure"]
        both, _ = pairs_of(mine, "rust-l2fwd", "c-l2fwd", FORWARDED)
        arm, baseline = zip(*both, strict=True)
        expected = stats.compare(arm, baseline, level)
        (found,) = summary_of(run)["comparisons"]
        assert found["n"] == blocks
        assert found["ci_low"] == pytest.approx(expected.ci_low)
        assert found["ci_high"] == pytest.approx(expected.ci_high)


def test_a_verdict_takes_a_p_below_the_level() -> None:
    # The interval at either level excludes 1; p is 0.031.
    arm, baseline = [1.1, 1.2, 1.3, 1.15, 1.25, 1.35], [1.0] * 6
    found, itself = stats.compare(arm, baseline), stats.compare(baseline, baseline)
    assert found.p == 2 / 2**6
    assert judge(found, found.p, planned=6, aa=itself).verdict == "faster"
    with stats.tested_at(stats.level_after(2)):
        again = judge(found, found.p, planned=6, aa=itself)
        assert stats.compare(arm, baseline).ci_low is None
    assert (again.verdict, "not below 0.025" in again.reason) == ("undecided", True)
    assert sum(stats.level_after(look) for look in range(1, 40)) < 2 * stats.ALPHA


def test_what_was_interrupted_goes_on(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    start(run, **ASKED, blocks=6)
    with killed_at(simulation, len(simulation.ran) + 5):
        more(run, 10)
    assert extension.unfinished(run) == run / "more-1"
    with pytest.raises(UsageError, match="has not ended"):
        more(run, 12)
    resume(run)
    assert summary_of(run)["cells"][0]["blocks"] == 10
    # Nothing is left to run, and the statements are about all blocks.
    ran = len(simulation.ran)
    resume(run)
    assert len(simulation.ran) == ran
    assert summary_of(run)["cells"][0]["blocks"] == 10


def test_what_cannot_be_added_is_refused(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    with killed_at(simulation, 4):
        start(run, **ASKED, blocks=6)
    with pytest.raises(UsageError, match=r"--blocks 10: the run in .* has not ended"):
        more(run, 10)
    resume(run)
    with pytest.raises(UsageError, match=r"--blocks 5: the run in .* has 6 already"):
        more(run, 5)
    with pytest.raises(UsageError, match=r"--seed 9: the run in .* has --seed 1"):
        more(run, 10, None, **{"--seed": 9})
    assert not extension.places(run)


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        ("links", r"more-1: a link, not a directory of added blocks"),
        ("many", r"run: blocks were added more than 30 times"),
        ("large", r"more-2: added blocks have more than 256 MiB of records together"),
    ],
)
def test_a_run_has_no_end_of_added_blocks(tmp_path: Path, made: str, complaint: str) -> None:
    """3,000 links to the run itself kept a report busy for minutes, and filled memory."""
    run = tmp_path / "run"
    run.mkdir()
    (run / RUN).write_text("{}")
    for number in range(1, extension.MOST + 2):
        place = run / f"more-{number}"
        if made == "links":
            place.symlink_to(".")
            continue
        place.mkdir()
        (place / RUN).write_text("{}")
        if made == "large":
            with (place / RECORDS).open("wb") as records:
                records.truncate(foreign.MOST_RECORDS // 2 + 1)
    with pytest.raises(RunError, match=complaint):
        extension.places(run)
    with pytest.raises(RunError, match=complaint):
        extension.measured(run)


def test_other_programs_add_no_blocks(tmp_path: Path, simulation: Simulation) -> None:
    run = tmp_path / "run"
    start(run, **ASKED, blocks=6)
    simulation.digests = {**simulation.digests, "rust-l2fwd": "f" * 64}
    with pytest.raises(RunError, match="rust-l2fwd"):
        more(run, 10)
    # Nothing unfinished is left.
    assert not extension.places(run)
    assert not (run / "more-1").exists()
