# SPDX-License-Identifier: BSD-3-Clause
"""In CI a skip without an allowed reason is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
import pytest
def test_needs_hugepages(): pytest.skip("no hugepages are configured")
@pytest.mark.skip(reason="slow on Tuesdays")
def test_marked(): pass
def test_runs(): pass
@pytest.mark.xfail(reason="known")
def test_known(): raise AssertionError
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, strict: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "strict_skips", "-p", "no:cacheprovider"],
        cwd=suite,
        env={**os.environ, "LINERATE_CI": strict, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_by_hand_skips_are_skips(suite: Path) -> None:
    result = run(suite, "0")
    assert result.returncode == 0
    assert "1 passed, 2 skipped, 1 xfailed" in result.stdout
    assert "slow on Tuesdays" in result.stdout


def test_in_ci_only_allowed_reasons_are(suite: Path) -> None:
    result = run(suite, "1")
    assert result.returncode == 1
    assert "1 passed, 1 skipped, 1 xfailed, 1 error" in result.stdout
    assert "slow on Tuesdays" in result.stdout


def test_a_module_skipped_as_a_whole_counts(suite: Path) -> None:
    (suite / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    result = run(suite, "1")
    assert result.returncode != 0
    assert "no_such_module" in result.stdout
