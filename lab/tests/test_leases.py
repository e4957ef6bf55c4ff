# SPDX-License-Identifier: BSD-3-Clause
"""Leases of CPUs: no two labs have the same, whatever their users and however they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from conftest import wait_for
from simulated import Simulation, start

from linerate.cli import doctor
from linerate.host import locks
from linerate.host.cores import cpus, leases, switches
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import choice, described, holders, leased
from linerate.host.cores.lock_holders import Holder, _shown
from linerate.host.errors import BusyError, LabError, MachineError
from linerate.host.exit_status import ExitStatus
from linerate.runs import session
from linerate.runs.kept.publish import publish

ALLOWED = set(sorted(os.sched_getaffinity(0))[:2])
pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="this process may use one CPU only")

# A process that leases CPUs until its standard input ends or it is signalled; it has a child.
LAB = """
import subprocess, sys
from pathlib import Path
from linerate.host.cores import leases
leases.PLACES = (Path(sys.argv[1]),)
with leases.leased():
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    sys.stdin.read()
    child.kill()
"""
# The command, with another directory for its leases.
COMMAND = """
import sys
from pathlib import Path
from linerate.cli import main
from linerate.host.cores import leases
leases.PLACES = (Path(sys.argv.pop(1)),)
main()
"""


@pytest.fixture
def place(leases_are_the_test_s: Path) -> Path:
    return leases_are_the_test_s


@contextmanager
def other_lab(place: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another lab with leases; and the pid of its child."""
    with subprocess.Popen(
        [sys.executable, "-c", LAB, str(place)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        assert lab.stdout
        child = int(lab.stdout.readline())
        try:
            yield lab, child
        finally:
            lab.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """A machine with four cores; the CPUs that this process has restricted itself to, in turn."""
    restricted: list[set[int]] = [{0, 1, 2, 3}]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: restricted[-1])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: restricted.append(set(cpus)))
    monkeypatch.setattr(leases, "siblings", lambda cpu: {cpu})
    monkeypatch.setattr("linerate.host.cores.cpus.siblings", lambda cpu: {cpu})
    return restricted


# -- which CPUs --------------------------------------------------------------------------------


def test_other_cpus_are_taken(four_cpus: list[set[int]]) -> None:
    with leased():
        assert four_cpus[-1] == {0, 3}
        assert Cores.choose() == Cores(0, 3, shared_core=False)
        four_cpus.append({0, 1, 2, 3})
        with leased(say=pytest.fail):
            assert four_cpus[-1] == {1, 2}
            assert sorted(holders(range(4))) == [0, 1, 2, 3]
        assert sorted(holders(range(4))) == [0, 3]
    assert four_cpus[-1] == {0, 1, 2, 3}
    assert holders(range(4)) == {}


def test_tenants_have_a_cpu_of_their_own_if_there_is_one(four_cpus: list[set[int]]) -> None:
    with leased(3):
        assert four_cpus[-1] == {0, 1, 3}
        four_cpus.append({0, 1, 2, 3})
        with pytest.raises(MachineError, match="too few CPUs"), leased(patience_s=0):
            pass
    four_cpus.append({0, 3})
    with leased(3):
        assert four_cpus[-1] == {0, 3}


def test_a_core_is_leased_with_both_of_its_hyperthreads(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("leases", "cpus"):
        monkeypatch.setattr(
            f"linerate.host.cores.{module}.siblings", lambda cpu: {cpu & ~1, cpu | 1}
        )
    eight = set(range(8))
    assert choice(eight, eight, 2) == {0, 1, 6, 7}
    assert choice(eight, {2, 3, 4, 5}, 2) == {2, 3, 4, 5}
    # Half a core is not free, and one core is not enough if others are allowed.
    assert choice(eight, {1, 2, 3, 4, 6}, 2) is None
    assert choice(eight, {2, 3}, 2) is None
    assert choice({2, 3}, eight, 2) == {2, 3}
    assert choice({1, 3}, eight, 2) == {0, 1, 2, 3}


def test_a_single_cpu_is_leased_alone() -> None:
    assert choice({1}, {0, 1}, 2) == {1}
    assert choice({1}, {0}, 2) is None


# -- waiting -----------------------------------------------------------------------------------


def test_a_lab_waits_and_says_for_whom(place: Path) -> None:
    said: list[str] = []
    with other_lab(place) as (lab, _):

        def say(line: str) -> None:
            said.append(line)
            assert lab.stdin
            lab.stdin.close()

        began = time.monotonic()
        with leased(say=say):
            assert lab.wait(10) == 0
            # Woken by the other lab's end, not by the next poll.
            assert time.monotonic() - began < leases._LOOK_S / 2
            assert {holder.pid for holder in holders(ALLOWED).values()} == {os.getpid()}
    (line,) = said
    cpus = " and ".join(map(str, sorted(ALLOWED)))
    assert line.startswith(
        f"waiting for free CPUs, at most 24 h (Ctrl-C stops); CPUs {cpus}: pid {lab.pid} ("
    )
    assert "\n" not in line
    assert holders(ALLOWED) == {}


def test_the_wait_has_a_bound(place: Path) -> None:
    with other_lab(place) as (lab, _):
        before = os.sched_getaffinity(0)
        with (
            pytest.raises(MachineError, match=f"after 0.4 s; .*pid {lab.pid} .*user ") as raised,
            leased(say=lambda _: None, patience_s=0.4),
        ):
            pytest.fail("it leased what another lab has")
        assert "kill PID" in str(raised.value)
        assert os.sched_getaffinity(0) == before


def test_who_waits_says_so_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_LOOK_S", 0.1)
    monkeypatch.setattr(leases, "_REPEAT_S", 0.2)
    said: list[str] = []
    with (
        other_lab(place) as (lab, _),
        pytest.raises(MachineError),
        leased(say=said.append, patience_s=2),
    ):
        pytest.fail("it leased what another lab has")
    first, second, *_ = said
    assert first.startswith("waiting for free CPUs, at most 2 s (Ctrl-C stops); CPUs ")
    assert re.match(r"waiting for \S+ s for free CPUs, at most 2 s \(Ctrl-C stops\); CPU", second)
    assert all(f"pid {lab.pid} (" in line for line in said)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0.4 s"), (59.6, "60 s"), (600, "10 min"), (90, "90 s"), (86400, "24 h")],
)
def test_times_are_told_in_the_largest_whole_unit(seconds: float, words: str) -> None:
    assert leases._time(seconds) == words


def test_a_killed_lab_leases_nothing(place: Path) -> None:
    """Even if its children continue: they have no descriptor of the locks."""
    with other_lab(place) as (lab, child):
        assert {holder.pid for holder in holders(ALLOWED).values()} == {lab.pid}
        lab.kill()
        lab.wait(10)
        with leased(say=pytest.fail):
            assert Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(
    ("experiment", "number", "status"),
    [("overload", signal.SIGINT, 130), ("rfc2544", signal.SIGTERM, 143)],
)
def test_a_signal_ends_the_wait(
    tmp_path: Path, place: Path, experiment: str, number: signal.Signals, status: int
) -> None:
    work, runtime = tmp_path / "work", tmp_path / "runtime"
    work.mkdir()
    runtime.mkdir()
    command = [sys.executable, "-c", COMMAND, str(place), "run", experiment, "--out", "out"]
    files = sorted(place.iterdir())
    with (
        leased(),
        subprocess.Popen(
            command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        ) as lab,
    ):  # fmt: skip
        assert lab.stderr
        line = lab.stderr.readline()
        assert line.startswith("linerate: waiting for free CPUs"), line
        assert f"pid {os.getpid()} (" in line
        lab.send_signal(number)
        output, errors = lab.communicate(timeout=20)
    assert (lab.returncode, errors) == (status, "linerate: interrupted\n"), output
    assert list(work.iterdir()) == []
    assert list(runtime.iterdir()) == []
    assert len(list(place.iterdir())) >= len(files)
    assert holders(ALLOWED) == {}


def test_labs_that_begin_together_take_turns(place: Path, tmp_path: Path) -> None:
    """None of them gives up or deadlocks, and no two have a CPU at the same time."""
    script = """
import os, sys, time
from pathlib import Path
from linerate.host.cores import leases
leases.PLACES = (Path(sys.argv[1]),)
leases._AT_LEAST_S = leases._LOOK_S = 0.01
with leases.leased():
    inside = os.open(sys.argv[2], os.O_CREAT | os.O_EXCL)
    time.sleep(0.05)
    os.unlink(sys.argv[2])
"""
    command = [sys.executable, "-c", script, str(place), str(tmp_path / "inside")]
    labs = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(6)]
    for lab in labs:
        _, errors = lab.communicate(timeout=60)
        assert lab.returncode == 0, errors


# -- sessions ----------------------------------------------------------------------------------


def test_a_session_leases_until_its_report_is_written(
    tmp_path: Path, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[int]] = []

    def watched(*arguments: object) -> object:
        found.append(sorted(holders(ALLOWED)))
        return publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "publish", watched)
    start(tmp_path / "run")
    assert simulation.ran
    assert found == [sorted(ALLOWED)]
    assert holders(ALLOWED) == {}

    def broken(*_: object) -> object:
        raise LabError("broken")

    monkeypatch.setattr(session, "publish", broken)
    with pytest.raises(LabError, match="broken"):
        start(tmp_path / "other")
    assert holders(ALLOWED) == {}


def test_doctor_shows_leases(place: Path) -> None:
    def finding() -> doctor.Finding:
        (found,) = (each for each in doctor._cpus() if each.name == "leases")
        return found

    assert (finding().state, finding().detail) == ("ok", "no CPU is leased by a lab")
    with other_lab(place) as (lab, _):
        assert finding().state == "warn"
        assert f": pid {lab.pid} (python" in finding().detail
        assert finding().mend
    path = place / f"linerate-cpu-{min(ALLOWED)}"
    path.unlink()
    path.symlink_to("elsewhere")
    assert finding().state == "warn"
    assert f"{path}, of user " in finding().detail


# -- files of other users ------------------------------------------------------------------------


def test_files_are_empty_and_everybody_can_lock_them(place: Path) -> None:
    before = os.umask(0o077)
    try:
        with leased():
            pass
    finally:
        os.umask(before)
    found = list(place.iterdir())
    assert {path.name for path in found} == {f"linerate-cpu-{cpu}" for cpu in ALLOWED}
    for path in found:
        assert path.stat().st_size == 0
        assert path.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("target", ["precious", "missing"])
def test_a_planted_symbolic_link_is_not_followed(place: Path, tmp_path: Path, target: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    planted = place / f"linerate-cpu-{max(ALLOWED)}"
    planted.symlink_to(tmp_path / target)
    with pytest.raises(MachineError, match="is a symbolic link") as raised, leased():
        pytest.fail("it leased by a symbolic link")
    assert str(planted) in str(raised.value)
    assert f"sudo rm -r {planted}" in str(raised.value)
    assert precious.read_text() == "precious"
    assert not (tmp_path / "missing").exists()
    assert holders({min(ALLOWED)}) == {}


def test_a_link_that_is_planted_after_the_look_is_not_followed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / f"linerate-cpu-{max(ALLOWED)}").symlink_to(tmp_path / "missing")
    monkeypatch.setattr(leases, "_check", lambda path: None)
    with pytest.raises(MachineError, match="symbolic links"), leased():
        pytest.fail("it leased by a symbolic link")
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_named_and_waited_for_by_nobody(place: Path, make: object) -> None:
    assert callable(make)
    make(place / f"linerate-cpu-{max(ALLOWED)}")
    began = time.monotonic()
    with pytest.raises(MachineError, match="is not a regular file"), leased():
        pytest.fail("it leased by something else")
    assert time.monotonic() - began < 5


def test_the_content_of_a_file_is_of_no_interest(place: Path) -> None:
    path = place / f"linerate-cpu-{max(ALLOWED)}"
    path.write_text("pid 1\n")
    with leased():
        assert path.read_text() == "pid 1\n"


@pytest.mark.parametrize("how", ["--exclusive", "--shared"])
def test_another_user_s_lock_is_waited_for_and_named(place: Path, how: str) -> None:
    """Whichever user made the file, each user can lock it, and the holder is visible."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    path = place / f"linerate-cpu-{max(ALLOWED)}"
    for owner in (0, 65534):
        path.unlink(missing_ok=True)
        path.touch(0o444)
        os.chown(path, owner, owner)
        for parent in place.parents[:4]:
            parent.chmod(parent.stat().st_mode | 0o011)
        with subprocess.Popen(
            ["flock", how, path, "cat"], stdin=subprocess.PIPE, user=65534, group=65534
        ) as other:
            wait_for("the lock", lambda: holders(ALLOWED))
            said: list[str] = []

            def say(
                line: str, other: subprocess.Popen[bytes] = other, said: list[str] = said
            ) -> None:
                said.append(line)
                assert other.stdin
                other.stdin.close()

            with leased(say=say):
                pass
        # Long commands are truncated.
        assert f"pid {other.pid} (flock {how} /" in said[0]
        assert "user nobody" in said[0]


def test_a_file_that_cannot_be_opened_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = locks.hold

    def refused(path: Path, *more: int, shared: bool = False) -> int | None:
        if "-cpu-" in path.name:
            raise PermissionError(13, "Permission denied")
        return hold(path, *more, shared=shared)

    (place / f"linerate-cpu-{max(ALLOWED)}").touch(0o600)
    monkeypatch.setattr(locks, "hold", refused)
    with pytest.raises(MachineError, match=r"of user .*: Permission denied; it has to"), leased():
        pytest.fail("it leased without a lock")


def test_all_users_agree_on_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = [tmp_path / name for name in ("missing", "private", "shared", "further")]
    for path, mode in zip(places[1:], (0o755, 0o1777, 0o1777), strict=True):
        path.mkdir()
        path.chmod(mode)
    monkeypatch.setattr(leases, "PLACES", tuple(places))
    with leased():
        assert len(list(places[2].iterdir())) == len(ALLOWED)
    # Any user could remove others' files there.
    places[2].chmod(0o777)
    with leased():
        assert len(list(places[3].iterdir())) == len(ALLOWED)


# -- messages ------------------------------------------------------------------------------------


def test_words() -> None:
    one, other = Holder(7, "linerate run overload", "root"), Holder(None)
    assert described({0: one, 3: one, 5: other, 1: one}) == (
        "CPUs 0, 3 and 1: pid 7 (linerate run overload, user root); CPU 5: "
        "a process that is not visible here, for instance in another container"
    )


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["/usr/bin/python3", "/opt/bin/linerate", "run", "overload"], "linerate run overload"),
        (["/usr/bin/python3.11", "-m", "linerate_bench.acl"], "python3.11 -m linerate_bench.acl"),
        (["/bin/x", "\x1b[2J\n."], "x ?[2J?."),
        (["x", "y" * 200], "x " + "y" * 78 + "..."),
        (["", ""], ""),
    ],
)
def test_a_command_is_shown_as_its_user_knows_it(argv: list[str], shown: str) -> None:
    assert _shown(argv) == shown


# -- other programs on the forwarder's CPU -------------------------------------------------------


def test_a_program_that_keeps_the_cpu_stops_who_does_not_outweigh_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpus, "busy_share", lambda *_, **__: 0.98)
    monkeypatch.setattr(cpus, "pinned_to", lambda *_: ["cc1 (pid 7)"])
    with pytest.raises(BusyError, match=r"CPU 1 is taken: cc1 \(pid 7\) runs there") as found:
        cpus.await_free(1, 0.05)
    assert found.value.exit_code == ExitStatus.BUSY
    told = cpus.await_free(1, 0.05, outweighs=True)
    assert told == "CPU 1 was 98 % busy before the run, by cc1 (pid 7)"
    # Programs that are not pinned are moved away, as far as possible.
    monkeypatch.setattr(cpus, "pinned_to", lambda *_: [])
    use = switches.Use({"rustc": 0.52, "python": 0.2, "cc1": 0.1, "as": 0.1}, complete=True)
    monkeypatch.setattr(switches, "watched", lambda *_: nullcontext({1: use}))
    assert cpus.await_free(1, 0.05) == (
        "CPU 1 was 98 % busy before the run, by rustc 52 %, python 20 %, cc1 10 %"
    )
    monkeypatch.setattr(switches, "watched", lambda *_: nullcontext(None))
    assert cpus.await_free(1, 0.05) == "CPU 1 was 98 % busy before the run"
    monkeypatch.setattr(cpus, "busy_share", lambda *_, **__: 0.2)
    assert cpus.await_free(1, 0.05) is None
