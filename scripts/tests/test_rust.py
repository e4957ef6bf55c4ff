# SPDX-License-Identifier: BSD-3-Clause
"""scripts/cargo runs a cargo that is new enough, and says so when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from stub_machine import Machine


def path_of(machine: Machine, *more: Path) -> str:
    return ":".join(str(directory) for directory in (*more, machine.bin))


def test_an_old_cargo_does_not_hide_a_good_one_behind_it(machine: Machine, tmp_path: Path) -> None:
    machine.rust("1.63.0", directory=tmp_path / "old")
    machine.rust("1.85.0", directory=tmp_path / "good")
    result = machine.run(
        "scripts/cargo", "--version", PATH=path_of(machine, tmp_path / "old", tmp_path / "good")
    )
    assert result.stdout == "cargo 1.85.0 (stub)\n"


def test_rustc_has_to_be_new_enough_too(machine: Machine, tmp_path: Path) -> None:
    machine.rust("1.85.0", directory=tmp_path / "mixed")
    machine.stub("rustc", 'echo "rustc 1.63.0"', directory=tmp_path / "mixed")
    machine.rust("1.90.0", directory=tmp_path / "good")
    result = machine.run(
        "scripts/cargo", "--version", PATH=path_of(machine, tmp_path / "mixed", tmp_path / "good")
    )
    assert result.stdout == "cargo 1.90.0 (stub)\n"


@pytest.mark.parametrize("version", ["1.85.0-nightly", "1.85.1+dfsg1-1", "1.100.0", "2.0"])
def test_versions_are_numbers(machine: Machine, version: str) -> None:
    machine.rust(version)
    assert machine.run("scripts/cargo", "--version").returncode == 0


def test_programs_land_where_the_lab_looks(machine: Machine) -> None:
    machine.rust("1.85.0")
    machine.stub(
        "cargo", 'echo "cargo 1.85.0"; echo "$CARGO_TARGET_DIR:${CARGO_BUILD_TARGET-none}"'
    )
    result = machine.run(
        "scripts/cargo", "build", CARGO_TARGET_DIR="/elsewhere", CARGO_BUILD_TARGET="x"
    )
    assert result.stdout.splitlines()[-1] == f"{machine.checkout}/target:none"
