# SPDX-License-Identifier: BSD-3-Clause
"""Choose the CPUs of the lab, the generator and the forwarder, and check if other programs use
them.

The forwarder gets the last CPU of the allowed set, everything else the first one; on machines with
more than two, neither uses a hyperthread sibling of the other. In a session the allowed set is what
the session leased (`linerate.host.cores.leases`), so that no other lab uses these CPUs.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from linerate.host.cores import switches
from linerate.host.errors import BusyError, MachineError
from linerate.host.host import LOCAL, Host
from linerate.host.process import checkpoint
from linerate.host.sampler import Wanted

# The request of all CPUs' counters to `Host.sample`.
CPUS = Wanted(cpus=True)
# The most users of a CPU that are named before a run.
_MOST_NAMED = 3


def parse_list(text: str) -> list[int]:
    """Parse a kernel CPU list such as `0-2,5`."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def siblings(cpu: int, host: Host = LOCAL) -> set[int]:
    """The CPU and its hyperthread siblings."""
    path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    try:
        return {cpu, *parse_list(host.read_text(path))}
    except (OSError, ValueError):
        return {cpu}


def isolated(host: Host = LOCAL) -> set[int]:
    """Return the CPUs that the scheduler keeps free of processes that do not ask for them
    (isolcpus).
    """
    try:
        return set(parse_list(host.read_text("/sys/devices/system/cpu/isolated").strip()))
    except (OSError, ValueError):
        return set()


@dataclass(frozen=True)
class Cores:
    """`control` runs lab and generator; `forwarder` runs the forwarder and nothing else. `spare`:
    others, for forwarders with several lcores.
    """

    control: int
    forwarder: int
    shared_core: bool
    spare: tuple[int, ...] = ()

    def lcores(self, count: int, *, generator: bool = True) -> tuple[int, ...]:
        """Return the CPUs for a forwarder with `count` lcores; raise `MachineError` if too few.

        `generator`: the generator runs at the same time and keeps its CPU.
        """
        found = (self.forwarder, *self.spare, *(() if generator else (self.control,)))
        if count > len(found):
            raise MachineError(
                f"{count} lcores need as many CPUs"
                + (", beside the generator's" if generator else "")
                + f"; this process may use {len(found) + generator}",
                "give the machine, container or cpuset more CPUs"
                + (", or choose a link without a generator: --link null2" if generator else ""),
            )
        return found[:count]

    @classmethod
    def choose(cls) -> Cores:
        """Choose from the CPUs that this process may use."""
        return cls.among(LOCAL.cpus())

    @classmethod
    def among(cls, allowed: set[int]) -> Cores:
        """Choose from `allowed`. Isolated CPUs go to the forwarder first, then to the generator."""
        quiet = isolated()
        cpus = sorted(allowed, key=lambda cpu: (cpu in quiet, cpu))
        if len(cpus) < 2:
            raise MachineError(
                f"the lab needs two CPUs, one for the generator and one for the forwarder; "
                f"this process may use only CPU {cpus[0] if cpus else '-'}",
                "give the machine, container or cpuset a second CPU",
            )
        forwarder = cpus[-1]
        apart = [cpu for cpu in cpus if cpu not in siblings(forwarder)]
        control = min(apart or cpus[:1], key=lambda cpu: (cpu not in quiet, cpu))
        spare = tuple(cpu for cpu in reversed(cpus) if cpu not in (control, forwarder))
        return cls(control, forwarder, shared_core=not apart, spare=spare)


def busy_share(cpu: int, window_s: float = 0.3, host: Host = LOCAL) -> float:
    """Return the share of the window (0 to 1) in which something ran on the CPU."""
    before = host.sample(CPUS).cpus[cpu]
    time.sleep(window_s)
    after = host.sample(CPUS).cpus[cpu]
    busy, idle = after.busy - before.busy, after.idle - before.idle
    return busy / (busy + idle) if busy + idle else 0.0


def users(cpu: int, window_s: float = 0.3) -> list[str]:
    """Return the processes that use most of a CPU of this machine now, with their shares; empty if
    this user may not see them.
    """
    with switches.watched([cpu], lambda pid: pid == os.getpid()) as seen:
        time.sleep(window_s)
    shares = list(seen[cpu].others.items()) if seen else []
    return [f"{name} {share * 100:.0f} %" for name, share in shares[:_MOST_NAMED] if share > 0.01]


def pinned_to(cpu: int, host: Host = LOCAL) -> list[str]:
    """Names of user processes with a running thread that may run on this CPU only."""
    found: list[str] = []
    for stat in host.glob("/proc", "[0-9]*/task/[0-9]*/stat"):
        try:
            name, _, rest = host.read_text(stat).partition("(")[2].rpartition(")")
            running = rest.split()[0] == "R"
            if not running or int(stat.parts[2]) == os.getpid():
                continue
            status = host.read_text(stat.with_name("status"))
            # Kernel threads have no memory of their own.
            if "VmSize:" not in status:
                continue
            allowed = status.split("Cpus_allowed_list:", 1)[1].split("\n", 1)[0]
            if parse_list(allowed) == [cpu]:
                found.append(f"{name} (pid {stat.parts[2]})")
        except (OSError, IndexError, ValueError):
            continue  # it ended while we looked
    return sorted(set(found))


def ready(cores: Cores, host: Host = LOCAL, *, outweighs: bool = False) -> list[str]:
    """Wait until the forwarder's CPU is free; return remarks on the cores, one sentence each.

    Raises `BusyError` if another program keeps the CPU, unless the lab outweighs that program.
    """
    told = []
    if cores.shared_core:
        told.append(
            "generator and forwarder run on hyperthread siblings of one core: "
            "this machine allows no others"
        )
    if busy := await_free(cores.forwarder, host=host, outweighs=outweighs):
        told.append(busy)
    return told


def await_free(
    cpu: int, timeout_s: float = 30.0, host: Host = LOCAL, *, outweighs: bool = False
) -> str | None:
    """Wait until no other busy process is pinned to `cpu`. Returns a warning if load remains that
    the scheduler can move away, or that leaves nearly all of the CPU to the lab (`outweighs`).
    """
    deadline = time.monotonic() + timeout_s
    while True:
        checkpoint()
        share = busy_share(cpu, host=host)
        if share < 0.5:
            return None
        owners = pinned_to(cpu, host)
        now = time.monotonic()
        if not owners and now + timeout_s * 0.8 > deadline:
            # Unpinned load: the scheduler will move it away, as far as it can.
            who = ", ".join(users(cpu)) if host is LOCAL else ""
            return f"CPU {cpu} was {share * 100:.0f} % busy before the run{who and f', by {who}'}"
        if outweighs and now + timeout_s * 0.8 > deadline:
            return f"CPU {cpu} was {share * 100:.0f} % busy before the run, by {', '.join(owners)}"
        if now >= deadline:
            raise BusyError(
                f"CPU {cpu} is taken: {', '.join(owners) or 'unknown'} runs there, "
                f"and still did after {timeout_s:g} s",
                "stop it, keep it off this CPU (taskset -pc LIST PID), or start the lab as root, "
                "for it then has 100 times the weight",
            )
