# SPDX-License-Identifier: BSD-3-Clause
"""Duels of XDP programs, which run in threads of the kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import xdp_program
from conftest import need_veth
from test_e2e import need, runtime
from test_e2e_duel import duel, told

pytestmark = pytest.mark.e2e

# A fixture of the tests of real runs.
assert runtime

# About 50 us; without it a packet costs about 1 us.
MANY = 50_000


def need_xdp() -> None:
    """Skip if the kernel takes no such program."""
    need("generator")
    need_veth()
    try:
        xdp_program.load(xdp_program.new_map(), 0, MANY)
    except (KeyError, OSError) as error:
        pytest.skip(f"no XDP program can be loaded: {error}")


def line(multiplications: int) -> str:
    return f"{sys.executable} {xdp_program.__file__} {multiplications} {{rx}} {{tx}}"


def test_what_an_xdp_program_costs_is_seen_though_its_generator_is_slower(runtime: Path) -> None:
    """The generator is slower than the cheap program, which takes all that it is sent and is
    compared all the same. The other one is so expensive that nothing else can make the difference.
    """
    need_xdp()
    found = told(duel(runtime, line(0), line(MANY), "--link", "veth", "--json"))
    assert (found["method"], found["per"]) == ("turns", "cpu-and-napi")
    assert "fault" not in found, found["fault"]
    (one,) = found["rounds"]
    received: dict[str, int] = {"A": 0, "B": 0}
    for letter, carried in zip(one["order"], one["carried"], strict=True):
        received[letter] += carried["received"]
        assert carried["sent"] > 0.5 * carried["received"] > 0
    # In the same time, because its threads had no time for more.
    assert received["B"] < received["A"] / 2
    assert found["ratio"] < 0.5
    assert any("in which XDP programs run" in note for note in found["notes"])


def test_a_relative_file_is_pointed_out(runtime: Path, tmp_path: Path) -> None:
    need("generator")
    need_veth()
    (tmp_path / "fw.o").touch()
    # Like a loader that does not find its program.
    line = "cat fw.o {rx} {tx}"
    done = duel(runtime, line, line, "--link", "veth", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert "does not start" in said, said
    assert f"directory: write {tmp_path}/fw.o" in said
