# SPDX-License-Identifier: BSD-3-Clause
"""What run-fuzzers makes of findings: a machine full of other work is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1]
# It finds an input that takes long by the clock; run with a file, it does what the file says.
TARGET = """#!/usr/bin/env bash
if [[ $* == *-max_total_time=* ]]; then
    echo 'stat::number_of_executed_units: 7'
    printf '%s' '{content}' >target/fuzz/artifacts/parser/{name}
    exit 70
fi
for file; do :; done
! grep -q endless "$file" || while :; do :; done
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one target, which needs no compiler."""
    root = tmp_path / "tree"
    (root / "scripts").mkdir(parents=True)
    for name in ("run-fuzzers", "lib.sh"):
        shutil.copy(SCRIPTS / name, root / "scripts")
    # A second of a CPU is as good as five.
    script = root / "scripts/run-fuzzers"
    script.write_text(script.read_text().replace("\nslow=5\n", "\nslow=1\n"))
    shutil.copy(SCRIPTS.parent / "Cargo.toml", root)
    cargo = root / "scripts/cargo"
    cargo.write_text("#!/bin/sh\n")
    cargo.chmod(0o755)
    for folder in ("fuzz/libfuzzer/src/bin", "fuzz/corpus/parser"):
        (root / folder).mkdir(parents=True)
    (root / "fuzz/libfuzzer/src/bin/parser.rs").write_text("")
    return root


def run(tree: Path, name: str, content: str) -> subprocess.CompletedProcess[str]:
    told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split()[1] for line in told.splitlines() if line.startswith("host:"))
    target = tree / f"target/fuzz/{host}/release/parser"
    target.parent.mkdir(parents=True)
    target.write_text(TARGET.format(name=name, content=content))
    target.chmod(0o755)
    return subprocess.run(
        [tree / "scripts/run-fuzzers", "1"], capture_output=True, text=True, check=False
    )


def test_an_input_that_waited_for_a_cpu_is_no_finding(tree: Path) -> None:
    done = run(tree, "timeout-1", "quick")
    assert (done.returncode, done.stderr) == (0, "")
    assert "inputs that took 1 s by the clock, but less of a CPU: 1\n" in done.stdout
    assert not (tree / "target/fuzz/artifacts/parser/timeout-1").exists()


def test_an_input_that_takes_long_is_a_finding(tree: Path) -> None:
    done = run(tree, "timeout-1", "endless")
    assert done.returncode == 1
    assert "found something: parser" in done.stderr
    assert (tree / "target/fuzz/artifacts/parser/timeout-1").exists()


def test_another_finding_stays_one_though_it_is_quick(tree: Path) -> None:
    done = run(tree, "crash-1", "quick")
    assert done.returncode == 1
    assert (tree / "target/fuzz/artifacts/parser/crash-1").exists()
