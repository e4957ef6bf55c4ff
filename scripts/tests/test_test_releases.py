# SPDX-License-Identifier: BSD-3-Clause
"""test-releases says what it lacks, and leaves nothing behind, whatever becomes of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from stub_machine import Machine

AS_ROOT = "echo 0"
BEYOND_SCRIPTS = "cat flock grep mkdir mktemp mv rm sha256sum sleep tail tar".split()  # noqa: SIM905


@pytest.fixture
def root(machine: Machine) -> Machine:
    """A machine whose user is root, with all that the script calls."""
    machine.link(*(tool for tool in BEYOND_SCRIPTS if not (machine.bin / tool).exists()))
    machine.stub("id", AS_ROOT)
    for name in ("mmdebstrap", "unshare", "setpriv", "ip", "git", "apt-config"):
        machine.stub(name)
    return machine


def left(machine: Machine) -> list[str]:
    """The directories of runs."""
    return [path.name for path in (machine.checkout / "build/releases").glob("run.*")]


def test_a_user_is_told_that_only_root_can(root: Machine) -> None:
    root.stub("id", "echo 1000")
    result = root.run("scripts/test-releases")
    assert result.returncode == 1
    assert "make test-releases as root" in result.stderr
    assert not (root.checkout / "build").exists()


def test_what_is_missing_is_named(root: Machine) -> None:
    (root.bin / "mmdebstrap").unlink()
    result = root.run("scripts/test-releases")
    assert result.returncode == 1
    assert "mmdebstrap is missing" in result.stderr
    assert "apt-get install mmdebstrap" in result.stderr


def test_each_release_has_a_line_and_none_a_directory(root: Machine) -> None:
    killed = root.checkout / "build/releases/run.killed/debian/etc"
    killed.mkdir(parents=True)
    root.stub("setpriv", "echo E: no such release >&2; exit 1")
    result = root.run("scripts/test-releases", RELEASES="bullet buster")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[-2:] == [
        f"{name} could not be tested, see build/releases/{name}.log"
        for name in ("bullet", "buster")
    ]
    assert "E: no such release" in lines
    assert left(root) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_and_removes_its_directory(
    root: Machine, number: signal.Signals
) -> None:
    begun = root.bin.parent / "begun"
    root.stub("setpriv", f"echo $$ >{begun}; exec sleep 600")
    script = root.checkout / "scripts/test-releases"
    with subprocess.Popen(
        [script], cwd=root.checkout, env={"PATH": str(root.bin)}, stdout=subprocess.DEVNULL
    ) as run:
        deadline = time.monotonic() + 30
        while not (begun.exists() and begun.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert len(left(root)) == 1
        run.send_signal(number)
        assert run.wait(timeout=30) == 128 + number
    assert left(root) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)
