# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin: `--first-tier` leaves out the tests marked `second_tier`, and says how many.

run-tests loads it (`-p tiers`). Without the option every test runs, as by hand.
"""

from __future__ import annotations

import pytest

MARK = "second_tier"
LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-tier", action="store_true", help=f"run no test marked {MARK}")


# After `-m` has chosen: what that leaves out belongs to another run.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--first-tier"):
        return
    left_out = [item for item in items if item.get_closest_marker(MARK)]
    items[:] = [item for item in items if not item.get_closest_marker(MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = len(left_out)


# With pytest-xdist the workers collect: each the same tests, and none tells the other process.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[MARK] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    config = getattr(node, "config", None)
    if config is not None:
        config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get(MARK, 0)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if number := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{number} tests of the second tier not run: make test-all")
