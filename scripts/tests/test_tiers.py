# SPDX-License-Identifier: BSD-3-Clause
"""Without the second tier, a suite says how many of its tests did not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
import pytest
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.second_tier)])
def test_of_both(n): pass
@pytest.mark.second_tier
def test_slow(): pass
@pytest.mark.e2e
@pytest.mark.second_tier
def test_of_another_run(): pass
"""
LEFT_OUT = "2 tests of the second tier not run: make test-all\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = e2e\n    second_tier\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "tiers", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-m", "not e2e", *options],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_every_test_runs_without_the_option(suite: Path) -> None:
    told = run(suite)
    assert "3 passed" in told
    assert "second tier" not in told


@pytest.mark.parametrize("processes", [[], ["-n", "2"]])
def test_the_first_tier_runs_alone(suite: Path, processes: list[str]) -> None:
    told = run(suite, "--first-tier", *processes)
    assert "1 passed" in told
    assert LEFT_OUT in told
