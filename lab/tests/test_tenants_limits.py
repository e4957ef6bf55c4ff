# SPDX-License-Identifier: BSD-3-Clause
"""Limits hold, measured: shares of a CPU beside 0 to 4 tenants, memory, I/O, processes.

CPU time is what the kernel's control groups count; the machine's own noise is kept out by the
weight of the lab's group.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import wait_for

from linerate.experiments.cloud.tenants import container
from linerate.experiments.cloud.tenants.base import Limits, Load
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.cgroups.block_device import disk_of
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group, Groups
from linerate.experiments.cloud.tenants.container import Container
from linerate.experiments.cloud.tenants.disk_image import DIRECTORY, DiskImage
from linerate.host import netns
from linerate.host.cores.cpus import CPUS
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL
from linerate.host.process import Child, Command, RunDirectory, pause
from linerate.links.veth import napi_threads, sees_kernel_threads

LAST_CPU = max(os.sched_getaffinity(0))
BUSY = "while True: pass"
MOST_WEIGHT = 10_000

pytestmark = pytest.mark.e2e


@pytest.fixture
def groups() -> Iterator[Groups]:
    if reasons := [*cgroups.missing(), *container.missing(Load.MIXED)]:
        pytest.skip(f"no limits can be set: {'; '.join(dict.fromkeys(reasons))}")
    with Groups(weight=MOST_WEIGHT) as made:
        yield made


def python(run: RunDirectory, code: str, cpu: int = LAST_CPU) -> Child:
    """A program that waits until it may start: its group must count all of it."""
    waits = f"import sys\nsys.stdin.readline()\n{code}"
    argv = (sys.executable, "-I", "-S", "-c", waits)
    return Child(Command("python", argv, (cpu,), hold_stdin=True), run)


def begin(group: Group, child: Child) -> None:
    group.add(child.pid)
    child.tell("go")


def cpu_s(group: Group) -> float:
    ran = group.usage().cpu_s
    assert ran is not None
    return ran


def stolen_s() -> float:
    """CPU time that the host took; no program on this machine could have had it."""
    return LOCAL.sample(CPUS).cpus[LAST_CPU].steal / os.sysconf("SC_CLK_TCK")


def shares(
    groups: Sequence[Group], window_s: float = 1.5, windows: int = 3
) -> tuple[float, list[float]]:
    """Of the CPU's time that the host left, and what each had of all of it: the medians of windows,
    for others use this machine as well.
    """
    found = []
    for _ in range(windows):
        before, began = [stolen_s(), *map(cpu_s, groups)], time.monotonic()
        pause(window_s)
        after, ended = [stolen_s(), *map(cpu_s, groups)], time.monotonic()
        found.append([(b - a) / (ended - began) for a, b in zip(before, after, strict=True)])
    stolen, *had = [statistics.median(each) for each in zip(*found, strict=True)]
    return 1 - stolen, had


@pytest.mark.parametrize(
    "tenants", [*(pytest.param(n, marks=pytest.mark.second_tier) for n in (0, 1, 4)), 2]
)
def test_half_of_a_cpu_is_half_of_it(tmp_path: Path, groups: Groups, tenants: int) -> None:
    """And tenants of equal weight share equally what it and the host leave."""
    limits = Limits((LAST_CPU,), cpu_quota=0.5, cpu_weight=MOST_WEIGHT)
    with RunDirectory(tmp_path) as run, python(run, BUSY) as busy:
        made = [
            Container(number, Load.CPU, Limits((LAST_CPU,)), run, groups, bound_s=60)
            for number in range(tenants)
        ]
        try:
            for each in made:
                each.start()
            for each in made:
                each.ready()
            half = groups.group("half", limits)
            begin(half, busy)
            wait_for("its quota", lambda: (half.usage().throttled_periods or 0) > 2)
            there, (of_half, *others) = shares([half, *(each.group for each in made)])
            work = [each.work().bogo_ops or 0 for each in made]
        finally:
            for each in made:
                each.stop()
    had = [f"{share:.4f}" for share in others]
    print(f"{tenants} tenants: of {there:.4f} quota {of_half:.4f}, {had}, {work}")
    # 3 % of it.
    assert of_half == pytest.approx(0.5, rel=0.03)
    assert others == pytest.approx([(there - of_half) / max(tenants, 1)] * tenants, rel=0.1)
    assert all(work)


def test_weights_divide_a_cpu(tmp_path: Path, groups: Groups) -> None:
    with RunDirectory(tmp_path) as run:
        weights = (100, 100, 200)
        made = [
            groups.group(f"w{at}", Limits((LAST_CPU,), cpu_weight=weight))
            for at, weight in enumerate(weights)
        ]
        children = [python(run, BUSY) for _ in made]
        try:
            for group, child in zip(made, children, strict=True):
                begin(group, child)
            there, had = shares(made, 1.0)
            assert had == pytest.approx([0.25 * there, 0.25 * there, 0.5 * there], rel=0.1)
            # At once, and while they run.
            made[0].set(Limits((LAST_CPU,), cpu_weight=200))
            there, had = shares(made, 1.0)
            assert had == pytest.approx([0.4 * there, 0.2 * there, 0.4 * there], rel=0.1)
        finally:
            for child in children:
                child.stop()


def test_a_set_of_cpus_is_kept(tmp_path: Path, groups: Groups) -> None:
    """Whatever CPUs it requests for itself."""
    first = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{first}, {LAST_CPU}}})\n{BUSY}"
    with RunDirectory(tmp_path) as run, python(run, code, first) as busy:
        group = groups.group("set", Limits((LAST_CPU,)))
        begin(group, busy)
        wait_for("its CPU", lambda: os.sched_getaffinity(busy.pid) == {LAST_CPU})


def test_who_takes_more_memory_is_killed(tmp_path: Path, groups: Groups) -> None:
    code = "taken = []\nwhile True: taken.append(bytearray(1 << 20))"
    with RunDirectory(tmp_path) as run, python(run, code) as greedy:
        group = groups.group("memory", Limits((LAST_CPU,), memory_mib=48))
        begin(group, greedy)
        assert greedy.wait(20)
        assert greedy.stop() == -9
        assert (group.usage().memory_bytes or 0) <= 48 << 20


def test_processes_are_bounded(tmp_path: Path, groups: Groups) -> None:
    code = (
        "import os, time\n"
        "try:\n"
        "    while os.fork(): pass\n"
        "except BlockingIOError: os._exit(7)\n"
        "time.sleep(60)"
    )
    with RunDirectory(tmp_path) as run, python(run, code) as forks:
        group = groups.group("pids", Limits((LAST_CPU,), pids=5))
        begin(group, forks)
        assert forks.wait(20)
        # The started processes: they are killed with the group, before `stop` ends them.
        left = group.pids()
        assert len(left) == 4
        group.close()
        wait_for("their end", lambda: not any(map(running, left)))
        assert forks.stop() == 7


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


WRITES = """
import mmap, os, time
piece = mmap.mmap(-1, 1 << 16)
file = os.open({path!r}, os.O_RDWR | os.O_DIRECT)
began = time.monotonic()
for at in range(32):
    os.pwritev(file, [piece], at << 16)
print(time.monotonic() - began, flush=True)
"""


def test_io_is_as_slow_as_it_may_be(tmp_path: Path, groups: Groups) -> None:
    """2 MiB at 1 MiB/s take about two seconds, and are counted."""
    limits = Limits((LAST_CPU,), io_bytes_per_s=1 << 20, io_device=disk_of(DIRECTORY))
    with RunDirectory(tmp_path) as run, DiskImage(2) as image:
        assert image.direct
        with python(run, WRITES.format(path=image.path)) as writes:
            group = groups.group("io", limits)
            begin(group, writes)
            assert writes.wait(20)
            took_s = float(writes.output())
            used = group.usage()
    assert 1.5 < took_s < 4
    assert (used.io_bytes or 0) >= 2 << 20
    assert (used.io_operations or 0) >= 32


@pytest.fixture
def _kernel_threads() -> None:
    if not sees_kernel_threads():
        pytest.skip("this PID namespace hides the kernel's threads")


@pytest.mark.usefixtures("_kernel_threads")
def test_a_thread_of_the_kernel_goes_in_and_back(groups: Groups) -> None:
    with netns.Namespaces(("napi",)) as made:
        host = made.host("napi")
        netns.ip("link", "add", "lrt0", "type", "veth", "peer", "name", "lrt1", host=host)
        for name in ("lrt0", "lrt1"):
            netns.ip("link", "set", name, "up", host=host)
        netns.set_gro(host, "lrt0")
        host.set_value("/sys/class/net/lrt0/threaded", "1")
        (thread, *_) = napi_threads("lrt0")
        with groups.group("napi", Limits((LAST_CPU,))) as group:
            group.add(thread)
            assert group.pids() == [thread]
            assert os.sched_getaffinity(thread) == {LAST_CPU}
        assert Path(f"/proc/{thread}").exists()
        assert "/napi" not in Path(f"/proc/{thread}/cgroup").read_text()


@pytest.mark.usefixtures("_kernel_threads")
def test_a_thread_that_belongs_to_a_cpu_is_refused(groups: Groups) -> None:
    """The parent of all kernel threads is refused as well."""
    with (
        groups.group("fixed", Limits((LAST_CPU,))) as group,
        pytest.raises(MachineError, match=r"kernel's thread 2 cannot be moved.*Invalid argument"),
    ):
        group.add(2)
