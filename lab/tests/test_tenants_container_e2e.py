# SPDX-License-Identifier: BSD-3-Clause
"""Running containers: what they do, cannot do and leave behind, also after any kill."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import wait_for

from linerate.experiments.cloud.tenants import container, loads
from linerate.experiments.cloud.tenants.base import Limits, Load, Work
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.cgroups.block_device import disk_of
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups
from linerate.experiments.cloud.tenants.container import Container
from linerate.experiments.cloud.tenants.disk_image import DIRECTORY
from linerate.experiments.cloud.tenants.vm import vm_network
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge
from linerate.host import netns
from linerate.host.errors import LinkError, ProcessError, UsageError
from linerate.host.process import RunDirectory, parent_of, pause

LAST_CPU = max(os.sched_getaffinity(0))
ON_IT = Limits((LAST_CPU,))
NOBODY = 65534
COUNTERS = {
    "bogo_ops": Load.CPU, "io_operations": Load.IO, "io_bytes": Load.IO,
    "network_bytes": Load.NETWORK,
}  # fmt: skip


pytestmark = pytest.mark.e2e


def left(lab: int) -> set[str]:
    """What a lab holds of the machine, by its pid: other labs may run."""
    name = f"linerate-{lab}-*"
    found = {path.name for path in Path("/run/netns").glob(name)}
    roots = getattr(cgroups.hierarchy(), "roots", [])
    return found | {str(path) for root in roots for path in root.rglob(name)}


@pytest.fixture
def groups() -> Iterator[Groups]:
    if reasons := container.missing():
        pytest.skip(f"no container can run: {'; '.join(reasons)}")
    with Groups(weight=10_000) as made:
        yield made
    assert not left(os.getpid())


@pytest.fixture
def bridge(groups: Groups) -> Iterator[Bridge]:
    with vm_network.bridge() as made:
        yield made


Make = Callable[..., Container]


@pytest.fixture
def make(tmp_path: Path, groups: Groups, bridge: Bridge) -> Iterator[Make]:
    """Start containers and wait until they are ready; they end with the test."""
    made: list[Container] = []
    with RunDirectory(tmp_path) as run:

        def start(load: Load, limits: Limits = ON_IT, **options: Any) -> Container:
            tenant = Container(
                len(made), load, limits, run, groups, network=bridge, disk_mib=16,
                **{"bound_s": 60, **options},
            )  # fmt: skip
            made.append(tenant)
            tenant.start()
            tenant.ready()
            return tenant

        try:
            yield start
        finally:
            pids = [pid for tenant in made for pid in tenant.pids]
            for tenant in made:
                tenant.stop()
            assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
            assert not list(run.path.iterdir())
            links = netns.ip("link", "show", host=bridge.host)
            assert not re.search(r"\bct\d", links)


def interface_bytes(bridge: Bridge, name: str) -> int:
    (told,) = json.loads(netns.ip("-s", "-j", "link", "show", "dev", name, host=bridge.host))
    return int(told["stats64"]["rx"]["bytes"] + told["stats64"]["tx"]["bytes"])


def frames_received() -> int:
    """Softirqs that receive frames (NET_RX) on the tenants' CPU."""
    lines = [line.split() for line in Path("/proc/softirqs").read_text().splitlines()]
    (counts,) = [line[1:] for line in lines if line[0] == "NET_RX:"]
    return int(counts[lines[0].index(f"CPU{LAST_CPU}")])


def disk_sectors(disk: str) -> int:
    """Sectors read and written."""
    fields = Path(f"/sys/dev/block/{disk}/stat").read_text().split()
    return int(fields[2]) + int(fields[6])


# The mixed one does what the others do.
@pytest.mark.parametrize(
    "load",
    [
        load if load == Load.MIXED else pytest.param(load, marks=pytest.mark.second_tier)
        for load in Load
    ],
)
def test_a_container_works(make: Make, load: Load) -> None:
    tenant = make(load)
    wanted = {name for name, of in COUNTERS.items() if load in (of, Load.MIXED)}
    first = tenant.work()
    assert {name for name in COUNTERS if getattr(first, name) is not None} == wanted

    def has_worked() -> bool:
        tenant.check()
        now = tenant.work()
        return all(getattr(now, name) > getattr(first, name) for name in wanted)

    wait_for("work of every kind", has_worked)
    assert tenant.facts is not None
    assert tenant.facts.disk_direct == (True if load.has_io else None)
    assert tenant.facts.limits.memory_mib == container.MEMORY_MIB
    used = tenant.group.usage()
    assert (used.cpu_s or 0) > 0
    assert 0 < (used.memory_bytes or 0) <= container.MEMORY_MIB << 20
    tenant.stop()
    tenant.stop()
    with pytest.raises(ProcessError, match="not running"):
        tenant.work()
    tenant.start()
    tenant.ready()
    tenant.check()
    with pytest.raises(UsageError, match="started already"):
        tenant.start()


def test_its_io_goes_to_the_device(make: Make) -> None:
    """It bypasses the page cache: the disk's counter includes the tenant's requests."""
    disk = disk_of(DIRECTORY)
    # A limit without effect makes the kernel count by group, too.
    tenant = make(Load.IO, Limits((LAST_CPU,), io_bytes_per_s=1 << 40))
    group_before, work_before = tenant.group.usage(), tenant.work()
    sectors_before = disk_sectors(disk)

    def is_enough() -> bool:
        return (tenant.work().io_bytes or 0) - (work_before.io_bytes or 0) > 8 << 20

    wait_for("8 MiB of I/O", is_enough)
    work, used = tenant.work(), tenant.group.usage()
    assert (work.io_operations or 0) * loads.BLOCK == work.io_bytes
    # Others may use the disk, too.
    assert (disk_sectors(disk) - sectors_before) * 512 >= 8 << 20
    counted = (used.io_bytes or 0) - (group_before.io_bytes or 0)
    assert counted == pytest.approx((work.io_bytes or 0) - (work_before.io_bytes or 0), rel=0.05)


def test_its_io_is_limited(make: Make) -> None:
    """1 MiB/s each way: in two seconds not more than 4 MiB, which takes a tenth of one without."""
    tenant = make(Load.IO, Limits((LAST_CPU,), io_bytes_per_s=1 << 20))
    before = tenant.work()

    def done() -> int:
        return (tenant.work().io_bytes or 0) - (before.io_bytes or 0)

    with pytest.raises(pytest.fail.Exception, match="more than its limit"):
        wait_for("more than its limit", lambda: done() > 6 << 20, 2.0)
    assert done() > 1 << 20


def test_its_network_crosses_the_bridge_and_its_cpu(make: Make, bridge: Bridge) -> None:
    tenant = make(Load.NETWORK)
    received_before = frames_received()
    # Queried in this order, because it continues meanwhile.
    crossed_before = interface_bytes(bridge, bridge.name)
    before = tenant.work()

    def is_enough() -> bool:
        return (tenant.work().network_bytes or 0) - (before.network_bytes or 0) > 50 << 20

    wait_for("50 MiB", is_enough)
    carried = (tenant.work().network_bytes or 0) - (before.network_bytes or 0)
    # Frames that a bridge itself receives and sends are counted without Ethernet headers.
    assert interface_bytes(bridge, bridge.name) - crossed_before > carried * 0.9
    # In segments of up to 64 KiB; the kernel receives each where it was sent.
    assert frames_received() - received_before > (50 << 20) / (64 << 10) / 10
    assert "master br0" in netns.ip("link", "show", "dev", "ct0", host=bridge.host)
    for pid in tenant.pids:
        assert os.sched_getaffinity(pid) == {LAST_CPU}
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in tenant.pids}
    assert names >= {"iperf3", "bash", "unshare"}


def test_it_has_no_route_off_its_link(make: Make) -> None:
    tenant = make(Load.NETWORK)
    (route,) = netns.ip("route", host=tenant.host).strip().splitlines()
    assert route.startswith("198.19.255.0/24 dev eth0")
    loads_of_it = [pid for pid in tenant.pids if uid(pid) == NOBODY]
    assert loads_of_it
    for pid in loads_of_it:
        status = Path(f"/proc/{pid}/status").read_text()
        assert re.search(r"^CapEff:\s*0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s*1$", status, re.MULTILINE)
        here, there = (os.readlink(f"/proc/{each}/ns/net") for each in ("self", pid))  # noqa: PTH115
        assert here != there
        mounts = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
        (root,) = [line for line in mounts if line.split()[4] == "/"]
        assert root.split()[5].split(",")[0] == "ro"


def uid(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def test_all_of_it_is_in_its_group(make: Make) -> None:
    """None of its processes is anywhere else: all descend from the first one in the group."""
    tenant = make(Load.MIXED)
    wait_for("a slice", lambda: (tenant.work().bogo_ops or 0) > 0)
    inside = set(tenant.pids)
    family = set(inside)
    for pid in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
        if parent_of(pid) in family:
            family.add(pid)
    # Slices come and go.
    assert {pid for pid in family if uid(pid) is not None} <= inside | set(tenant.pids)


# The outermost process and a load's; the others follow in the same way.
@pytest.mark.parametrize(
    "program",
    [
        "unshare",
        "fio",
        *(
            pytest.param(name, marks=pytest.mark.second_tier)
            for name in ("bash", "iperf3", "stress-ng", "stress-ng-cpu", "sleep")
        ),
    ],
)
def test_whichever_process_is_killed_it_is_noticed(make: Make, program: str) -> None:
    tenant = make(Load.MIXED)

    def kill() -> bool:
        """Kill one; return True if there was one."""
        found = [pid for pid in tenant.pids if comm(pid) == program]
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(found), signal.SIGKILL)
        return bool(found)

    def gone() -> bool:
        try:
            tenant.check()
        except ProcessError as error:
            return "ct0" in error.message
        return False

    def killed_and_gone() -> bool:
        # Slices of stress-ng come and go: a killed one may have finished its work.
        if program.startswith("stress-ng") and not gone():
            kill()
        return gone()

    wait_for(program, kill)
    wait_for(f"word of {program}", killed_and_gone)


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"


def test_a_limit_of_memory_ends_a_load(make: Make) -> None:
    """fio needs more than this, and fails or is killed; a container never runs partially."""

    def until_it_ends() -> None:
        # It may do some of its work before.
        tenant = make(Load.IO, Limits((LAST_CPU,), memory_mib=2))
        wait_for("its end", tenant.check)

    with pytest.raises((ProcessError, LinkError), match="ct0"):
        until_it_ends()


def test_it_ends_when_its_time_is_over(make: Make) -> None:
    tenant = make(Load.IDLE, bound_s=1)
    wait_for("its end", lambda: not tenant.pids)
    with pytest.raises(ProcessError, match="ct0 ended with exit code 0"):
        tenant.check()
    assert tenant.work() == Work()


KILLED = """
import contextlib, sys
from pathlib import Path
from linerate.host.process import RunDirectory
from linerate.experiments.cloud.tenants.vm import vm_network
from linerate.experiments.cloud.tenants.base import Limits, Load
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups
from linerate.experiments.cloud.tenants.container import Container
print("begins", flush=True)
run = RunDirectory(Path(sys.argv[1]))
with vm_network.bridge() as bridge, Groups(weight=10_000) as groups, contextlib.ExitStack() as held:
    limits = Limits((int(sys.argv[2]),))
    made = [
        held.enter_context(Container(
            number, Load.MIXED, limits, run, groups, network=bridge, disk_mib=16, bound_s=60))
        for number in range(2)
    ]
    for each in made:
        each.start()
    for each in made:
        each.ready()
    print(*(pid for each in made for pid in each.pids), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.second_tier)]
)
def test_what_a_killed_lab_leaves_goes_with_the_next_one(
    tmp_path: Path, number: signal.Signals
) -> None:
    if reasons := container.missing():
        pytest.skip(f"no container can run: {'; '.join(reasons)}")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(LAST_CPU)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout
        assert lab.stdout.readline() == "begins\n"
        pids = [int(word) for word in lab.stdout.readline().split()]
        assert len(pids) > 16
        lab.send_signal(number)
        lab.wait(10)
    # Without a request: nobody has queried it yet.
    wait_for("their end", lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()])
    assert bool(left(lab.pid)) == (number == signal.SIGKILL)
    with RunDirectory(tmp_path) as run, vm_network.bridge(), Groups():
        assert not left(lab.pid)
        if number == signal.SIGKILL:
            assert [path.name for path in tmp_path.iterdir()] == [run.path.name]
    assert not left(os.getpid())


def members(lab: int) -> list[str]:
    """Processes in groups of a lab, wherever they were started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if f"/linerate-{lab}-" in path.read_text():
                found.append(path.parent.name)
    return found


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.second_tier) for seed in range(1, 5))]
)
def test_a_lab_may_be_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    """While it makes groups, namespaces and disks and begins programs, too."""
    if reasons := container.missing():
        pytest.skip(f"no container can run: {'; '.join(reasons)}")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(LAST_CPU)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout
        assert lab.stdout.readline() == "begins\n"
        pause(random.Random(seed).uniform(0, 1.0))
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    wait_for("their end", lambda: not members(lab.pid))
    with RunDirectory(tmp_path), vm_network.bridge(), Groups():
        assert not left(lab.pid)
