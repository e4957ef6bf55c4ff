# SPDX-License-Identifier: BSD-3-Clause
"""The weight of a lab on its CPUs: a control group around it, which is removed with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_cgroups import Fake, fake_v1, fake_v2
from fake_host import Instead
from simulated import Simulation, start

from linerate.host.cores import weight
from linerate.host.cores.cgroup_mounts import mounts, own_directory
from linerate.host.cores.weight import WEIGHT, even_out, raised
from linerate.host.host import LOCAL
from linerate.host.netns import Namespaces, ip
from linerate.links.veth import _receive_on as receive_on
from linerate.records.trial import Trial


@pytest.fixture
def tree() -> Path:
    """The group tree in which groups are made on this machine."""
    if why := weight.obstacle():
        pytest.skip(f"the lab cannot have a weight here: {why}")
    found = next(each for each in mounts() if each.version == 1 and "cpu" in each.options)
    return found.path


@pytest.fixture
def asleep() -> Iterator[subprocess.Popen[bytes]]:
    """A process in the group that the test is in when this starts."""
    with subprocess.Popen(["sleep", "60"]) as running:
        yield running
        running.kill()


def ours(tree: Path) -> list[Path]:
    return sorted(tree.glob("linerate-weight-*"))


def group_of(pid: int | str) -> str:
    """Its group for the CPU controller."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line.split(":")[2] for line in lines if "cpu" in line.split(":")[1].split(","))


def test_the_lab_and_what_it_starts_weigh_more_for_a_while(tree: Path) -> None:
    before = group_of("self")
    with ExitStack() as after:
        with raised() as held:
            assert (held.times, held.why) == (WEIGHT, "")
            assert held.group is not None
            assert int((held.group / "cpu.shares").read_text()) == WEIGHT * 1024
            child = after.enter_context(subprocess.Popen(["sleep", "60"]))
            after.callback(child.kill)
            assert group_of("self") == group_of(child.pid) == f"/{held.group.name}"
        # Processes that still run are moved back, too.
        assert group_of("self") == group_of(child.pid) == before
    assert held.group not in ours(tree)


def test_it_goes_back_when_something_fails(tree: Path) -> None:
    before = group_of("self")
    with pytest.raises(OSError, match="of the body"), raised():
        raise OSError("of the body")
    assert group_of("self") == before
    assert not [path for path in ours(tree) if str(os.getpid()) in path.name]


def test_what_a_killed_lab_left_is_removed_and_nobody_in_it_is_ended(tree: Path) -> None:
    program = """
        import subprocess, sys, time
        from linerate.host.cores.weight import raised
        with raised() as held:
            child = subprocess.Popen(["sleep", "60"])
            print(child.pid, held.group, flush=True)
            time.sleep(60)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        pid, group = lab.stdout.readline().split()
        lab.kill()
    try:
        assert group in map(str, ours(tree))
        with raised():
            assert group not in map(str, ours(tree))
        assert group_of(pid) == group_of("self")
    finally:
        os.kill(int(pid), signal.SIGKILL)


def test_arms_do_not_differ_by_their_weight(tree: Path, asleep: subprocess.Popen[bytes]) -> None:
    with raised() as held, subprocess.Popen(["sleep", "60"]) as inside:
        even_out(inside.pid)
        assert held.times == WEIGHT
        even_out(asleep.pid)
        assert held.times == 1
        inside.kill()
    even_out(asleep.pid)  # without a group there is nothing to do


def seen(found: Fake) -> Instead:
    return Instead({"/proc/self": found.proc})


def test_version_2_has_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fake_v2(tmp_path, monkeypatch)
    host = seen(found)
    tree = tmp_path / "v2"
    (tree / "cgroup.subtree_control").write_text("memory pids cpu\n")
    with raised(50, host) as held:
        assert held.times == 50
        assert held.group is not None
        assert held.group.parent == tree
        assert (held.group / "cpu.weight").read_text() == "5000"
        assert (held.group / "cgroup.procs").read_text().split() == [str(os.getpid())]
    assert (tree / "user.slice" / "lab" / "cgroup.procs").read_text().split() == [str(os.getpid())]
    assert found.groups() == []


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("v2/cgroup.subtree_control", "memory", "has no cpu: groups below have no weight"),
        ("v2/user.slice/cpu.max", "50000 100000", "user.slice limits what the lab may use"),
        ("v2/user.slice/lab/memory.max", "4096", "lab limits what the lab may use"),
    ],
)
def test_it_stays_where_it_would_escape_or_weigh_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, why: str
) -> None:
    found = fake_v2(tmp_path, monkeypatch)
    host = seen(found)
    (tmp_path / "v2" / "cgroup.subtree_control").write_text("cpu")
    (tmp_path / file).write_text(text)
    with raised(host=host) as held:
        assert held.times == 1
        assert why in held.why
        assert why in (weight.obstacle(host) or "")
        assert found.groups() == []


def test_a_quota_of_version_1_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fake_v1(tmp_path, monkeypatch)
    (tmp_path / "cpu,cpuacct" / "cpu.cfs_quota_us").write_text("50000")
    with raised(host=seen(found)) as held:
        assert "limits what the lab may use" in held.why


def test_only_root_makes_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = seen(fake_v1(tmp_path, monkeypatch))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with raised(host=host) as held:
        assert held.why == "control groups are made by root, and this is user 1000"
    with raised(1, host) as held:
        assert held.times == 1


def test_own_directory_is_the_group(tree: Path) -> None:
    with raised() as held:
        mount = next(each for each in mounts() if each.path == tree)
        assert own_directory(mount) == held.group


def test_a_thread_of_the_kernel_that_works_for_the_lab_weighs_as_much(tree: Path) -> None:
    with Namespaces(("weight",)) as made:
        host = made.host("weight")
        ip("link", "add", "lrw0", "type", "veth", "peer", "name", "lrw1", host=host)
        outside = receive_on(LOCAL, host, "lrw0", min(os.sched_getaffinity(0)), first=False)
        with raised() as held:
            inside = receive_on(LOCAL, host, "lrw1", min(os.sched_getaffinity(0)), first=False)
            assert held.group is not None
            assert {group_of(pid) for pid in inside} == {f"/{held.group.name}"}
            assert f"/{held.group.name}" not in {group_of(pid) for pid in outside}
        assert {group_of(pid) for pid in inside} == {group_of("self")}
    assert held.group not in ours(tree)


@pytest.mark.parametrize("void", [True, False])
def test_who_may_not_weigh_more_is_told_where_others_had_the_cpus(
    tmp_path: Path, simulation: Simulation, monkeypatch: pytest.MonkeyPatch, void: bool
) -> None:
    real = simulation.trial

    def disturbed(*arguments: Any) -> Trial:
        found = real(*arguments)
        if void and found.identity.position % 2:
            found.reject("late", "most of it was late")
        return found

    monkeypatch.setattr(simulation, "trial", disturbed)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = start(tmp_path / "run", keep_going=True)
    told = [text for text in found.summary.warnings if "at everyone's weight" in text]
    assert len(told) == void
    assert all("control groups are made by root" in text for text in told)
