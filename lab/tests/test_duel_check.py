# SPDX-License-Identifier: BSD-3-Clause
"""Which commit actions/duel/check compares with. `test_e2e_duel_ci` tests the duel itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "actions" / "duel" / "check"


class Repository:
    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("first")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *who, *words]
        return subprocess.check_output(command, cwd=self.place, text=True, timeout=20).strip()

    def commit(self, text: str) -> None:
        (self.place / text).write_text(text)
        self.git("add", text)
        self.git("commit", "--quiet", "--message", text)

    def base(self) -> str:
        """Return the commit that the check compares with."""
        linerate = self.place.parent / "linerate"
        linerate.write_text("#!/bin/sh\n")
        linerate.chmod(0o755)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GITHUB_", "DUEL_", "GIT_"))
        }
        environment |= {
            "DUEL_PROGRAM": "./fw {eal}", "DUEL_BUILD": "true", "LINERATE": str(linerate),
            "TMPDIR": str(self.place.parent),
        }  # fmt: skip
        done = subprocess.run(
            [CHECK], cwd=self.place, env=environment, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = [each for each in done.stdout.splitlines() if "the base is" in each]
        assert len(lines) == 1, done.stdout
        return lines[0].rpartition(", ")[2]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_a_branch_is_compared_with_where_it_began(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "mine")
    for text in ("slow", "readme"):
        repository.commit(text)
    assert repository.base() == "first"
    # Also if the other branch has new commits.
    repository.git("checkout", "--quiet", "main")
    repository.commit("other")
    repository.git("checkout", "--quiet", "mine")
    assert repository.base() == "first"


def test_a_merge_commit_is_compared_with_the_target_branch(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "mine")
    repository.commit("slow")
    repository.git("checkout", "--quiet", "main")
    repository.commit("other")
    repository.git("checkout", "--quiet", "--detach", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "mine")
    assert repository.base() == "other"


def test_the_main_branch_is_compared_with_its_last_commit(repository: Repository) -> None:
    repository.commit("second")
    repository.commit("third")
    assert repository.base() == "second"


def test_without_any_branch_it_is_the_last_commit(repository: Repository) -> None:
    repository.git("branch", "--move", "trunk")
    repository.commit("second")
    assert repository.base() == "first"
