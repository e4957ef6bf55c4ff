# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of real programs under callgrind: two builds that differ by a known number."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import by_schema
import pytest
from conftest import wait_for
from test_e2e import need, runtime
from test_e2e_duel import l2fwd, no_process_is_left

from linerate.host.exit_status import ExitStatus
from linerate.host.places import project_root

pytestmark = pytest.mark.e2e

# Fixtures of the tests of other runs.
assert runtime
assert no_process_is_left

LINE = "{eal} -- -p {portmask} --burst-forwarding"
FEW = ("--packets", "100000")
# A function that is called for each packet and executes eleven instructions.
EXTRA = """
static __attribute__((noinline)) void extra_work(void)
{
	__asm__ volatile("nop\\n nop\\n nop\\n nop\\n nop\\n nop\\n nop\\n nop\\n nop\\n nop");
}
"""
CALLED = ("			write_addresses(packets[i], front, back);\n	offer(lane, packets, n);",
          "		{ write_addresses(packets[i], front, back); extra_work(); }\n"
          "	offer(lane, packets, n);")  # fmt: skip
AVX512 = """
static inline void extra_work(void)
{
	__asm__ volatile("vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0" ::: "xmm0");
}
"""


@pytest.fixture(autouse=True)
def valgrind() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: make bench-packages (Debian: valgrind)")


def built(folder: Path, name: str, function: str | None = None) -> Path:
    """Build the plain forwarder, as it is or with another function in its work for each packet."""
    work = folder / f"{name}-source"
    shutil.copytree(project_root() / "bench" / "plain", work)
    source = work / "plain.c"
    text = source.read_text()
    if function:
        before = "/* Offers packets once"
        assert before in text
        assert CALLED[0] in text
        text = text.replace(before, f"{function}\n{before}").replace(*CALLED)
        source.write_text(text)
    done = subprocess.run(
        ["make", "-C", str(work), "OUT=out", "out/plain"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return (work / "out" / "plain").rename(folder / name)


def linerate(
    runtime: Path, folder: Path, command: str, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linerate", command, *words],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
    )  # fmt: skip


def found_in(done: subprocess.CompletedProcess[str], schema: str) -> dict[str, Any]:
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    by_schema.check(found, schema)
    return found


def test_a_known_difference_is_found_and_its_function_named(runtime: Path, tmp_path: Path) -> None:
    built(tmp_path, "fw-old")
    built(tmp_path, "fw-new", EXTRA)
    words = (f"./fw-old {LINE}", f"./fw-new {LINE}", *FEW)
    done = linerate(runtime, tmp_path, "instructions", *words, "--max", "+1%", "--json")
    assert done.returncode == ExitStatus.SLOWER, done.stderr
    found = found_in(done, "instructions-1.json")
    assert found["answer"] == "more"
    explained = found["explanation"]
    assert explained["packets"] >= 100_000
    assert explained["tolerance"] < 0.01
    new = {each["name"]: each for each in explained["functions"]}["extra_work"]
    assert new["b"] == pytest.approx(11, abs=0.05)
    assert "a" not in new
    # The call itself, and its effect on the loop around it.
    difference = explained["b"]["instructions"] - explained["a"]["instructions"]
    assert 11 < difference < 20
    assert explained["b"]["program"] - explained["a"]["program"] == pytest.approx(
        difference, abs=0.2
    )
    assert explained["a"]["driver"] > 50
    assert explained["a"]["conditional_branches"] > 5


@pytest.mark.second_tier
def test_a_stripped_program_is_as_many_as_itself(runtime: Path, tmp_path: Path) -> None:
    """Its functions are named by address."""
    program = built(tmp_path, "fw")
    subprocess.run(["strip", str(program)], check=True)
    words = (f"./fw {LINE}", f"./fw {LINE}", *FEW)
    done = linerate(runtime, tmp_path, "instructions", *words, "--max", "+1%")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "+1 % is not exceeded." in done.stdout
    assert "A (fw) has no symbols" in done.stdout
    assert "no function changed" in done.stdout


@pytest.mark.second_tier
def test_what_follows_the_clock_is_named(runtime: Path, tmp_path: Path) -> None:
    """DPDK's l2fwd drains every 100 us. Here a script starts it, and it is stripped."""
    subprocess.run(["strip", "-o", str(tmp_path / "l2fwd"), l2fwd()], check=True)
    script = tmp_path / "fw"
    script.write_text(f'#!/bin/sh\n"{tmp_path}/l2fwd" "$@"\n')
    script.chmod(0o755)
    line = "./fw {eal} -- -p {portmask} -q 2 -T 0"
    done = linerate(runtime, tmp_path, "instructions", line, "--json")
    assert done.returncode == ExitStatus.DONE, done.stderr
    explained = found_in(done, "instructions-1.json")["explanation"]
    assert explained["clock"], explained
    for each in explained["clock"]:
        # A run that takes longer per packet drains more often.
        assert each["slow"] > each["quick"]
    assert "A (fw) follows the clock" in explained["notes"][0]
    names = [each["name"] for each in explained["functions"] if each["object"] == "l2fwd"]
    assert names
    assert all(name.startswith("0x") for name in names)


@pytest.mark.second_tier
@pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX-512 is of x86_64")
def test_a_program_with_avx_512_is_named(runtime: Path, tmp_path: Path) -> None:
    built(tmp_path, "fw", AVX512)
    done = linerate(runtime, tmp_path, "instructions", f"./fw {LINE}", *FEW)
    assert done.returncode == ExitStatus.CANNOT_RUN
    assert done.stderr == (
        "linerate: A (fw): it executes instructions that valgrind does not know (AVX-512)\n"
        "  build it without: -mno-avx512f after -march=native, or -march=x86-64-v3\n"
    )


@pytest.mark.second_tier
def test_a_duel_is_explained(runtime: Path, tmp_path: Path) -> None:
    built(tmp_path, "fw-old")
    built(tmp_path, "fw-new", EXTRA)
    words = (f"./fw-old {LINE}", f"./fw-new {LINE}", "--within", "1s", "--starts", "2")
    done = linerate(
        runtime, tmp_path, "duel", *words, "--hugepages", "no", "--explain", "--json"
    )  # fmt: skip
    found = found_in(done, "duel-1.json")
    expected = {"slower": 1, "faster": 0, "equal": 0, "undecided": 3}
    assert done.returncode == expected[found["answer"]], done.stderr
    assert "extra_work" in {each["name"] for each in found["explanation"]["functions"]}


def test_it_leaves_nothing_when_it_is_stopped(runtime: Path) -> None:
    need("l2fwd")
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "instructions", "rust-l2fwd", "--packets", "100000000"],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        files = "*/callgrind-*/out.*.1"
        wait_for("its counts", lambda: list(runtime.glob(files)) or lab.poll(), 120)
        lab.send_signal(signal.SIGINT)
        _, errors = lab.communicate(timeout=60)
    assert lab.returncode == 128 + signal.SIGINT, errors
    # Fixtures check that no file and no process is left.
