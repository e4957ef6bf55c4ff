# SPDX-License-Identifier: BSD-3-Clause
"""run-tests adds up what both runners say, fails when anything failed, and names the stages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stub_machine import Machine

RUST = 'echo "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"'
PYTHON = """
case "$*" in
    *"not e2e"*) echo "=== 4 passed, 2 deselected in 0.10s ===" ;;
    *"-m e2e"*) echo "=== 2 passed, 4 deselected in 0.10s ===" ;;
    *) echo "=== 10 passed, 1 skipped in 0.10s ===" ;;
esac
"""


@pytest.fixture
def checkout(machine: Machine) -> Machine:
    machine.link("awk", "grep", "mkdir", "nice", "sleep", "tee")
    machine.rust("1.99.0")
    runners(machine)
    for suite in ("lab/tests", "crates/one/tests", "tests"):
        (machine.checkout / suite).mkdir(parents=True)
        (machine.checkout / suite / "test_it.py").touch()
    (machine.checkout / "crates/two/tests").mkdir(parents=True)
    return machine


def runners(machine: Machine, *, rust: str = RUST, python: str = PYTHON) -> None:
    """What cargo says when it runs tests, and what pytest says."""
    version = '[[ $1 != --version ]] || { echo "cargo 1.99.0"; exit; }'
    machine.stub("cargo", f'{version}\n[[ "$*" == *--no-run ]] || {rust}')
    machine.stub("python", python, directory=machine.checkout / ".venv" / "bin")


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def last_line(output: str) -> str:
    return output.splitlines()[-1]


SKIPPED = f"""{{
    {RUST}
    echo "skipped: not root, who alone may make interfaces" >&2
    echo "test is_like_c ... skipped: no hugepages"
}}"""


def test_skips_of_rust_tests_are_counted(checkout: Machine) -> None:
    before = checkout.run("scripts/run-tests").stdout
    runners(checkout, rust=SKIPPED)
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 0, done.stderr
    counts = [int(re.findall(r"(\d+) skipped", text)[-1]) for text in (before, done.stdout)]
    assert counts[1] == counts[0] + 2


def test_ci_refuses_skips_of_rust_tests_that_nothing_allows(checkout: Machine) -> None:
    allowed = checkout.checkout / ".ci" / "allowed-skips"
    allowed.parent.mkdir(exist_ok=True)
    allowed.write_text("# what CI's machine lacks\n\nHugepages\nMiri\nrustc\n")
    runners(checkout, rust=SKIPPED)
    done = checkout.run("scripts/run-tests", LINERATE_CI="1")
    assert done.returncode == 1
    assert "skipped: not root" in done.stdout.partition("CI has to run these Rust tests")[2]
    assert last_line(done.stdout).endswith("1 failed, 9 skipped")


def test_the_sum_is_of_every_suite_once(checkout: Machine) -> None:
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 0, done.stderr
    # Rust, the lab in two parts, scripts, its own measurements, the crate with Python tests, the
    # repository's; no Miri, and no rustdoc that writes what can be read.
    assert last_line(done.stdout) == f"{3 + 4 + 2 + 4 * 10} passed, 0 failed, {4 + 3} skipped"
    stages = re.findall(r"^ +\d+ s  (.*)$", done.stdout, re.MULTILINE)
    assert len(stages) == len(set(stages)) == 10
    assert {"Rust tests: run", "Python tests: crates/one/tests, beside the Rust tests"} < set(
        stages
    )
    runs = [call for call in checkout.calls("python") if "pytest" in call]
    assert len(runs) == 6
    assert all("-p strict_skips" in call for call in runs)


@pytest.mark.parametrize("suite", ["scripts/tests", "not e2e", "-m e2e", "crates/one/tests"])
def test_a_failure_anywhere_is_one(checkout: Machine, suite: str) -> None:
    failing = f'[[ "$*" != *"{suite}"* ]] || {{ echo "=== 1 failed in 0.1s ==="; exit 1; }}'
    runners(checkout, python=failing + PYTHON)
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 1
    assert ", 1 failed, " in last_line(done.stdout)
    # The others ran all the same.
    assert len(checkout.calls("python")) == 6


@pytest.mark.parametrize("where", ["rust", "python"])
def test_a_runner_that_dies_without_a_word_is_a_failure(checkout: Machine, where: str) -> None:
    runners(checkout, **{where: "exit 134"})
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 1
    assert ", 1 failed, " in last_line(done.stdout)


def failing(suite: str, *ids: str) -> str:
    """A part of pytest's stub: the first run of that suite fails in these tests."""
    lines = "".join(f"echo '{one}' >>$LINERATE_FAILURES\n" for one in ids)
    return f"""if [[ "$*" == *"{suite}"* && ! -e failed-once ]]; then
    touch failed-once
    {lines}echo "=== {len(ids)} failed, 1 passed in 0.10s ==="
    exit 1
fi
"""


def failing_rust(passes: str) -> str:
    """What cargo says whose test fails, and passes the second time if `passes` is true."""
    return f"""{{
    if [[ "$*" == *"--exact a::b"* ]] && {{ {passes}; }}; then
        echo "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out"
        exit 0
    fi
    echo "test a::b ... FAILED"
    echo "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
    exit 101
}}"""


AGAIN = "What failed runs again, alone:"


def test_what_fails_once_and_passes_alone_is_named_and_no_failure(checkout: Machine) -> None:
    checkout.link("touch")
    test = "crates/one/tests/test_it.py::test_it[with a - space]"
    runners(checkout, rust=failing_rust("true"), python=failing("crates/one/tests", test) + PYTHON)
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 0, done.stderr
    assert f"{AGAIN}\na::b\n{test}\n" in done.stdout
    assert ", 0 failed, " in last_line(done.stdout)
    assert last_line(done.stdout).endswith(", 2 passed only when they ran again")
    assert checkout.calls("python")[-1].endswith(f" {test}")


@pytest.mark.parametrize("again", ["false", "echo test result: ok. 0 passed; exit"])
def test_a_rust_test_that_fails_again_has_failed(checkout: Machine, again: str) -> None:
    runners(checkout, rust=failing_rust(again))
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 1
    assert AGAIN in done.stdout
    assert ", 1 failed, " in last_line(done.stdout)


def test_a_rust_program_that_ended_by_a_signal_has_no_second_try(checkout: Machine) -> None:
    died = 'echo "  process didn\'t exit successfully: (signal: 11, SIGSEGV)"'
    runners(checkout, rust=f"{{ {died}; {failing_rust('true')}; }}")
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 1
    assert AGAIN not in done.stdout


@pytest.mark.parametrize(("number", "again"), [(5, True), (6, False)])
def test_many_failures_have_no_second_try(checkout: Machine, number: int, again: bool) -> None:
    checkout.link("touch")
    tests = [f"tests/test_it.py::test_{n}" for n in range(number)]
    runners(checkout, python=failing("-m e2e", *tests) + PYTHON)
    done = checkout.run("scripts/run-tests")
    assert (done.returncode == 0) == again
    assert (AGAIN in done.stdout) == again
    assert f", {0 if again else number} failed, " in last_line(done.stdout)


LEFT_OUT = """case "$*" in
    *--first-tier*) echo "2 tests of the second tier not run: make test-all" ;;
esac"""
RUST_LEFT_OUT = """if [[ "$*" == *"--skip second_tier::"* ]]; then
    echo "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out"
else
    echo "test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
fi"""


def test_tests_of_the_second_tier_are_counted_or_run(checkout: Machine) -> None:
    runners(checkout, rust=RUST_LEFT_OUT, python=LEFT_OUT + PYTHON)
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 0, done.stderr
    left_out = 7 + 6 * 2
    told = f"; {left_out} tests of the second tier not run: make test-all"
    assert last_line(done.stdout).endswith(told)
    done = checkout.run("scripts/run-tests", "--all")
    assert last_line(done.stdout).startswith(f"{10 + 4 + 2 + 4 * 10} passed, 0 failed")
    assert "second tier" not in done.stdout


def test_no_test_at_all_is_a_failure(checkout: Machine) -> None:
    runners(checkout, rust="true", python="true")
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 1
    assert last_line(done.stdout) == "0 passed, 1 failed, 2 skipped"


def test_nothing_runs_on_when_it_is_ended(checkout: Machine, tmp_path: Path) -> None:
    """Neither the tests beside the Rust ones nor its directory."""
    checkout.link("mv")
    pid = tmp_path / "pid"
    runners(checkout, rust="sleep 60", python=f"echo $$ >{pid}.new; mv {pid}.new {pid}; sleep 60")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [checkout.checkout / "scripts" / "run-tests"],
        env={"PATH": str(checkout.bin), "HOME": "/nonexistent", "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as running:
        until(pid.exists)
        # Ctrl-C: it goes to the group in the foreground.
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(30) != 0
    until(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    assert list(scratch.iterdir()) == []


def test_nothing_is_measured_while_the_lab_s_tests_compute(checkout: Machine) -> None:
    """The Rust tests are over at once, the lab's are not."""
    order = checkout.checkout / "order"
    python = f"""case "$*" in
        *"not e2e"*) sleep 1; echo computed >>{order} ;;
        *"-m e2e"*) echo measured >>{order} ;;
    esac
    """
    runners(checkout, python=python + PYTHON)
    done = checkout.run("scripts/run-tests")
    assert done.returncode == 0, done.stderr
    assert order.read_text().split() == ["computed", "measured"]
