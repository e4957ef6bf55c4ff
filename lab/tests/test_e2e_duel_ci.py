# SPDX-License-Identifier: BSD-3-Clause
"""Duels in CI and in bisects: the steps of `actions/duel` as CI systems run them, and real bisects,
on a small repository with a Makefile and a forwarder in C.

The planted differences are so large that no noise hides them, and the margin is so wide that equal
programs are soon known to be equal.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from conftest import wait_for
from test_e2e import runtime

from linerate.host.places import project_root
from linerate_bench.trust import bisects
from linerate_bench.trust.repository import PROGRAM, Repository

pytestmark = pytest.mark.e2e

# A fixture of the tests of real runs.
assert runtime

ACTION = project_root() / "actions" / "duel"
# Additions after each burst: with them the forwarder takes more than twice as long.
SLOW = 3200
OPTIONS = "--margin 25% --starts 2 --hugepages no --within 30s"


@dataclass(frozen=True)
class Ended:
    """`outputs`: what the step passes on to others. `summary`: what the job's page shows."""

    status: int
    log: str
    outputs: dict[str, str]
    summary: str


@dataclass(frozen=True)
class Ci:
    """A checkout as CI systems make it, and directories for them."""

    checkout: Path
    place: Path
    runtime: Path

    @property
    def environment(self) -> dict[str, str]:
        linerate = self.place / "linerate"
        linerate.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m linerate "$@"\n')
        linerate.chmod(0o755)
        (self.place / "temp").mkdir(exist_ok=True)
        return {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(self.place / "temp"),
        }

    def start(self, script: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """Run a step of a job in the shell that GitHub starts for `shell: bash`."""
        path = self.place / "step.sh"
        path.write_text(script)
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)],
            cwd=self.checkout, env={**self.environment, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def action(self, **inputs: str) -> Ended:
        """Run what `uses: .../actions/duel` does with these inputs."""
        action = yaml.safe_load((ACTION / "action.yml").read_text())
        given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
        assert set(inputs) <= set(given)
        given |= {"linerate": str(self.place / "linerate"), "options": OPTIONS, **inputs}
        output, summary = self.place / "output", self.place / "summary"
        for each in (output, summary):
            each.write_text("")
        (step,) = action["runs"]["steps"]
        assert step["shell"] == "bash"
        variables = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.checkout),
            "RUNNER_TEMP": str(self.place / "temp"),
            **{name: filled(text, given) for name, text in step["env"].items()},
        }
        with self.start(step["run"], variables) as running:
            log, _ = running.communicate(timeout=120)
        pairs = [line.partition("=") for line in output.read_text().splitlines()]
        outputs = {name: value for name, _, value in pairs}
        for each in action["outputs"].values():
            found = re.fullmatch(r"\$\{\{ steps\.duel\.outputs\.(\w+) \}\}", each["value"])
            assert found
            assert found[1] in outputs, log
        # Nothing stays in the repository, nor in the runner's directories.
        assert self.worktrees() == 1
        assert list((self.place / "temp").iterdir()) == []
        return Ended(running.returncode, log, outputs, summary.read_text())

    def worktrees(self) -> int:
        listed = subprocess.run(
            ["git", "worktree", "list"], cwd=self.checkout, env=self.environment,
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        return len(listed.splitlines())


def filled(text: str, inputs: Mapping[str, str]) -> str:
    """Fill in an action's inputs as GitHub does."""
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    """A user's project, whose branch main is fast; other branches are pull requests."""
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed: make setup")
    made = Repository.make(tmp_path / "project")
    made.commit("main", 0)
    for name, chain, broken in (("slower", SLOW, False), ("equal", 0, False), ("broken", 0, True)):
        made.git("checkout", "--quiet", "-b", name, "main")
        made.commit(name, chain, broken=broken)
    made.git("checkout", "--quiet", "main")
    return made


@pytest.fixture
def ci(project: Repository, tmp_path: Path, runtime: Path) -> Ci:
    return Ci(project.path, tmp_path, runtime)


def test_a_pull_request_that_is_slower_fails(project: Repository, ci: Ci, tmp_path: Path) -> None:
    """In a checkout as actions/checkout makes it: the merge commit alone, without its parents."""
    project.git("merge", "--quiet", "--no-ff", "--message", "merge", "slower")
    clone = tmp_path / "clone"
    project.git("clone", "--quiet", "--depth", "1", f"file://{project.path}", str(clone))
    found = Ci(clone, ci.place, ci.runtime).action(program=PROGRAM)
    assert found.status == 1, found.log
    assert found.outputs["answer"] == "slower"
    # By its commits, from which the CI system made the merge.
    mine, base = (project.git("rev-parse", name)[:12] for name in ("slower", "main^1"))
    slower = f"B (fw of {mine}) is slower than A (fw of the base {base})"
    assert f"::error title=linerate duel::{slower} by more than 25 %" in found.log
    assert f"{slower} by more than 25 %: 0." in found.summary
    assert "| M packets per CPU second |" in found.summary
    assert (
        f"DUEL_PROGRAM='{PROGRAM}' DUEL_BUILD='make' DUEL_OPTIONS='{OPTIONS} --seed "
        in found.summary
    )
    failure = ET.parse(clone / found.outputs["junit"]).find("testsuite/testcase/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith(slower)


@pytest.mark.parametrize(
    ("ref", "named"), [("refs/pull/7/merge", "slower"), ("refs/heads/main", "main"), ("", "main")]
)
def test_a_merge_commit_is_named_itself_unless_github_made_it(
    project: Repository, ci: Ci, ref: str, named: str
) -> None:
    """Nothing is measured: a fake program linerate stores its arguments."""
    project.git("merge", "--quiet", "--no-ff", "--message", "merge", "slower")
    asked, program = ci.place / "asked", ci.place / "keeps-words"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{asked}'\n")
    program.chmod(0o755)
    variables = {
        "DUEL_PROGRAM": PROGRAM, "DUEL_BUILD": "true", "LINERATE": str(program), "GITHUB_REF": ref,
    }  # fmt: skip
    with ci.start(f'exec "{ACTION}/check"', variables) as running:
        log, _ = running.communicate(timeout=60)
    assert running.returncode == 0, log
    words = asked.read_text().splitlines()
    commits = [project.git("rev-parse", name)[:12] for name in ("main^1", named)]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--which"] == [
        f"of the base {commits[0]}",
        f"of {commits[1]}",
    ]


def test_a_pull_request_that_is_as_fast_passes(project: Repository, ci: Ci) -> None:
    project.git("checkout", "--quiet", "equal")
    found = ci.action(program=PROGRAM, base="main", undecided="pass")
    assert found.status == 0, found.log
    # A busy machine may not have decided it in that time.
    assert found.outputs["answer"] in ("not-slower", "undecided")
    case = ET.parse(ci.checkout / "linerate-duel.xml").find("testsuite/testcase")
    assert case is not None
    assert case.find("failure") is None


@pytest.mark.second_tier
def test_what_is_not_decided_fails_unless_it_may_pass(project: Repository, ci: Ci) -> None:
    project.git("checkout", "--quiet", "equal")
    options = "--starts 2 --hugepages no --within 1s"
    found = ci.action(program=PROGRAM, base="main", options=options, junit="a.xml")
    assert (found.status, found.outputs["answer"]) == (3, "undecided"), found.log
    assert "::warning title=linerate duel::Not decided" in found.log
    assert ET.parse(ci.checkout / "a.xml").find("testsuite/testcase/skipped") is not None
    found = ci.action(program=PROGRAM, base="main", options=options, undecided="pass")
    assert (found.status, found.outputs["answer"]) == (0, "undecided"), found.log


@pytest.mark.parametrize(
    ("head", "inputs", "expected"),
    [
        ("broken", {"base": "main"}, (4, "this commit does not build: make")),
        ("equal", {"base": "broken"}, (4, "does not build: make")),
        ("equal", {"base": "nosuch"}, (2, "DUEL_BASE=nosuch: no such commit here or in origin")),
        ("equal", {"base": "main", "undecided": "maybe"}, (2, "must be fail or pass")),
        ("equal", {"base": "main", "program": ""}, (2, "DUEL_PROGRAM is not set")),
        ("equal", {"base": "main", "program": "./wf {eal}"}, (4, "cannot be kept")),
        ("equal", {"base": "equal"}, (0, "nothing to compare")),
    ],
)
def test_what_cannot_be_compared_is_named(
    project: Repository, ci: Ci, head: str, inputs: dict[str, str], expected: tuple[int, str]
) -> None:
    status, message = expected
    project.git("checkout", "--quiet", head)
    found = ci.action(**{"program": PROGRAM, **inputs})
    assert found.status == status, found.log
    assert message in found.log
    assert found.outputs["answer"] == ("error" if status else "same")


def test_it_runs_in_the_root_of_the_repository(project: Repository, ci: Ci) -> None:
    (project.path / "below").mkdir()
    found = Ci(project.path / "below", ci.place, ci.runtime).action(program=PROGRAM)
    assert found.status == 2, found.log
    assert f"not the root of the repository: run it in {project.path}" in found.log


def test_a_program_that_does_not_start_is_no_pass(project: Repository, ci: Ci) -> None:
    project.git("checkout", "--quiet", "equal")
    found = ci.action(program=f"{PROGRAM} --nosuch", base="main", undecided="pass")
    assert (found.status, found.outputs["answer"]) == (4, "error"), found.log
    assert "does not start" in found.summary
    assert ET.parse(ci.checkout / "linerate-duel.xml").find("testsuite/testcase/error") is not None


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.second_tier)]
)
def test_a_job_that_is_cancelled_leaves_nothing(
    project: Repository, ci: Ci, number: signal.Signals
) -> None:
    project.git("checkout", "--quiet", "equal")
    variables = {
        "DUEL_PROGRAM": PROGRAM, "DUEL_BASE": "main", "LINERATE": str(ci.place / "linerate"),
        "DUEL_OPTIONS": "--margin 0.01% --within 5m --starts 2 --hugepages no",
    }  # fmt: skip
    with ci.start(f'exec "{ACTION}/check"', variables) as running:
        wait_for("programs", lambda: list(ci.runtime.glob("*/dpdk/*")) or running.poll(), 60)
        running.send_signal(number)
        log, _ = running.communicate(timeout=60)
    assert running.returncode == 128 + number, log
    assert ci.worktrees() == 1
    assert list((ci.place / "temp").iterdir()) == []
    assert not (ci.checkout / "linerate-duel.xml").exists()


@pytest.mark.second_tier
def test_a_merge_request_of_gitlab(project: Repository, ci: Ci, tmp_path: Path) -> None:
    """Its runner runs before_script and script in one shell."""
    job = yaml.safe_load((ACTION / "gitlab-ci.yml").read_text())["duel"]
    ours = Repository(tmp_path / "ours")
    shutil.copytree(ACTION, ours.path / "actions" / "duel")
    ours.git("init", "--quiet", "--initial-branch=main")
    ours.git("add", "--all")
    ours.git("commit", "--quiet", "--message", "ours")
    base = project.git("rev-parse", "main")
    project.git("checkout", "--quiet", "slower")
    ours_at = project.git("rev-parse", "HEAD")
    assert job["variables"]["DUEL_BASE"] == "$CI_MERGE_REQUEST_DIFF_BASE_SHA"
    variables = {
        **job["variables"],
        "LINERATE_REPOSITORY": f"file://{ours.path}",
        "DUEL_PROGRAM": PROGRAM,
        "DUEL_OPTIONS": OPTIONS,
        "DUEL_BASE": base,
        "LINERATE": str(ci.place / "linerate"),
    }
    with ci.start("\n".join([*job["before_script"], *job["script"]]), variables) as running:
        log, _ = running.communicate(timeout=120)
    assert running.returncode == 1, log
    artifacts: dict[str, Any] = job["artifacts"]
    report = ET.parse(ci.checkout / artifacts["reports"]["junit"])
    assert report.find("testsuite/testcase/failure") is not None
    (shown,) = artifacts["paths"]
    slower = f"B (fw of {ours_at[:12]}) is slower than A (fw of the base {base[:12]})"
    assert slower in (ci.checkout / shown).read_text()


# -- git bisect ------------------------------------------------------------------------------------


@pytest.mark.second_tier
def test_git_finds_a_slow_commit_beside_a_compiler(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 commits; the one in the middle, which git tries first, does not build."""
    step = bisects.step
    monkeypatch.setattr(bisects, "step", lambda baseline: step(baseline, *OPTIONS.split()))
    for name, value in Ci(tmp_path, tmp_path, runtime).environment.items():
        monkeypatch.setenv(name, value)
    made = bisects.bisect(tmp_path, bisects.Plan(0, 21, 15), SLOW, 0.5)
    assert (made.found, made.wrong) == (21, 0), made
