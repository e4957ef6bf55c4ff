# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of both versions: what is found, made, written, counted and removed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from fake_cgroups import Fake, fake_v1, fake_v2
from fake_host import Instead

from linerate.experiments.cloud.tenants.cgroups import block_device, cgroups, hierarchy
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group, Groups, Limits, Usage
from linerate.host.cores import cgroup_files, cgroup_mounts
from linerate.host.errors import MachineError, MissingError, UsageError
from linerate.host.locks import hold
from linerate.host.process import start_time

OWN = f"linerate-{os.getpid()}-{start_time(os.getpid())}"
DEAD = "linerate-999999999-1"
SOME = Limits((1,), 0.5, 200, 64, 1 << 20, "8:0", 32)


@pytest.fixture(params=[1, 2])
def fake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return (fake_v1 if request.param == 1 else fake_v2)(tmp_path, monkeypatch)


# --- what is there -----------------------------------------------------------------------------


def test_version_1_is_below_the_lab_s_own_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fake_v1(tmp_path, monkeypatch).found()
    assert found.version == 1
    relative = [str(place.relative_to(tmp_path)) for place in found.places]
    assert relative == ["cpu,cpuacct", "cpuset", "memory/own", "pids", "blkio", "freezer"]
    assert found.missing() == []


@pytest.mark.parametrize("enabled", [True, False])
def test_version_2_is_below_the_lab_s_own_group_where_that_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    fake = fake_v2(tmp_path, monkeypatch)
    own = tmp_path / "v2" / "user.slice" / "lab"
    if enabled:
        (own / "cgroup.subtree_control").write_text("cpuset cpu memory pids")
    found = fake.found()
    assert found.version == 2
    assert list(found.places) == [own if enabled else tmp_path / "v2"]


def test_mounts_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(
        "24 1 0:6 / /dev rw - devtmpfs devtmpfs rw\n"
        "broken\n"
        "32 31 0:29 /docker/ab /a\\040b rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 / /c rw - cgroup2 none rw\n"
    )
    first, second = cgroup_mounts.mounts(Instead({"/proc/self": tmp_path}))
    assert (first.version, first.path, first.root) == (1, Path("/a b"), "/docker/ab")
    assert {"cpu", "cpuacct"} <= first.options
    assert (second.version, second.path) == (2, Path("/c"))


@pytest.mark.parametrize(
    ("root", "own", "expected"),
    [
        ("/", "/", "."),
        ("/", "/x/y", "x/y"),
        ("/docker/ab", "/docker/ab/x", "x"),
        ("/docker/ab", "/docker/other", "."),
        ("/docker/ab", "/../other", "."),
        ("/", "/gone", "."),
    ],
)
def test_the_lab_s_own_group_is_found_where_it_can_be_seen(
    tmp_path: Path, root: str, own: str, expected: str
) -> None:
    for name in ("x/y", "docker"):
        (tmp_path / name).mkdir(parents=True)
    mount = cgroup_mounts.Mount(1, tmp_path, root, frozenset({"rw", "cpu"}))
    (tmp_path / "cgroup").write_text(f"7:name=systemd:/docker\n3:cpu:{own}\n0::/docker\n")
    assert (
        cgroup_mounts.own_directory(mount, Instead({"/proc/self": tmp_path})) == tmp_path / expected
    )


def test_all_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = fake_v1(tmp_path, monkeypatch, without="memory")
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    monkeypatch.setattr("os.access", lambda path, mode: path.name != "pids")
    reasons = cgroups.missing(fake.found())
    assert [word for word in ("user 65534", "controller memory", "pids: no control group")
            if word not in "\n".join(reasons)] == []  # fmt: skip
    assert len(reasons) == 3
    with (
        pytest.raises(MissingError, match=r"user 65534.*memory is not mounted"),
        Groups(fake.found()),
    ):
        pass
    assert fake.groups() == []


def test_a_tree_without_a_controller_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_v2(tmp_path, monkeypatch)
    (tmp_path / "v2" / "cgroup.controllers").write_text("cpu memory")
    reasons = "\n".join(cgroups.missing(fake.found()))
    assert "no controller cpuset" in reasons
    assert "no controller pids" in reasons
    assert "no controller cpu " not in reasons


def test_without_any_mount_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text("24 1 0:6 / /dev rw - devtmpfs devtmpfs rw\n")
    assert cgroups.hierarchy(Instead({"/proc/self": tmp_path})) is None
    monkeypatch.setattr(cgroups, "hierarchy", lambda: None)
    assert "no control groups are mounted" in cgroups.missing()[-1]


# --- what is made and written ------------------------------------------------------------------


def test_groups_and_their_limits(fake: Fake) -> None:
    with Groups(fake.found(), weight=500) as made, made.group("a", SOME) as group:
        assert all(OWN in path for path in fake.groups())
        assert group.limits == SOME
        told = {
            1: {
                "a/cpu.shares": "2048", "a/cpu.cfs_period_us": "100000",
                "a/cpu.cfs_quota_us": "50000", "a/cpuset.cpus": "1",
                "a/memory.limit_in_bytes": "67108864", "a/memory.memsw.limit_in_bytes": "67108864",
                "a/pids.max": "32", "a/blkio.throttle.read_bps_device": "8:0 1048576",
                "a/blkio.throttle.write_bps_device": "8:0 1048576", f"{OWN}/cpu.shares": "5120",
            },
            2: {
                "a/cpu.weight": "200", "a/cpu.max": "50000 100000", "a/cpuset.cpus": "1",
                "a/memory.max": "67108864", "a/memory.swap.max": "0", "a/pids.max": "32",
                "a/io.max": "8:0 rbps=1048576 wbps=1048576", f"{OWN}/cpu.weight": "500",
            },
        }[made.version]  # fmt: skip
        assert {name: fake.to(name)[-1] for name in told} == told
        group.set(Limits((0, 2)))
        free = {
            1: {
                "a/cpu.shares": "1024", "a/cpu.cfs_quota_us": "-1", "a/cpuset.cpus": "0,2",
                "a/memory.limit_in_bytes": "-1", "a/memory.memsw.limit_in_bytes": "-1",
                "a/pids.max": "max", "a/blkio.throttle.read_bps_device": "8:0 0",
            },
            2: {
                "a/cpu.weight": "100", "a/cpu.max": "max 100000", "a/cpuset.cpus": "0,2",
                "a/memory.max": "max", "a/memory.swap.max": "max", "a/pids.max": "max",
                "a/io.max": "8:0 rbps=max wbps=max",
            },
        }[made.version]  # fmt: skip
        assert {name: fake.to(name)[-1] for name in free} == free
    assert fake.groups() == []


def test_a_new_set_of_cpus_is_its_parent_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can enter a group with an empty set."""
    fake = fake_v1(tmp_path, monkeypatch)
    with Groups(fake.found()) as made:
        made.group("a", Limits((1,)))
        assert fake.to(f"cpuset/{OWN}/cpuset.cpus") == ["0-3"]
        assert fake.to(f"cpuset/{OWN}/cpuset.mems") == ["0"]
        assert fake.to("a/cpuset.mems") == ["0"]


def test_controllers_are_enabled_from_the_place_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_v2(tmp_path, monkeypatch)
    (tmp_path / "v2" / "cgroup.subtree_control").write_text("cpu memory")
    with Groups(fake.found()):
        assert fake.to("v2/cgroup.subtree_control") == ["+cpuset", "+pids", "+io"]
        inside = fake.to(f"{OWN}/cgroup.subtree_control")
        assert inside == ["+cpu", "+cpuset", "+memory", "+pids", "+io"]


def test_use_is_counted(fake: Fake) -> None:
    with Groups(fake.found()) as made, made.group("a", Limits((0,))) as group:
        used = {
            1: Usage(1.5, 2.5, 3, 4096, 30, 7),
            2: Usage(1.5, 2.5, 3, 8192, 33, 8),
        }[made.version]
        assert group.usage() == used


def test_what_a_kernel_does_not_count_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_v1(tmp_path, monkeypatch, without="blkio")
    with Groups(fake.found()) as made, made.group("a", Limits((0,))) as group:
        for path in tmp_path.rglob(f"{OWN}/a/*"):
            path.unlink()
        assert group.usage() == Usage()
        with pytest.raises(MachineError, match="blkio of control groups is not mounted"):
            made.group("b", SOME)
    assert fake.groups() == []


def test_a_process_goes_into_every_directory(fake: Fake) -> None:
    with Groups(fake.found()) as made, made.group("a", Limits((0,))) as group:
        group.add(4194999)
        assert fake.to("a/cgroup.procs") == ["4194999"] * len(fake.found().places)
        assert group.pids() == [4194999]
        group.kill()
        assert group.pids() == []
    with pytest.raises(UsageError, match="a is closed"):
        group.add(1)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(()), "needs a CPU"),
        (Limits((0,), cpu_quota=0.001), "0.01 or more"),
        (Limits((0,), cpu_quota=float("nan")), "0.01 or more"),
        (Limits((0,), cpu_weight=0), "1 to 10000"),
        (Limits((0,), cpu_weight=10_001), "1 to 10000"),
        (Limits((0,), memory_mib=0), "0 MiB of memory"),
        (Limits((0,), pids=0), "0 processes"),
        (Limits((0,), io_bytes_per_s=5), "needs the device"),
        (Limits((0,), io_bytes_per_s=5, io_device="sda"), "not MAJOR:MINOR"),
    ],
)
def test_limits_that_are_none(fake: Fake, limits: Limits, why: str) -> None:
    with Groups(fake.found()) as made:
        before = fake.groups()
        with pytest.raises(UsageError, match=why):
            made.group("a", limits)
        assert fake.groups() == before


@pytest.mark.parametrize("word", ["", "..", "A", "a/b", "a" * 40])
def test_names_that_are_none(fake: Fake, word: str) -> None:
    with Groups(fake.found()) as made, pytest.raises(UsageError, match="is not a valid name"):
        made.group(word, Limits((0,)))


def test_what_is_there_is_not_taken(fake: Fake) -> None:
    with Groups(fake.found()) as made:
        group = made.group("a", Limits((0,)))
        with pytest.raises(UsageError, match="a control group a already"):
            made.group("a", Limits((0,)))
        with pytest.raises(UsageError, match="has control groups already"), Groups(fake.found()):
            pass
        assert group.usage().cpu_s == 1.5


# --- what is removed ---------------------------------------------------------------------------


def test_those_of_a_dead_lab_go_with_their_processes(fake: Fake) -> None:
    for place in fake.found().roots:
        fake.make(place / DEAD)
        fake.make(place / DEAD / "a")
        (place / DEAD / "a" / "cgroup.procs").write_text("4194999\n")
        fake.make(place / f"{DEAD}-more")
        fake.make(place / f"linerate-{os.getppid()}-{start_time(os.getppid())}")
    with Groups(fake.found()):
        assert not [path for path in fake.groups() if path.endswith((DEAD, "/a"))]
    kept = {Path(path).name for path in fake.groups()}
    assert kept == {f"{DEAD}-more", f"linerate-{os.getppid()}-{start_time(os.getppid())}"}


def test_those_of_a_lab_that_cannot_be_seen_from_here_stay(fake: Fake) -> None:
    """For example of another container that shares the mounts: its pid does not exist here, but its
    lock does.
    """
    first = fake.found().roots[0] / DEAD
    fake.make(first)
    lock = hold(first, os.O_DIRECTORY)
    assert lock is not None
    assert cgroups.remove_stale(fake.found()) == []
    os.close(lock)
    assert cgroups.remove_stale(fake.found()) == [first]


def test_a_lock_that_goes_in_a_moment_is_waited_for(fake: Fake) -> None:
    """A process that a killed lab has just started holds it until it executes its program."""
    first = fake.found().roots[0] / DEAD
    fake.make(first)
    lock = hold(first, os.O_DIRECTORY)
    assert lock is not None
    soon = threading.Timer(0.03, os.close, (lock,))
    soon.start()
    assert cgroups.remove_stale(fake.found()) == [first]
    soon.join()


def test_a_process_that_does_not_end_is_told_in_bounded_time(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hierarchy.remove_all, "__defaults__", (0.05,))
    monkeypatch.setattr(hierarchy.empty, "__defaults__", (0.05,))
    groups = Groups(fake.found())
    groups.__enter__()
    group: Group = groups.group("a", Limits((0,)))
    group.add(4194999)
    fake.immortal = 4194999
    monkeypatch.setattr(cgroup_files, "remove", _busy)
    with pytest.raises(MachineError, match=r"processes \[4194999\] do not end"):
        group.kill()
    with pytest.raises(MachineError, match="could not be removed"):
        group.close()
    with pytest.raises(MachineError, match="could not be removed"):
        groups.close()
    groups.close()


def _busy(directory: Path) -> None:
    raise OSError(16, "busy")


# --- disks -------------------------------------------------------------------------------------


def test_a_directory_is_on_a_whole_disk(tmp_path: Path) -> None:
    found = block_device.disk_of(Path("/var/tmp"))
    assert Path(f"/sys/dev/block/{found}").exists()
    assert not Path(f"/sys/dev/block/{found}/partition").exists()


def test_a_partition_is_of_its_disk(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    disk = tmp_path / "devices" / "sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1" / "partition").write_text("1\n")
    links = tmp_path / "dev" / "block"
    links.mkdir(parents=True)
    (links / f"{os.major(number)}:{os.minor(number)}").symlink_to(disk / "sda1")
    assert block_device.disk_of(tmp_path, Instead({"/sys": tmp_path})) == "8:0"


@pytest.mark.parametrize("source", ["overlay", "/dev/null", "/dev/absent"])
def test_without_a_disk_that_is_said(tmp_path: Path, source: str) -> None:
    number = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"1 1 {os.major(number)}:{os.minor(number)} / / rw - overlay {source} rw\n"
        "2 1 0:99 / /x rw - proc proc rw\n"
    )
    with pytest.raises(MachineError, match="is not on a visible disk"):
        block_device.disk_of(tmp_path, Instead({"/sys": tmp_path, "/proc/self/mountinfo": mounts}))
    with pytest.raises(MachineError, match="No such file"):
        block_device.disk_of(tmp_path / "absent")
