# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzz targets, by scripts/run-fuzzers, and counts their executions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from linerate.host.places import project_root
from linerate_bench.soak.bench import Bench
from linerate_bench.soak.plan import Row
from linerate_bench.soak.records import Counted

# The sum over all targets.
GOAL = 10**8
_UNITS = re.compile(r"^stat::number_of_executed_units:\s*(\d+)$", re.MULTILINE)


def targets(root: Path) -> list[str]:
    return sorted(path.stem for path in (root / "fuzz/libfuzzer/src/bin").glob("*.rs"))


def judged(output: str, status: int) -> Counted:
    """Judge the script's output and its exit status."""
    number = sum(map(int, _UNITS.findall(output)))
    if not status:
        return Counted(number, () if number else ("libFuzzer did not say how much it executed",))
    words = [
        line
        for line in output.splitlines()
        if re.search(r"SUMMARY|ERROR:|panicked|Test unit", line)
    ]
    return Counted(number, (" / ".join(words[-3:] or output.splitlines()[-3:]),))


def counted(target: str, seconds: float) -> Counted:
    command = [str(project_root() / "scripts/run-fuzzers"), str(max(round(seconds), 1)), target]
    done = subprocess.run(
        command, cwd=project_root(), text=True, check=False, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return judged(done.stdout, done.returncode)


def rows() -> list[Row]:
    """Return a row for each target, because some are a hundred times as fast as others."""
    found = targets(project_root())

    def row(target: str) -> Row:
        def count(bench: Bench, seconds: float, wanted: int) -> Counted:
            return counted(target, seconds)

        return Row("fuzz", target, "executions", -(-GOAL // len(found)), count)

    return [row(target) for target in found]
