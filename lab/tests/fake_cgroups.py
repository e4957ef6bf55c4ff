# SPDX-License-Identifier: BSD-3-Clause
"""Control groups as ordinary files: what a kernel of either version would show, and what is
written.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fake_host import Instead

from linerate.experiments.cloud.tenants.cgroups import cgroups, hierarchy
from linerate.experiments.cloud.tenants.cgroups.hierarchy import Hierarchy
from linerate.host.cores import cgroup_files
from linerate.host.errors import MachineError

V1_FILES = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1",
            "cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n"},
    "cpuacct": {"cpuacct.usage": "1500000000\n"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": "", "cpuset.effective_cpus": ""},
    "memory": {"memory.limit_in_bytes": "-1", "memory.memsw.limit_in_bytes": "-1",
               "memory.usage_in_bytes": "4096\n"},
    "pids": {"pids.max": "max"},
    "blkio": {"blkio.throttle.read_bps_device": "", "blkio.throttle.write_bps_device": "",
              "blkio.throttle.io_service_bytes": "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
              "blkio.throttle.io_serviced": "8:0 Read 1\n8:0 Write 2\n8:16 Read 4\nTotal 7\n"},
    "freezer": {"freezer.state": "THAWED"},
}  # fmt: skip
V2_CONTROLLERS = "cpuset cpu io memory hugetlb pids"
V2_FILES = {
    "cgroup.controllers": V2_CONTROLLERS, "cgroup.subtree_control": "", "cgroup.kill": "",
    "cpu.weight": "100", "cpu.max": "max 100000", "cpuset.cpus": "", "pids.max": "max",
    "memory.max": "max", "memory.swap.max": "max", "memory.current": "8192\n", "io.max": "",
    "cpu.stat": "usage_usec 1500000\nnr_throttled 3\nthrottled_usec 2500000\n",
    "io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=9\n8:16 rbytes=10 wbytes=20 rios=1\n",
}  # fmt: skip


class Fake:
    """Groups below a directory; `written`: what was written to each file, in order, by its path
    there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.proc = root / "proc"
        self.written: list[tuple[str, str]] = []
        # A process that stays in spite of SIGKILL.
        self.immortal: int | None = None

    def to(self, name: str) -> list[str]:
        return [text for path, text in self.written if path.endswith(name)]

    def groups(self) -> list[str]:
        """Return the groups of labs, by their paths."""
        found = [path for path in self.root.rglob("linerate-*") if path.is_dir()]
        return sorted(str(path.relative_to(self.root)) for path in found)

    def populate(self, directory: Path) -> None:
        """Create the files that the kernel puts into a new group."""
        (directory / "cgroup.procs").write_text("")
        for controller in directory.relative_to(self.root).parts[0].split(","):
            for name, text in V1_FILES.get(controller, V2_FILES).items():
                (directory / name).write_text(text)

    def make(self, directory: Path) -> None:
        directory.mkdir()
        self.populate(directory)

    def write(self, path: Path, text: str) -> None:
        self.written.append((str(path.relative_to(self.root)), text))
        if path.name == "cgroup.procs":
            text = f"{path.read_text()}{text}\n"
        elif path.name == "cgroup.subtree_control":
            text = f"{path.read_text()} {text.removeprefix('+')}"
        elif path.name == "cgroup.kill":
            self.kill_each(path.parent)
            return
        elif not path.exists():
            raise MachineError(f"{path}: it is not there")
        path.write_text(text)

    def kill_each(self, directory: Path) -> None:
        if self.immortal is None:
            (directory / "cgroup.procs").write_text("")

    def found(self) -> Hierarchy:
        found = cgroups.hierarchy(Instead({"/proc/self": self.proc}))
        assert found is not None
        return found


def _fake(root: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake(root)
    fake.proc.mkdir()
    monkeypatch.setattr(cgroup_files, "make", fake.make)
    monkeypatch.setattr(cgroup_files, "remove", shutil.rmtree)
    monkeypatch.setattr(cgroup_files, "write", fake.write)
    monkeypatch.setattr(hierarchy, "kill_each", fake.kill_each)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return fake


def fake_v1(root: Path, monkeypatch: pytest.MonkeyPatch, without: str = "") -> Fake:
    """Return groups with `cpu` and `cpuacct` together and the others one by one; the lab is in /own
    of `memory`.
    """
    fake = _fake(root, monkeypatch)
    mounted = ["cpu,cpuacct", "cpuset", "memory", "pids", "blkio", "freezer"]
    lines, own = [], []
    for at, controllers in enumerate(name for name in mounted if name != without):
        directory = root / controllers
        fake.make(directory)
        lines.append(f"{at} 1 0:{at} / {directory} rw,relatime - cgroup cgroup rw,{controllers}")
        own.append(f"{at}:{controllers}:{'/own' if controllers == 'memory' else '/'}")
    if without != "memory":
        fake.make(root / "memory" / "own")
    (root / "cpuset" / "cpuset.effective_cpus").write_text("0-3\n")
    (root / "cpuset" / "cpuset.mems").write_text("0\n")
    unified = root / "unified"
    unified.mkdir()
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    lines.append(f"90 1 0:90 / {unified} rw - cgroup2 cgroup2 rw")
    (fake.proc / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    (fake.proc / "cgroup").write_text("".join(f"{line}\n" for line in [*own, "0::/"]))
    return fake


def fake_v2(root: Path, monkeypatch: pytest.MonkeyPatch, own: str = "/user.slice/lab") -> Fake:
    """Return one tree, seen from its root; the lab is in the group `own`."""
    fake = _fake(root, monkeypatch)
    tree = root / "v2"
    fake.make(tree)
    at = tree
    for part in Path(own).parts[1:]:
        at /= part
        fake.make(at)
    (fake.proc / "mountinfo").write_text(f"31 1 0:28 / {tree} rw,nosuid shared:4 - cgroup2 c rw\n")
    (fake.proc / "cgroup").write_text(f"0::{own}\n")
    return fake
