# SPDX-License-Identifier: BSD-3-Clause
"""Which processes had a CPU, by the kernel's records of context switches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from linerate.host.cores import switches
from linerate.host.cores.switches import watched

_BUSY = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


def own(pid: int) -> bool:
    return pid == os.getpid()


@pytest.fixture
def cpu() -> int:
    cpu = min(os.sched_getaffinity(0))
    with watched([cpu], own) as seen:
        if seen is None:
            pytest.skip("context switches are recorded for root, or CAP_PERFMON")
    return cpu


@contextmanager
def busy(cpu: int, name: str, begin: str = "") -> Iterator[int]:
    """A busy process of that name on a CPU; its pid. It ends by itself after a minute."""
    program = f"open('/proc/self/comm', 'w').write({name!r})\n{begin}\nprint(flush=True)\n{_BUSY}"
    argv = ["taskset", "-c", str(cpu), sys.executable, "-c", program]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()
            yield running.pid
        finally:
            running.kill()


def seen_on(cpu: int, *, of: int | None = None) -> dict[str, float]:
    """CPU time of other processes in 0.3 s; `of`: a process that also counts as the lab's."""
    with watched([cpu], lambda pid: own(pid) or pid == of) as seen:
        time.sleep(0.3)
    assert seen is not None
    assert seen[cpu].complete
    return dict(seen[cpu].others)


def test_who_has_the_cpu_is_named(cpu: int) -> None:
    with busy(cpu, "neighbour"):
        found = seen_on(cpu)
    assert found["neighbour"] > 0
    assert sum(found.values()) < 1.001
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_what_ended_meanwhile_is_named_too(cpu: int) -> None:
    with watched([cpu], own) as seen, busy(cpu, "short"):
        time.sleep(0.1)
    assert seen is not None
    assert seen[cpu].others["short"] > 0


def test_the_lab_s_own_are_not_others(cpu: int) -> None:
    with busy(cpu, "ours") as pid:
        assert "ours" not in seen_on(cpu, of=pid)


def test_threads_count_for_their_process(cpu: int) -> None:
    threads = (
        "import threading\n"
        "def spin():\n"
        "    open('/proc/thread-self/comm', 'w').write('worker')\n"
        "    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()"
    )
    with busy(cpu, "parent", threads):
        found = seen_on(cpu)
    assert found["parent"] > 0
    assert "worker" not in found


def test_a_thread_that_its_process_names_does_not_name_the_process(cpu: int) -> None:
    """DPDK's programs do so, and appeared as telemetry-v2 among the users of the CPU."""
    threads = (
        "import threading, time\n"
        "idle = threading.Thread(target=time.sleep, args=(60,), daemon=True)\n"
        "idle.start()\n"
        "open(f'/proc/self/task/{idle.native_id}/comm', 'w').write('telemetry')"
    )
    with watched([cpu], own) as seen, busy(cpu, "program", threads):
        time.sleep(0.1)
    assert seen is not None
    assert seen[cpu].others["program"] > 0
    assert "telemetry" not in seen[cpu].others


def test_more_than_there_is_room_for_is_said(cpu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "_RING_PAGES", 1)
    # Two processes that wake each other switch with each byte.
    talk = (
        "import os\n"
        "a, b = os.pipe(), os.pipe()\n"
        "read, write = (a[0], b[1]) if os.fork() else (b[0], a[1])\n"
        "os.write(write, b'.')\n"
        "for _ in range(2000): os.read(read, 1), os.write(write, b'.')\n"
    )
    with watched([cpu], own) as seen:
        subprocess.run(["taskset", "-c", str(cpu), sys.executable, "-c", talk], check=True)
    assert seen is not None
    assert not seen[cpu].complete


def test_without_the_right_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches, "_CALL", {})
    with watched([0], own) as seen:
        pass
    assert seen is None
