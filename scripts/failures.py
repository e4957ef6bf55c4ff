# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: writes the node id of each failure into the file that LINERATE_FAILURES names.

run-tests loads it (`-p failures`), and runs the failed tests again. A test that fails and whose
teardown fails too is in the file twice, as it is in pytest's sum.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Failures:
    """Writes failures into a file as they are reported."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.path.open("a") as file:
                file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("LINERATE_FAILURES")
    # A worker of pytest-xdist reports to the process that started it.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(path)))
