# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: in CI a skip fails, unless .ci/allowed-skips has a pattern for its reason.

run-tests loads it (`-p strict_skips`), `LINERATE_CI=1` turns it on (.ci/run sets that). Elsewhere
skips stay skips; pytest prints their reasons.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

ALLOWED = Path(__file__).resolve().parents[1] / ".ci" / "allowed-skips"


def allowed_reasons(text: str) -> list[re.Pattern[str]]:
    """The patterns of an allowed-skips file; blank lines and comments are left out."""
    lines = (line.strip() for line in text.splitlines())
    return [re.compile(line, re.IGNORECASE) for line in lines if line and not line.startswith("#")]


def fail_if_not_allowed(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a failure of a skip that CI does not allow. An expected failure (xfail) is no skip."""
    if not report.skipped or hasattr(report, "wasxfail") or os.environ.get("LINERATE_CI") != "1":
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(pattern.search(reason) for pattern in allowed_reasons(ALLOWED.read_text())):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nCI has to run this test, or .ci/allowed-skips to say why not."


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_not_allowed(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_not_allowed(report)
    return report
