# SPDX-License-Identifier: BSD-3-Clause
"""Leases of CPUs: two labs on one machine never measure on the same core.

Each CPU has a lock file, and a lab holds a lock (flock) on those of its CPUs and of their
hyperthread siblings. The generator's CPU is leased like the forwarder's: a generator that waits for
its CPU sends late.

Lifecycle: `leased` takes all locks that it needs or none, waits in a queue (`lease_queue.py`) while
it cannot, and restricts the calling thread to these CPUs, so that `Cores.choose` chooses from them.
They are free again when its context ends. The kernel frees them when the lab ends in any other way:
the descriptors are closed on exec, so no child keeps them. Children of a killed lab may run for
some milliseconds more; `cpus.await_free` waits for that.

Users: the files are in the first of `PLACES` that all users may write to and in which no user can
remove another's file (sticky bit). The choice depends on the machine only, so that all labs agree.
Files are empty, readable by all, and are never removed. The lab never writes to them, truncates
them or follows a symbolic link: whatever another user puts at such a path, a lab run by root only
locks it. Any user can hold a lock, but `lock_holders.py` shows who does.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from linerate.host import locks
from linerate.host.cores.cpus import Cores, siblings
from linerate.host.cores.lease_queue import FLAGS, Ticket
from linerate.host.cores.lock_holders import Holder, holder
from linerate.host.errors import BusyError, MachineError
from linerate.host.foreign import user_name
from linerate.host.process import await_end, pause

PLACES = (Path("/run/lock"), Path("/tmp"))
PATIENCE_S = 24 * 3600.0
# A waiting lab is woken by the end of the process that it waits for; otherwise it checks rarely, to
# disturb no measurement.
_LOOK_S = 10.0
_AT_LEAST_S = 0.1
# A waiting lab repeats its message at this interval.
_REPEAT_S = 60.0
# Labs that choose at the same moment see each other's attempts: these are not worth a message.
_RETRY_S = 0.01
_MOST_NAMED = 3


@contextmanager
def leased(
    count: int = 2, say: Callable[[str], None] | None = None, patience_s: float = PATIENCE_S
) -> Iterator[None]:
    """Lease `count` CPUs (fewer if fewer are allowed), and restrict the calling thread to them.

    Waits while other labs hold too many of them. Calls `say` (default: print on standard error)
    with the holders when the wait begins, when they change, and every minute. Raises `BusyError` if
    the CPUs are not free in time.
    """
    allowed = os.sched_getaffinity(0)
    held: dict[int, int] = {}
    try:
        held = _wait(allowed, count, say or _to_stderr, patience_s)
        os.sched_setaffinity(0, allowed & held.keys())
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        _release(held)


def holders(cpus: Iterable[int]) -> dict[int, Holder]:
    """Return the holder of each leased CPU among `cpus`. Raises `MachineError`."""
    return {cpu: holder(_path(cpu)) for cpu in sorted(cpus) if _is_leased(cpu)}


def described(found: Mapping[int, Holder]) -> str:
    """Format holders: `CPUs 0 and 1: pid 42 (linerate run overload, user root)`."""
    by_holder: dict[Holder, list[int]] = {}
    for cpu, who in found.items():
        by_holder.setdefault(who, []).append(cpu)
    return "; ".join(f"{_named(cpus)}: {who}" for who, cpus in by_holder.items())


def choice(allowed: set[int], free: set[int], count: int) -> set[int] | None:
    """Return the CPUs to lease, in whole cores, or None if too few are free.

    A session never gets worse cores than it would on an idle machine: generator and forwarder share
    a core only if no other CPUs are allowed.
    """
    usable = {cpu for cpu in allowed if siblings(cpu) <= free}
    if len(allowed) < 2:
        return allowed if allowed <= usable else None
    if len(usable) < min(count, len(allowed)):
        return None
    cores = Cores.among(usable)
    if cores.shared_core and not Cores.among(allowed).shared_core:
        return None
    chosen = {cores.control, cores.forwarder}
    chosen.update(sorted(usable - chosen)[: count - 2])
    return _whole_cores(chosen)


def _whole_cores(cpus: Iterable[int]) -> set[int]:
    return {each for cpu in cpus for each in siblings(cpu)}


def _take(allowed: set[int], count: int) -> dict[int, int] | None:
    """Take locks and return their descriptors by CPU; None if there are not enough CPUs now."""
    cpus = _whole_cores(allowed)
    chosen = choice(allowed, {cpu for cpu in cpus if not _is_leased(cpu)}, count)
    if chosen is None:
        return None
    held: dict[int, int] = {}
    try:
        for cpu in sorted(chosen):
            lock = _hold(cpu)
            if lock is None:
                _release(held)
                return None
            held[cpu] = lock
    except BaseException:
        _release(held)
        raise
    return held


def _release(held: dict[int, int]) -> None:
    for lock in held.values():
        os.close(lock)
    held.clear()


def _wait(
    allowed: set[int], count: int, say: Callable[[str], None], patience_s: float
) -> dict[int, int]:
    """Stand in the queue until there are enough CPUs; return the same as `_take`."""
    began = time.monotonic()
    told, told_at = "", began
    with Ticket(_place(), _whole_cores(allowed)) as ticket:
        if not ticket.ahead() and (held := _take(allowed, count)) is not None:
            return held
        if len(allowed) >= 2:
            # Wait on another CPU than that of a measured forwarder.
            os.sched_setaffinity(0, {Cores.among(allowed).control})
        while True:
            waited = time.monotonic() - began
            pause(_RETRY_S if waited < locks.PATIENCE_S else _AT_LEAST_S)
            ahead = ticket.ahead()
            if not ahead and (held := _take(allowed, count)) is not None:
                return held
            if waited < locks.PATIENCE_S:
                continue
            # A lab that is not the first takes no lock to check: that could make the first one
            # fail.
            found = _seen(_whole_cores(allowed)) if ahead else holders(_whole_cores(allowed))
            who = described(found)
            if waited >= patience_s:
                raise BusyError(
                    f"too few CPUs are free, and still were after {_time(patience_s)}; "
                    f"{_whom(who, ahead)}",
                    "wait until that ends, or end it: kill PID",
                )
            now = f"{who} {len(ahead) or ''}".strip()
            if (now and now != told) or waited + began - told_at >= _REPEAT_S:
                since = f"for {_time(waited)} " if told else ""
                say(
                    f"waiting {since}for free CPUs, at most {_time(patience_s)} (Ctrl-C stops); "
                    f"{_whom(who, ahead)}"
                )
                told, told_at = now, waited + began
            waits_for = ahead or found.values()
            pids = {each.pid for each in waits_for if each.pid is not None}
            await_end(pids, min(_LOOK_S, patience_s - waited) if waits_for else 0)


def _seen(cpus: Iterable[int]) -> dict[int, Holder]:
    """Return the visible holders, like `holders`, but without a lock."""
    found = {cpu: holder(_path(cpu)) for cpu in sorted(cpus)}
    return {cpu: each for cpu, each in found.items() if each.pid is not None}


def _whom(have: str, ahead: list[Holder]) -> str:
    """Describe who holds the CPUs, and which labs are ahead in the queue."""
    first = "; ".join(map(str, ahead[:_MOST_NAMED]))
    more = f" and {len(ahead) - _MOST_NAMED} more" if len(ahead) > _MOST_NAMED else ""
    queue = f"before this one in the queue: {first}{more}" if ahead else ""
    return "; ".join(filter(None, [have, queue])) or "others take them in turn"


def _time(seconds: float) -> str:
    """Format a time as `45 s`, `10 min`, `24 h`; otherwise rounded to the second."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit and round(seconds) % unit == 0:
            return f"{round(seconds) // unit} {name}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:g} s"


def _to_stderr(line: str) -> None:
    print(f"linerate: {line}", file=sys.stderr, flush=True)


def _named(cpus: list[int]) -> str:
    *others, last = map(str, cpus)
    return f"CPUs {', '.join(others)} and {last}" if others else f"CPU {last}"


# -- lock files --------------------------------------------------------------------------------


def _path(cpu: int) -> Path:
    return _place() / f"linerate-cpu-{cpu}"


def _place() -> Path:
    """Return the directory of the lock files, the same for all users."""
    shared = stat.S_IFDIR | stat.S_ISVTX | stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO
    for place in PLACES:
        with suppress(OSError):
            if place.stat().st_mode & shared == shared:
                return place
    return PLACES[-1]


def _is_leased(cpu: int) -> bool:
    path = _path(cpu)
    try:
        _check(path)
        # Alone, not shared: a shared lock of somebody else is in the way, too.
        lock = locks.hold(path, FLAGS)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unfit(path, error.strerror) from error
    if lock is not None:
        os.close(lock)
    return lock is None and path.exists()


def _hold(cpu: int) -> int | None:
    path = _path(cpu)
    try:
        _make(path)
        _check(path)
        return locks.hold(path, FLAGS)
    except OSError as error:
        raise _unfit(path, error.strerror) from error


def _make(path: Path) -> None:
    """Make the file if it does not exist. Kernels refuse O_CREAT on another user's file, so open
    existing files without it.
    """
    before = os.umask(0)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    except FileExistsError:
        pass
    finally:
        os.umask(before)


def _check(path: Path) -> None:
    """Raise a clear message for anything but a regular file. O_NOFOLLOW protects the later open in
    any case.
    """
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise _unfit(path, f"is {kind}")


def _unfit(path: Path, why: str | None) -> MachineError:
    owner = ""
    with suppress(OSError):
        owner = f", of user {user_name(path.lstat().st_uid)}"
    return MachineError(
        f"{path}{owner}: {why}; it has to be a file that shows whether a lab uses this CPU",
        f"remove it: sudo rm -r {path}",
    )
