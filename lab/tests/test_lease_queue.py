# SPDX-License-Identifier: BSD-3-Clause
"""The queue for leases of CPUs: first come, first served, and dead labs hold nobody up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import wait_for

from linerate.host.cores import lease_queue, leases
from linerate.host.cores.lease_queue import Ticket
from linerate.host.cores.leases import holders, leased
from linerate.host.errors import MachineError

ALLOWED = set(sorted(os.sched_getaffinity(0))[:2])
pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="this process may use one CPU only")

# A lab that leases CPUs for some seconds. It appends its name to a journal when it gets them, and
# makes a file that no two labs can have at once.
LAB = """
import os, sys, time
from pathlib import Path
from linerate.host.cores import leases
place, journal, name, seconds = sys.argv[1:]
leases.PLACES = (Path(place),)
leases._AT_LEAST_S, leases._LOOK_S = 0.02, 0.2
with leases.leased(say=lambda line: print(line, flush=True)):
    with open(journal, "a") as file:
        file.write(f"{name}\\n")
    inside = Path(journal).with_name("inside")
    try:
        pid = int(inside.read_text())
        if Path(f"/proc/{pid}/fd").exists() and os.listdir(f"/proc/{pid}/fd"):
            sys.exit(f"{name}: {pid} is measuring on these CPUs")
    except FileNotFoundError:
        pass
    inside.write_text(str(os.getpid()))
    print("leases", flush=True)
    time.sleep(float(seconds))
    inside.unlink()
"""


@pytest.fixture
def place(leases_are_the_test_s: Path) -> Path:
    return leases_are_the_test_s


def tickets(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("linerate-queue-*"))


class Labs:
    """Labs that lease the same CPUs."""

    def __init__(self, place: Path, journal: Path) -> None:
        self.place, self.journal = place, journal
        self.labs: list[subprocess.Popen[str]] = []

    def start(self, name: str, seconds: float) -> subprocess.Popen[str]:
        where = (str(self.place), str(self.journal))
        command = [sys.executable, "-c", LAB, *where, name, str(seconds)]
        lab = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.labs.append(lab)
        return lab

    def served(self) -> list[str]:
        """The names of labs that got CPUs, in that order."""
        return self.journal.read_text().split() if self.journal.exists() else []


@contextmanager
def labs_of(place: Path, journal: Path) -> Iterator[Labs]:
    labs = Labs(place, journal)
    try:
        yield labs
    finally:
        for lab in labs.labs:
            lab.kill()
            lab.communicate()


@pytest.fixture
def labs(place: Path, tmp_path: Path) -> Iterator[Labs]:
    with labs_of(place, tmp_path / "journal") as made:
        yield made


def is_waiting(lab: subprocess.Popen[str]) -> bool:
    assert lab.stdout
    return lab.stdout.readline().startswith("waiting")


# -- first come, first served ------------------------------------------------------------------


def test_who_comes_later_does_not_go_before_a_lab_that_waits(
    labs: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting lab sleeps while the CPUs are released: the later one must wait for it."""
    monkeypatch.setattr(leases, "_AT_LEAST_S", 0.02)
    monkeypatch.setattr(leases, "_LOOK_S", 0.2)
    with leased():
        first = labs.start("first", 0.3)
        assert is_waiting(first)
    said: list[str] = []
    with leased(say=said.append):
        assert labs.served() == ["first"]
    assert first.wait(10) == 0


def test_labs_are_served_in_the_order_in_which_they_came(labs: Labs) -> None:
    with leased():
        waiting = []
        for number in range(5):
            waiting.append(labs.start(f"{number}", 0.05))
            assert is_waiting(waiting[-1])
    for lab in waiting:
        assert lab.wait(30) == 0
    assert labs.served() == ["0", "1", "2", "3", "4"]
    assert tickets(labs.place) == []


def test_who_waits_is_told_who_has_the_cpus_and_who_comes_before(labs: Labs) -> None:
    with leased():
        first, second = labs.start("first", 0), None
        assert is_waiting(first)
        second = labs.start("second", 0)
        assert second.stdout
        line = second.stdout.readline()
    assert f"pid {os.getpid()} (" in line
    assert f"; before this one in the queue: pid {first.pid} (python" in line
    assert str(second.pid) not in line


# -- labs that hold nobody up ------------------------------------------------------------------


def test_a_dead_lab_holds_nobody_up(labs: Labs) -> None:
    with leased():
        dead = labs.start("dead", 0)
        assert is_waiting(dead)
        next_one = labs.start("next", 0)
        assert is_waiting(next_one)
        dead.kill()
        dead.wait(10)
    assert next_one.wait(10) == 0
    assert labs.served() == ["next"]
    assert tickets(labs.place) == []


def test_a_lab_that_stands_still_is_passed_over_and_keeps_its_place(labs: Labs) -> None:
    with leased():
        stopped = labs.start("stopped", 0)
        assert is_waiting(stopped)
        stopped.send_signal(signal.SIGSTOP)
        next_one = labs.start("next", 0)
        assert is_waiting(next_one)
    assert next_one.wait(10) == 0
    assert len(tickets(labs.place)) == 1
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait(10) == 0
    assert labs.served() == ["next", "stopped"]
    assert tickets(labs.place) == []


def test_labs_on_other_cpus_do_not_wait_for_each_other(place: Path) -> None:
    with Ticket(place, {0, 1}), Ticket(place, {2, 3}) as other, Ticket(place, {1, 2}) as both:
        assert other.ahead() == []
        assert {each.pid for each in both.ahead()} == {os.getpid()}
        assert len(both.ahead()) == 2
        many = range(0, 1000, 2)
        with Ticket(place, many) as last:
            assert [name for name in tickets(place) if name.endswith("-all")]
            assert len(last.ahead()) == 3
    assert tickets(place) == []


def test_ten_labs_killed_at_random_neither_meet_nor_wait_for_the_dead(labs: Labs) -> None:
    dice = random.Random(39)
    running = [labs.start(f"{number}", 0.1) for number in range(10)]
    doomed = dice.sample(running, 4)
    for lab in doomed:
        time.sleep(dice.uniform(0.0, 0.4))
        lab.kill()
    ended = time.monotonic() + 40
    for lab in running:
        _, errors = lab.communicate(timeout=max(1.0, ended - time.monotonic()))
        assert lab.returncode == (-signal.SIGKILL if lab in doomed else 0) or not errors, errors
        assert lab in doomed or lab.returncode == 0, errors
    # There is no lab to wait for.
    began = time.monotonic()
    with leased(say=pytest.fail):
        assert time.monotonic() - began < 1
    assert holders(ALLOWED) == {}


# -- what other users can put there ------------------------------------------------------------


def test_what_is_no_ticket_holds_nobody_up(place: Path, tmp_path: Path) -> None:
    early = f"linerate-queue-{1:019d}"
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (place / f"{early}-all").symlink_to(precious)
    os.mkfifo(place / f"{early}-0")
    (place / f"{early}-1").mkdir()
    for name in ("0-99999999999", "3-1", "x", "", "0,"):
        (place / f"{early}-{name}").touch()
    (place / "linerate-queue-1-0").touch()
    began = time.monotonic()
    with leased(say=pytest.fail):
        assert time.monotonic() - began < 1
    assert precious.read_text() == "precious"


def test_another_user_s_ticket_is_waited_for_only_while_it_is_locked(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    for parent in place.parents[:4]:
        parent.chmod(parent.stat().st_mode | 0o011)
    path = place / f"linerate-queue-{1:019d}-all"
    path.touch(0o444)
    os.chown(path, 65534, 65534)
    with (
        subprocess.Popen(
            ["flock", path, "cat"], stdin=subprocess.PIPE, user=65534, group=65534
        ) as other,
        Ticket(place, ALLOWED) as ticket,
    ):
        wait_for("the lock", ticket.ahead)
        (found,) = ticket.ahead()
        assert (found.pid, found.user) == (other.pid, "nobody")
        assert other.stdin
        other.stdin.close()
        other.wait(10)
        assert ticket.ahead() == []
    # Root may remove it.
    assert not path.exists()


def test_a_ticket_that_is_taken_for_a_dead_lab_s_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []

    def too_soon(path: Path) -> None:
        path.touch(0o444)
        if not removed:
            removed.append(path)
            path.unlink()

    monkeypatch.setattr(lease_queue, "_make", too_soon)
    with Ticket(place, ALLOWED) as ticket:
        assert ticket.ahead() == []
        (name,) = tickets(place)
        assert name != removed[0].name
    assert tickets(place) == []


def test_a_directory_in_which_no_ticket_can_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="No such file") as raised, Ticket(tmp_path / "x", {0}):
        pytest.fail("it stands in no queue")
    assert str(tmp_path / "x") in str(raised.value)


def test_files_of_the_queue_are_empty_and_all_can_lock_them(place: Path) -> None:
    before = os.umask(0o077)
    try:
        with Ticket(place, ALLOWED):
            (path,) = place.iterdir()
            assert path.stat().st_size == 0
            assert path.stat().st_mode & 0o777 == 0o444
    finally:
        os.umask(before)
