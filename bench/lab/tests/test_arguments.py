# SPDX-License-Identifier: BSD-3-Clause
"""Programs that take numbers print their usage if they get something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from linerate_bench.arguments import number

PACKAGES = Path(__file__).parents[1]
PROGRAMS = [
    ("acl", ["twenty"]),
    ("acl", ["20", "0"]),
    ("flow_costs", ["0"]),
    ("generator_speed", ["-1"]),
    ("lookups", ["0"]),
    ("lookups", ["1"]),
    ("nat", ["1"]),
    ("nat", ["1.5"]),
    ("nat", ["nan"]),
    ("nat", ["9" * 400]),
    ("probe_cost", ["l2fwd"]),
]


@pytest.mark.parametrize(("program", "arguments"), PROGRAMS)
def test_what_is_no_number_is_answered_by_the_usage(program: str, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"linerate_bench.{program}", *arguments],
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    begin = f"usage: python -m linerate_bench.{program} ["
    assert done.stderr.startswith(begin), done.stderr
    assert done.stderr.endswith(f"not {arguments[-1]!r}\n"), done.stderr


def test_numbers_are_of_the_default_s_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "7", "2.5"])
    assert number("program [A [B [C]]]", 1) == 7
    assert number("program [A [B [C]]]", 1.0, 2) == 2.5
    assert number("program [A [B [C]]]", 3, 3) == 3


@pytest.mark.parametrize("given", ["0", "-1", "1.5", "2", "seven", "", "nan"])
def test_what_is_no_number_or_too_small_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", given])
    with pytest.raises(SystemExit, match="2"):
        number("program [A]", 5, least=3)
    assert capsys.readouterr().err.startswith("usage: python -m linerate_bench.program")
