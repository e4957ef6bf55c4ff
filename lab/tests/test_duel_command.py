# SPDX-License-Identifier: BSD-3-Clause
"""`linerate duel` as CI systems and `git bisect run` call it, without a measurement: only `fight`
is replaced, the rest is the lab's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import by_schema
import pytest
from conftest import Linerate, wait_for
from test_duel import duel
from test_duel_baseline import build

from linerate.cli import duel_session
from linerate.cli.duel_options import Where, asked_of, repeating
from linerate.experiments.duel.rounds import Duel
from linerate.host.errors import GeneratorError, Interrupted
from linerate.host.exit_status import BisectStatus, ExitStatus, for_git
from linerate.trial.starts.faults import FaultError

OLD, NEW = "./old {eal} -- -p {portmask}", "./new {eal} -- -p {portmask}"
Answer = Callable[..., None]


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Set what the next duels find: a duel, or an error."""
    build(tmp_path / "old", "one")
    build(tmp_path / "new", "two")

    def find(found: Duel | BaseException) -> None:
        def fight(*_: object) -> Duel:
            if isinstance(found, BaseException):
                raise found
            return found

        monkeypatch.setattr(duel_session, "fight", fight)

    find(duel(1.0, 30))
    return find


def spoilt(arm: int, kind: str = "ended") -> Duel:
    found = duel(0.9, 1)
    found.fault = FaultError(arm, kind, "it was so")  # type: ignore[arg-type]
    return found


UNDECIDED = duel(0.995, 9, spread=0.03)


# -- files -----------------------------------------------------------------------------------------


def test_all_formats_are_given_at_once(tmp_path: Path, linerate: Linerate, answer: Answer) -> None:
    answer(duel(0.9, 30))
    done = linerate("duel", OLD, NEW, "--markdown", "d.md", "--repeat-with", "check this")
    assert "```sh\ncheck this\n```" in (tmp_path / "d.md").read_text()
    done = linerate("duel", OLD, NEW, "--json", "--junit", "d.xml", "--markdown", "d.md")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    by_schema.check(found, "duel-1.json")
    assert found["repeat"] == f"linerate duel '{OLD}' '{NEW}' --seed {found['seed']}"
    case = ET.parse(tmp_path / "d.xml").find("testsuite/testcase/failure")
    assert case is not None
    assert case.get("message") == found["sentence"]
    assert found["repeat"] in (tmp_path / "d.md").read_text()
    assert {each.name for each in tmp_path.iterdir()} == {"old", "new", "d.xml", "d.md"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (duel(1.0, 30), (0, [])),
        (UNDECIDED, (3, ["skipped"])),
        (spoilt(1), (3, ["error"])),
        (spoilt(0, "start"), (4, ["error"])),
        (GeneratorError("it ended"), (4, ["error"])),
    ],
)
def test_files_are_written_for_every_answer(
    tmp_path: Path, linerate: Linerate, answer: Answer,
    found: Duel | BaseException, expected: tuple[int, list[str]],
) -> None:  # fmt: skip
    answer(found)
    status, tags = expected
    (tmp_path / "d.md").write_text("of an earlier duel")
    done = linerate("duel", OLD, NEW, "--junit", "d.xml", "--markdown", "d.md")
    assert done.returncode == status
    case = ET.parse(tmp_path / "d.xml").find("testsuite/testcase")
    assert case is not None
    assert [each.tag for each in case if each.tag != "system-out"] == tags
    assert "Repeat it:" in (tmp_path / "d.md").read_text()


def test_a_program_that_is_missing_is_in_the_files(
    tmp_path: Path, linerate: Linerate, answer: Answer
) -> None:
    done = linerate("duel", OLD, "./nwe {eal}", "--junit", "d.xml")
    assert (done.returncode, "did you mean ./new?" in done.stderr) == (4, True)
    error = ET.parse(tmp_path / "d.xml").find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message") == "No comparison: B: no such program: ./nwe"


def test_an_interruption_leaves_no_file(tmp_path: Path, linerate: Linerate, answer: Answer) -> None:
    """Nor is a file of an earlier duel left, which would be taken for this one's."""
    answer(Interrupted(signal.SIGTERM))
    (tmp_path / "d.xml").write_text("<of-an-earlier-duel/>")
    done = linerate("duel", OLD, NEW, "--junit", "d.xml", "--markdown", "d.md")
    assert done.returncode == 128 + signal.SIGTERM
    assert {each.name for each in tmp_path.iterdir()} == {"old", "new"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--junit", "nosuch/d.xml"), "cannot write to nosuch/d.xml"),
        (("--markdown", "."), "--markdown .: not a regular file"),
        (("--junit", "d", "--markdown", "./d"), "--junit and --markdown name the same file"),
    ],
)
def test_files_are_refused_before_anything_is_measured(
    linerate: Linerate, answer: Answer, options: tuple[str, ...], message: str
) -> None:
    answer(AssertionError("measured"))
    done = linerate("duel", OLD, NEW, *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_command_that_repeats_a_duel_has_what_is_not_usual() -> None:
    asked = asked_of("5%", "2m", 3, 128, 9, bisect=False)
    where = Where("nearfree2", "no", "turns", "2")
    assert repeating(["a b", "c"], where, asked, None) == (
        "linerate duel 'a b' c --link nearfree2 --margin 5% --within 120s --starts 3 --size 128 "
        "--hugepages no --lcores 2 --method turns --seed 9"
    )
    asked = asked_of("2%", None, 4, 64, 9, bisect=False, check=False)
    assert repeating(["c"], Where(traffic=("a b.pcap",)), asked, Path("b.json")) == (
        "linerate duel c --baseline b.json --seed 9 --traffic 'a b.pcap' --no-check"
    )


# -- a baseline ------------------------------------------------------------------------------------


def test_a_baseline_stands_in_place_of_the_first_program(
    tmp_path: Path, linerate: Linerate, answer: Answer
) -> None:
    kept = linerate("duel", "--keep-baseline", "b.json", OLD)
    assert (kept.returncode, "with a copy of it in b.json.program" in kept.stdout) == (0, True)
    build(tmp_path / "old", "rebuilt")
    done = linerate("duel", "--baseline", "b.json", OLD, "--json", "--markdown", "d.md")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    by_schema.check(found, "duel-1.json")
    assert [each["given"] for each in found["programs"]] == [OLD, OLD]
    assert [each["name"] for each in found["programs"]] == ["A-old", "B-old"]
    assert found["baseline"]["file"] == "b.json"
    assert "--baseline b.json" in found["repeat"]
    assert "| A (old of the baseline) | B (old) |" in (tmp_path / "d.md").read_text()
    # An error belongs to the same test name, by which CI systems identify it.
    linerate("duel", "--baseline", "b.json", OLD, "--junit", "d.xml")
    (tmp_path / "old").unlink()
    linerate("duel", "--baseline", "b.json", OLD, "--junit", "e.xml")
    tests = [ET.parse(tmp_path / each).find("testsuite/testcase") for each in ("d.xml", "e.xml")]
    assert len({each.get("name") for each in tests if each is not None}) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((OLD,), "B is missing: a duel has two programs"),
        (("--baseline", "b.json", OLD, NEW), "it has the first program, and two more are given"),
        (("--baseline", "b.json", OLD), "--baseline b.json: No such file or directory"),
        (("--keep-baseline", "b.json", OLD, NEW), "two programs are given"),
        (("--keep-baseline", "b.json", OLD, "--bisect"), "it measures nothing"),
        (("--keep-baseline", "b.json", OLD, "--build", "make"), "it measures nothing"),
    ],
)
def test_options_that_do_not_fit_together(
    tmp_path: Path, linerate: Linerate, answer: Answer, words: tuple[str, ...], message: str
) -> None:
    done = linerate("duel", *words)
    assert message in done.stderr
    assert done.returncode == (202 if "--bisect" in words else 2)
    assert not (tmp_path / "b.json").exists()


# -- a build ---------------------------------------------------------------------------------------


def test_what_is_compared_is_built_first(
    tmp_path: Path, linerate: Linerate, answer: Answer
) -> None:
    (tmp_path / "new").rename(tmp_path / "later")
    done = linerate("duel", OLD, NEW, "--build", "echo building; mv later new")
    assert done.returncode == 0, done.stderr
    assert "building" not in done.stdout


def test_a_build_that_fails_is_told_with_its_end(
    tmp_path: Path, linerate: Linerate, answer: Answer
) -> None:
    answer(AssertionError("measured"))
    build_command = "echo fw.c:3: error: so and so; exit 2"
    done = linerate("duel", OLD, NEW, "--build", build_command, "--junit", "d.xml")
    assert done.returncode == 4
    assert "ended with exit code 2\nfw.c:3: error: so and so" in done.stderr
    assert ET.parse(tmp_path / "d.xml").find("testsuite/testcase/error") is not None
    done = linerate("duel", OLD, NEW, "--build", build_command, "--bisect")
    assert (done.returncode, "so and so" in done.stderr) == (BisectStatus.SKIP, True)


def test_a_build_ends_with_the_lab(tmp_path: Path) -> None:
    build(tmp_path / "old", "one")
    line = "touch begun; sleep 3210 & sleep 3210"
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "duel", OLD, OLD, "--bisect", "--build", line],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        wait_for("the build", lambda: (tmp_path / "begun").exists() or lab.poll(), 60)
        time.sleep(0.1)
        lab.send_signal(signal.SIGTERM)
        _, errors = lab.communicate(timeout=60)
    assert lab.returncode == 128 + signal.SIGTERM, errors
    left = [
        each.parent.name
        for each in Path("/proc").glob("[0-9]*/cwd")
        if os.path.realpath(each) == str(tmp_path)
    ]
    assert left == []


# -- git bisect ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (duel(1.0, 30), 0),
        (duel(1.2, 30), 0),
        (duel(0.99, 30), 0),
        (duel(0.9, 30), 1),
        (UNDECIDED, 125),
        (duel(0.8, 40, margin=0.5, itself=0.2), 125),
        (spoilt(1, "start"), 125),
        (spoilt(1, "drops"), 125),
        # The baseline does not depend on the commit that is tested.
        (spoilt(0, "start"), 204),
        (spoilt(0, "ended"), 204),
        (GeneratorError("it ended"), 204),
        (RuntimeError("a fault of the lab"), 204),
        (Interrupted(signal.SIGINT), 130),
    ],
)
def test_statuses_are_those_of_git_bisect(
    linerate: Linerate, answer: Answer, found: Duel | BaseException, status: int
) -> None:
    answer(found)
    assert linerate("duel", OLD, NEW, "--bisect").returncode == status


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--margin", "lots"), 202),
        (("--link", "nosuch"), 202),
        (("--junit", "nosuch/x"), 202),
        (("--nosuch",), 202),
        # Git would take an unmeasured commit for a good one.
        (("--help",), 200),
    ],
)
def test_whatever_else_goes_wrong_ends_a_bisect(
    linerate: Linerate, answer: Answer, words: tuple[str, ...], status: int
) -> None:
    answer(AssertionError("measured"))
    assert linerate("duel", OLD, NEW, "--bisect", *words).returncode == status
    assert linerate("duel", OLD, "./nosuch {eal}", "--bisect").returncode == 204


def test_only_three_statuses_are_below_128() -> None:
    assert [for_git(each) for each in BisectStatus] == [0, 1, 125]
    assert [for_git(each) for each in ExitStatus] == [200, 201, 202, 203, 204, 205]
    assert for_git(143) == 143


def test_a_bisect_takes_its_time() -> None:
    """Undecided commits are skipped, and then others must be tested in their place."""
    assert asked_of("2%", None, 4, 64, 1, bisect=True).within_s == 300
    assert asked_of("2%", None, 4, 64, 1, bisect=False).within_s == 60
    assert asked_of("2%", "10s", 4, 64, 1, bisect=True).within_s == 10


def test_a_kept_program_has_its_own_name_beside_a_new_build_of_the_same_file(
    linerate: Linerate, answer: Answer, tmp_path: Path
) -> None:
    """As `git bisect run` compares them: both are called by the same command line."""
    answer(duel(0.9, 30))
    assert linerate("duel", "--keep-baseline", "good.json", OLD).returncode == 0
    build(tmp_path / "old", "three")
    done = linerate("duel", "--baseline", "good.json", OLD)
    assert "B (old) is slower than A (old of the baseline) by more than 2 %" in done.stdout
    # Two names that differ say enough.
    done = linerate("duel", "--baseline", "good.json", NEW)
    assert "B (new) is slower than A (old) by more than 2 %" in done.stdout
