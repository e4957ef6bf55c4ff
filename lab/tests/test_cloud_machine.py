# SPDX-License-Identifier: BSD-3-Clause
"""What experiment cloud needs of the machine: counters, limits, and that nobody else runs it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_host import Instead

from linerate.experiments.cloud.design.parts import TenantShape
from linerate.experiments.cloud.session import counters, neighbours
from linerate.experiments.cloud.session.counters import (
    CoreCounters,
    Reading,
    between,
    moved_bytes,
    softirqs_of,
)
from linerate.experiments.cloud.session.exclusive import Exclusive
from linerate.experiments.cloud.session.neighbours import Neighbours
from linerate.experiments.cloud.tenants.base import Limits
from linerate.experiments.cloud.tenants.cgroups.cgroups import _check
from linerate.experiments.cloud.tenants.container import Container
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge
from linerate.experiments.cloud.window import CloudCell
from linerate.host.errors import MachineError
from linerate.host.host import InNamespace
from linerate.host.process import RunDirectory

SOFTIRQS = """                    CPU0       CPU2
          HI:          1          2
      NET_RX:        300          4
       TASKLET:        5          6
"""


def reading(**changed: object) -> Reading:
    first = {
        "at_s": 10.0, "busy_ticks": 100, "softirq_ticks": 10, "steal_ticks": 1,
        "softirqs": {"NET_RX": 5}, "events": {"switches": 7}, "memory_bytes": 1000,
    }  # fmt: skip
    return Reading(**{**first, **changed})  # type: ignore[arg-type]


def test_softirqs_are_those_of_one_cpu() -> None:
    assert softirqs_of(SOFTIRQS, 0) == {"HI": 1, "NET_RX": 300, "TASKLET": 5}
    assert softirqs_of(SOFTIRQS, 2) == {"HI": 2, "NET_RX": 4, "TASKLET": 6}


def test_differences_are_in_seconds_and_what_is_not_counted_is_absent() -> None:
    tick = 1 / os.sysconf("SC_CLK_TCK")
    after = reading(
        at_s=12.5, busy_ticks=140, softirq_ticks=13, steal_ticks=2,
        softirqs={"NET_RX": 9, "SCHED": 2}, events={"switches": 17}, memory_bytes=5000,
    )  # fmt: skip
    found = between(1, reading(), after)
    assert found.seconds == 2.5
    assert found.busy_s == pytest.approx(40 * tick)
    assert found.softirq_s == pytest.approx(3 * tick)
    assert found.steal_s == pytest.approx(tick)
    assert found.softirqs == {"NET_RX": 4, "SCHED": 2}
    assert found.switches == 10
    assert found.memory_bytes == 4000
    assert found.cache_misses is None
    assert between(1, reading(memory_bytes=None), after).memory_bytes is None


def test_memory_bandwidth_is_the_sum_over_domains(tmp_path: Path) -> None:
    host = Instead({"/sys/fs/resctrl/mon_data": tmp_path})
    assert moved_bytes(host) is None
    for name, text in (("mon_L3_00", "100\n"), ("mon_L3_01", "23\n"), ("mon_L3_02", "Unavailable")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mbm_total_bytes").write_text(text)
    assert moved_bytes(host) == 123


def test_a_core_is_counted_as_far_as_it_can_be() -> None:
    cpu = max(os.sched_getaffinity(0))
    before = set(Path("/proc/self/fd").iterdir())
    with CoreCounters(cpu) as counted:
        first = counted.read()
        # What the kernel refuses here (perf_event_paranoid, a container) is absent.
        assert set(first.events) <= set(counters._EVENTS)
        found = between(cpu, first, counted.read())
        assert found.cpu == cpu
        assert (found.switches is None) == ("switches" not in first.events)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_without_the_system_call_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with CoreCounters(max(os.sched_getaffinity(0))) as counted:
        assert counted.read().events == {}


# --- what tenants are given ---------------------------------------------------------------------


class Given:
    """Replaces `Groups`: stores the limits of the groups that were requested."""

    def __init__(self) -> None:
        self.limits: list[Limits] = []

    def group(self, _: str, limits: Limits) -> contextlib.nullcontext[None]:
        self.limits.append(limits)
        return contextlib.nullcontext()


@pytest.mark.parametrize(("load", "limited"), [("io", True), ("mixed", True), ("cpu", False)])
@pytest.mark.parametrize("kind", ["container", "vm"])
def test_a_limit_on_io_names_the_disk_of_those_that_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, load: str, *, limited: bool
) -> None:
    """A control group refuses such a limit without a device, and the run would end there."""
    monkeypatch.setattr(neighbours, "disk_of", lambda _: "8:0")
    cell = CloudCell.model_validate(
        {"kind": kind, "load": load, "tenants": 1, "cpu": "shared", "rate": 1}
    )
    groups, shape = Given(), TenantShape(io_mib_per_s=3)
    with RunDirectory(tmp_path) as run:
        bridge = Bridge(InNamespace("n"), "br0")
        beside = Neighbours(cell, shape, 1, run, groups, bridge, bound_s=900)  # type: ignore[arg-type]
        made = beside._made(0)
    (limits,) = [made._limits] if isinstance(made, Container) else groups.limits
    _check(limits)
    given = limits.io_bytes_per_s, limits.io_device
    assert given == ((3 << 20, "8:0") if limited else (None, None))


# --- one run at a time -------------------------------------------------------------------------


def test_two_runs_refuse_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Exclusive("of 3 cells", path):
        with pytest.raises(MachineError) as raised:
            Exclusive("of 4 cells", path).__enter__()
        assert f"pid {os.getpid()} since " in str(raised.value)
        assert "of 3 cells" in str(raised.value)
        assert "wait until it ends" in str(raised.value)
    assert not path.exists()
    with Exclusive("again", path):
        assert "again" in path.read_text()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from linerate.experiments.cloud.session.exclusive import Exclusive
with Exclusive("killed", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_run_held_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as lab:  # fmt: skip
        assert lab.stdout
        assert lab.stdout.readline() == "held\n"
        with pytest.raises(MachineError, match="killed"):
            Exclusive("other", path).__enter__()
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    assert path.exists()
    with Exclusive("next", path):
        assert "next" in path.read_text()
    assert not path.exists()


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="No such file or directory"):
        Exclusive("x", tmp_path / "no" / "lock").__enter__()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineError, match="symbolic links"):
        Exclusive("x", tmp_path / "link").__enter__()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(MachineError, match="fifo: not a regular file: it keeps two runs"):
        Exclusive("x", tmp_path / "fifo").__enter__()
