# SPDX-License-Identifier: BSD-3-Clause
"""Ownership: nothing outlives the lab, whatever ends it."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import wait_for
from fake_host import Instead

from linerate.host import locks
from linerate.host import process as processes
from linerate.host.cores.cpus import Cores, isolated, parse_list
from linerate.host.errors import Interrupted, MachineError, MissingError, ProcessError
from linerate.host.process import (
    Child,
    Command,
    RunDirectory,
    checkpoint,
    ended_with,
    interruptible,
    pause,
    prefer_threads,
    remove_stale,
    start_time,
    started_for,
)
from linerate.telemetry.client import UNIX_PATH_LIMIT, socket_path

CPU = max(os.sched_getaffinity(0))
SLEEP = ("sleep", "60")
# A lab that starts one child, prints its pid, and waits for its end.
LAB = """
import sys, time
from pathlib import Path
from linerate.host.process import Child, Command, RunDirectory, interruptible
with interruptible(), RunDirectory(Path(sys.argv[1])) as run:
    with Child(Command("forwarder", ("sleep", "60"), ({cpu},)), run) as child:
        print(child.pid, run.path, flush=True)
        while True:
            child.check()
            time.sleep(0.01)
"""


def child(run: RunDirectory, *argv: str, hold_stdin: bool = False) -> Child:
    return Child(Command("forwarder", argv, (CPU,), hold_stdin=hold_stdin), run)


def test_what_a_child_answers_is_heard_as_it_comes(tmp_path: Path) -> None:
    script = "echo one; read line; echo $line; printf half"
    with RunDirectory(tmp_path) as run:
        argv = ("sh", "-c", script)
        with Child(Command("guest", argv, (CPU,), hold_stdin=True, answers=True), run) as process:
            process.widen_output()
            assert process.answer(10) == "one"
            assert process.hear() == b""
            process.tell("two")
            heard = b""
            while chunk := process.hear(10):
                heard += chunk
            assert heard == b"two\nhalf"
            assert process.wait(10)


def gone(pid: int) -> bool:
    """Return True if there is no such process, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_child_is_pinned_and_in_its_own_group(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run, child(run, *SLEEP) as process:
        assert os.sched_getaffinity(process.pid) == {CPU}
        assert os.getpgid(process.pid) == process.pid != os.getpgrp()
        # Going to sleep is a voluntary context switch.
        wait_for("its first switch", lambda: process.activity().voluntary > 0)
        assert process.activity().ran_s > 0
        pid = process.pid
    assert gone(pid)


def test_a_child_that_ignores_signals_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = [(number, patience_s / 10) for number, patience_s in processes._ENDINGS]
    monkeypatch.setattr(processes, "_ENDINGS", shorter)
    script = "trap '' INT TERM; echo ready; while :; do read -t 1 x <> <(:); done"
    with RunDirectory(tmp_path) as run:
        process = child(run, "bash", "-c", script)
        wait_for("the traps", lambda: "ready" in process.output())
        assert process.stop() == -signal.SIGKILL
        assert gone(process.pid)


def test_its_own_programs_are_known_also_when_they_have_ended(tmp_path: Path) -> None:
    """The owners of CPU time are looked up at the end of a window, and programs may end
    within it.
    """
    with RunDirectory(tmp_path) as run, subprocess.Popen(["sleep", "60"]) as stranger:
        with child(run, *SLEEP) as process:
            assert run.owns(process.pid)
        assert run.owns(process.pid)
        # Processes that a container engine started have another environment.
        run.started(stranger.pid)
        assert run.owns(stranger.pid)
        stranger.kill()


def test_a_pid_that_another_process_has_by_now_is_not_the_lab_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunDirectory(tmp_path) as run, subprocess.Popen(["sleep", "60"]) as stranger:
        run.started(stranger.pid)
        monkeypatch.setattr(processes, "start_time", lambda _: 1)
        assert not run.owns(stranger.pid)
        stranger.kill()


def test_a_child_that_was_killed_is_noticed_with_its_signal(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run, child(run, *SLEEP) as process:
        process.check()
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(5)
        with pytest.raises(ProcessError, match="killed by signal 9"):
            process.check()


def test_a_child_that_ends_early_tells_its_last_words(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run, child(run, "sh", "-c", "echo no port; exit 3") as process:
        assert process.wait(5)
        with pytest.raises(ProcessError, match="exit code 3: no port"):
            process.check()


def test_a_child_that_panics_tells_why(tmp_path: Path) -> None:
    script = "echo thread main panicked; echo no port; kill -ABRT $$"
    with RunDirectory(tmp_path) as run, child(run, "sh", "-c", script) as process:
        assert process.wait(5)
        with pytest.raises(ProcessError, match="signal 6: thread main panicked; no port"):
            process.check()


def test_a_child_is_reaped_on_another_cpu_than_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.sched_getaffinity(0)
    if len(usual) < 2:
        pytest.skip("one CPU")
    own = min(usual)
    where = []
    reap = subprocess.Popen.poll

    def look(self: subprocess.Popen[bytes]) -> int | None:
        where.append(os.sched_getaffinity(0))
        return reap(self)

    with RunDirectory(tmp_path) as run:
        child = Child(Command("busy", ("sleep", "60"), (own,)), run)
        monkeypatch.setattr(subprocess.Popen, "poll", look)
        child.stop()
    assert where
    assert own not in where[-1]
    assert os.sched_getaffinity(0) == usual


def test_each_child_starts_in_an_empty_directory_of_its_own(tmp_path: Path) -> None:
    command = Command("writer", ("sh", "-c", "ls -A; touch left; pwd; exec sleep 60"), (CPU,))
    with RunDirectory(tmp_path) as run:
        for _ in range(2):
            with Child(command, run) as child:
                child.wait_until(lambda: child.output().count("\n") == 1, 10, "it printed nothing")
                place = Path(child.output().strip())
                assert (place / "left").is_file()
            assert not place.exists()


def test_a_child_on_all_cpus_is_reaped(tmp_path: Path) -> None:
    usual = os.sched_getaffinity(0)
    with RunDirectory(tmp_path) as run:
        child = Child(Command("busy", ("sleep", "60"), tuple(range(os.cpu_count() or 1))), run)
        assert child.stop() == -signal.SIGINT
    assert os.sched_getaffinity(0) == usual


def slice_of(pid: int) -> int:
    """Return the slice that a thread asked the scheduler for, in nanoseconds (sched_getattr)."""
    read = ctypes.create_string_buffer(48)
    number = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    assert ctypes.CDLL(None, use_errno=True).syscall(number, pid, read, 48, 0) == 0
    return int.from_bytes(read.raw[24:32], sys.byteorder)


@pytest.mark.skipif(
    tuple(map(int, platform.release().split(".")[:2])) < (6, 12),
    reason="before Linux 6.12 no thread can ask for a short slice",
)
def test_threads_of_one_name_ask_for_short_slices(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run, child(run, *SLEEP) as sleeping:
        pid = sleeping.pid
        before = slice_of(pid)
        prefer_threads(pid, "another")
        assert slice_of(pid) == before
        prefer_threads(pid, "sleep")
        assert slice_of(pid) == 100_000 < before
        os.setpriority(os.PRIO_PROCESS, pid, 5)
        prefer_threads(pid, "sleep")
        assert os.getpriority(os.PRIO_PROCESS, pid) == 5
    # A process that has ended has no name.
    prefer_threads(pid, "sleep")


def test_a_missing_program(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run, pytest.raises(MissingError, match="make build"):
        child(run, "/nonexistent/program")


def test_run_directory_is_private_and_short_enough(tmp_path: Path) -> None:
    with RunDirectory() as run:
        assert run.path.stat().st_mode & 0o777 == 0o700
        path = socket_path(run.path, run.new_prefix("generator"))
        assert len(str(path)) < UNIX_PATH_LIMIT
        assert run.environment()["XDG_RUNTIME_DIR"] == str(run.path)
        assert run.new_prefix("forwarder") != run.new_prefix("forwarder")
    assert not run.path.exists()


def test_run_directory_goes_on_errors_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunDirectory(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_no_space_for_the_run_directory(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot make a run directory"):
        RunDirectory(tmp_path / "absent")


def start_lab(base: Path) -> tuple[subprocess.Popen[str], int, Path]:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB.format(cpu=CPU), str(base)], stdout=subprocess.PIPE, text=True
    )
    assert lab.stdout is not None
    pid, path = lab.stdout.readline().split()
    return lab, int(pid), Path(path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_lab_and_leave_nothing(tmp_path: Path, number: signal.Signals) -> None:
    lab, pid, path = start_lab(tmp_path)
    lab.send_signal(number)
    assert lab.wait(10) != 0
    assert gone(pid)
    assert not path.exists()


def test_sigkill_of_the_lab_takes_its_children_and_the_next_lab_cleans_up(tmp_path: Path) -> None:
    lab, pid, path = start_lab(tmp_path)
    lab.kill()
    lab.wait(10)
    wait_for("the child's end", lambda: gone(pid))
    assert path.exists()
    with RunDirectory(tmp_path) as run:
        assert not path.exists()
        assert [entry.name for entry in tmp_path.iterdir()] == [run.path.name]


def test_directories_of_living_labs_stay(tmp_path: Path) -> None:
    lab, _, path = start_lab(tmp_path)
    assert remove_stale(tmp_path) == []
    assert path.exists()
    lab.send_signal(signal.SIGTERM)
    lab.wait(10)


def test_a_reused_pid_does_not_protect_a_stale_directory(tmp_path: Path) -> None:
    stale = tmp_path / f"linerate-{os.getuid()}-{os.getpid()}-1"
    stale.mkdir()
    foreign = tmp_path / f"linerate-{os.getuid()}-notes"
    foreign.mkdir()
    assert remove_stale(tmp_path) == [stale]
    assert foreign.exists()


def test_a_lab_whose_process_cannot_be_seen_from_here_keeps_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example in another container that shares the directory: its pid does not exist here."""
    lab, _, path = start_lab(tmp_path)
    monkeypatch.setattr("linerate.host.process.start_time", lambda _: None)
    assert remove_stale(tmp_path) == []
    assert path.exists()
    lab.kill()
    lab.wait(10)
    assert remove_stale(tmp_path) == [path]
    assert not path.exists()


def test_a_directory_that_was_taken_for_a_stale_one_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another lab removes it between creation and locking."""
    removed: list[Path] = []

    def late(path: Path, flags: int = 0) -> int | None:
        if not removed:
            removed.append(path)
            path.rmdir()
        return locks.hold(path, flags)

    monkeypatch.setattr(processes, "hold", late)
    with RunDirectory(tmp_path) as run:
        assert removed == [run.path]
        assert run.path.is_dir()


def test_a_directory_that_vanishes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two labs start at once: one sees what the other has just removed."""
    gone_already = tmp_path / f"linerate-{os.getuid()}-{os.getpid()}-1"
    monkeypatch.setattr(Path, "glob", lambda *_: [gone_already])
    assert remove_stale(tmp_path) == []


def test_start_time() -> None:
    mine = start_time(os.getpid())
    assert mine is not None
    ticks = os.sysconf("SC_CLK_TCK")
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert 0 < mine / ticks <= up + 1
    with subprocess.Popen(SLEEP) as later:
        theirs = start_time(later.pid)
        later.kill()
    assert theirs is not None
    assert theirs > mine
    assert start_time(2**22 + 1) is None


def test_interruptible_restores_the_handlers() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def interrupted() -> None:
        with interruptible():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)  # one is enough: cleaning up continues
            checkpoint()

    with pytest.raises(Interrupted) as caught:
        interrupted()
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_interruptible_leaves_alone_what_the_caller_ignores() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
            checkpoint()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_single_cpu_is_a_clear_error() -> None:
    with pytest.raises(MachineError, match="two CPUs"):
        Cores.among({0})


@pytest.mark.parametrize(
    ("quiet", "control", "forwarder"),
    [("", 0, 3), ("3", 0, 3), ("1-2", 1, 2), ("0", 1, 0), ("2-3\n", 2, 3)],
)
def test_isolated_cpus_are_chosen_before_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quiet: str, control: int, forwarder: int
) -> None:
    (tmp_path / "isolated").write_text(quiet)
    found = isolated(Instead({"/sys/devices/system/cpu": tmp_path}))
    monkeypatch.setattr("linerate.host.cores.cpus.isolated", lambda: found)
    monkeypatch.setattr("linerate.host.cores.cpus.siblings", lambda cpu: {cpu})
    chosen = Cores.among({0, 1, 2, 3})
    assert (chosen.control, chosen.forwarder) == (control, forwarder)
    assert sorted((chosen.control, chosen.forwarder, *chosen.spare)) == [0, 1, 2, 3]


def test_cores() -> None:
    assert parse_list("0-2,5") == [0, 1, 2, 5]
    chosen = Cores.among({0, 1})
    assert (chosen.control, chosen.forwarder) == (0, 1)


def test_a_signal_ends_a_pause() -> None:
    """The lab sleeps through windows of a minute: a signal must end that at once."""

    def interrupted() -> None:
        with interruptible():
            sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            sender.start()
            try:
                pause(60)
            finally:
                sender.join()

    started = time.monotonic()
    with pytest.raises(Interrupted):
        interrupted()
    assert time.monotonic() - started < 30


def test_other_signals_do_not_shorten_a_pause() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with interruptible():
            sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
            sender.start()
            started = time.monotonic()
            pause(0.3)
            assert time.monotonic() - started >= 0.3
            sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_what_a_script_started_ends_with_it(tmp_path: Path) -> None:
    """A shell does not pass signals on to what it runs."""
    with RunDirectory(tmp_path) as run:
        script = f"sleep 300 & echo $! > {run.path}/pid; wait"
        with Child(Command("script", ("sh", "-c", script), (0,)), run) as child:
            wait_for(
                "its child", lambda: (run.path / "pid").exists() and (run.path / "pid").read_text()
            )
            pid = int((run.path / "pid").read_text())
        assert not child.running
        wait_for("the end of its child", lambda: start_time(pid) is None)


def test_a_child_that_waits_for_commands_is_asked_to_end_by_their_end(tmp_path: Path) -> None:
    """For example testpmd, whose handler of SIGINT only records the signal."""
    with RunDirectory(tmp_path) as run:
        script = "trap '' INT TERM; echo ready; read -r line; exit 7"
        with child(run, "sh", "-c", script, hold_stdin=True) as process:
            wait_for("its start", process.output)
            assert not process.wait(0.1)
            assert process.stop() == 7


def test_what_a_script_left_ends_with_it_too(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        script = f"sleep 300 & echo $! > {run.path}/pid"
        with Child(Command("script", ("sh", "-c", script), (0,)), run) as child:
            wait_for("its end", lambda: not child.running)
            pid = int((run.path / "pid").read_text())
            assert start_time(pid) is not None
        wait_for("the end of its child", lambda: start_time(pid) is None)


def test_the_next_lab_ends_what_a_killed_lab_s_children_started(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    another = f"{tmp_path}/linerate-of-another"
    left = subprocess.Popen(
        ["sleep", "300"], env=run.environment() | {"RUNTIME_DIRECTORY": another}
    )
    stale = run.path.with_name(f"linerate-{os.getuid()}-1-1")
    run.path.rename(stale)
    left_of_it = subprocess.Popen(
        ["sleep", "300"], env=run.environment() | {"RUNTIME_DIRECTORY": str(stale)}
    )
    run.close()
    # The kernel closes close-on-exec descriptors before the new environment is visible.
    environ = Path(f"/proc/{left_of_it.pid}/environ")
    wait_for("its environment", lambda: str(stale).encode() in environ.read_bytes())
    assert remove_stale(tmp_path) == [stale]
    assert left_of_it.wait(10) == -signal.SIGKILL
    assert left.poll() is None
    left.kill()
    left.wait()


def test_a_lab_ends_what_left_its_child_s_process_group(tmp_path: Path) -> None:
    """The child ends first, so the lab does not know the parent of this process."""
    with RunDirectory(tmp_path) as run:
        with child(run, "sh", "-c", "setsid sleep 60 & echo $!; wait") as process:
            wait_for("its child", process.output)
            pid = int(process.output())
            wait_for("its session", lambda: os.getsid(pid) == pid)
            os.kill(pid, signal.SIGSTOP)
        assert start_time(pid)
    wait_for("the end of what it started", lambda: not _runs(pid))


def test_what_is_noted_of_others_ends_with_the_context(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        with ended_with() as note, child(run, "sh", "-c", "setsid sleep 60 & echo $!; wait") as it:
            wait_for("its child", it.output)
            pid = int(it.output())
            wait_for("its session", lambda: os.getsid(pid) == pid)
            note(pid)
            note(it.pid)
        wait_for("the end of what it started", lambda: not _runs(pid))


def test_what_was_started_for_a_prefix_is_found(tmp_path: Path) -> None:
    """Also if another process started it; not by a longer prefix that begins with it."""
    with RunDirectory(tmp_path) as run:
        prefix, other = run.new_prefix("duel"), run.new_prefix("duel")
        # A shell would fork before it sleeps, and exist twice for a moment.
        code = "import time; time.sleep(60)"
        words = [sys.executable, "-c", code, f"--file-prefix={prefix}"]
        with subprocess.Popen(words) as foreign, child(run, *words) as ours:
            wait_for("its start", lambda: ours.pid in started_for(run.path, prefix))
            assert started_for(run.path, prefix) == [ours.pid]
            assert not started_for(run.path, other)
            assert not started_for(run.path, prefix[:-1])
            assert not started_for(tmp_path, prefix)
            foreign.kill()


def _runs(pid: int) -> bool:
    """Return True if it runs; False for a zombie that its new parent has not reaped yet."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"
