# SPDX-License-Identifier: BSD-3-Clause
"""Processes and directories that the lab owns.

Lifecycle: a `RunDirectory` is private to one lab process and vanishes with it; a `Child` lives
between `start` and `stop`. Both clean up on success, on errors and on SIGINT or SIGTERM. If the lab
itself is killed with SIGKILL the kernel kills its children (PR_SET_PDEATHSIG), and the next lab
removes the directory that stayed behind. A lab holds a lock (flock) on its own for as long as it
runs: that is seen from other containers, too, which share /tmp and cannot see its pid.

Threading: start children from the main thread only, for PR_SET_PDEATHSIG follows the thread that
forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from linerate.host import sampler
from linerate.host.errors import Interrupted, LinkError, MachineError, MissingError, ProcessError
from linerate.host.locks import hold, is_held
from linerate.host.sampler import Activity, Wanted
from linerate.host.text import last_words

PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
# Where `ip netns` names network namespaces.
NAMESPACES = Path("/run/netns")
_PREFIX = "linerate"
# What ends a child, and how long each is waited for.
_ENDINGS = ((signal.SIGINT, 3.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))
# Of what a child printed, in bytes, that is read at once.
_MOST_HEARD = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers of sched_setattr(2), which C's library wraps only of late, and the slice of at least.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SHORTEST_NS = 100_000


def start_time(pid: int) -> int | None:
    """Start of a process in ticks after boot; None when there is no such process.

    Pid and start time together name one process for as long as the machine is up.
    """
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(told.rpartition(")")[2].split()[19])


def parent_of(pid: int) -> int | None:
    """The process that started it, or took it over; None when there is no such process."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(told.rpartition(")")[2].split()[1])


def thread_states(pid: int) -> Iterator[str]:
    """The state of each thread of a process, as the kernel writes it: R for one that runs or waits
    for a CPU. Nothing when there is no such process.
    """
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            yield path.read_text().rpartition(")")[2].split()[0]


def stands_still(pid: int) -> bool:
    """Whether all threads of a process are stopped, or there is no such process."""
    return all(state in "TtZX" for state in thread_states(pid))


def prefer_threads(pid: int, name: str) -> None:
    """Let the threads of this name run soon after they wake, where others want their CPU as well:
    they ask for the shortest slice of the scheduler (EEVDF). Changes nothing before Linux 6.12,
    which knows no such wish.
    """
    call = _SCHED_SETATTR.get(platform.machine())
    for path in Path(f"/proc/{pid}/task").glob("*") if call else ():
        with contextlib.suppress(OSError):
            thread = int(path.name)
            if (path / "comm").read_text().strip() != name:
                continue
            if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                nice = os.getpriority(os.PRIO_PROCESS, thread)
                # struct sched_attr: size, policy, flags, nice, priority, runtime, and two more.
                wish = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SHORTEST_NS, 0, 0)
                _LIBC.syscall(call, thread, wish, 0)


def base_directory() -> Path:
    """Where run directories are made."""
    for candidate in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir()):
        # Sockets go below: leave them room (sun_path holds 108 bytes).
        if candidate and len(candidate) < 40 and os.access(candidate, os.W_OK | os.X_OK):
            return Path(candidate)
    return Path("/tmp")


def stale() -> list[Path]:
    """The run directories of this user's labs that no longer run, as they are."""
    found = []
    for path in base_directory().glob(f"{_PREFIX}-{os.getuid()}-*"):
        with contextlib.suppress(OSError):
            if _without_process(path) and not is_held(path, os.O_DIRECTORY):
                found.append(path)
    return found


def remove_stale(base: Path | None = None) -> list[Path]:
    """Remove run directories of labs that no longer run; returns what was removed."""
    removed = []
    base = base_directory() if base is None else base
    for path in base.glob(f"{_PREFIX}-{os.getuid()}-*"):
        # Its owner may remove it at any moment.
        with contextlib.suppress(OSError):
            if _without_process(path) and (lock := hold(path, os.O_DIRECTORY)) is not None:
                _end_orphans(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
                removed.append(path)
    return removed


def _end_orphans(path: Path) -> None:
    """What a lab's children had started: their ends, by the kernel or the lab, are theirs alone."""
    for pid in _processes_of(path):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _processes_of(path: Path) -> Iterator[int]:
    """Those that have the environment of a run directory (`RunDirectory.environment`)."""
    for found in Path("/proc").glob("[0-9]*"):
        if _is_of(int(found.name), path):
            yield int(found.name)


def _is_of(pid: int, path: Path) -> bool:
    """Whether a process has the environment of a run directory."""
    return f"RUNTIME_DIRECTORY={path}".encode() in _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    """Empty of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def started_for(path: Path, prefix: str) -> list[int]:
    """The processes with the environment of a run directory and with this file prefix on their
    command lines, whoever started them: a script, a container engine.
    """
    found = []
    for pid in _processes_of(path):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if prefix.encode() in re.split(rb"[\0=/]", words):
                found.append(pid)
    return found


def _without_process(path: Path) -> bool:
    """Whether this is a lab's whose process is not here: it ended, or is in another container."""
    try:
        pid, started = (int(part) for part in path.name.split("-")[2:4])
    except ValueError:
        return False
    found = path.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return ours and start_time(pid) != started


def _make_locked(base: Path) -> tuple[Path, int]:
    """A directory of this process, and the lock on it."""
    pid = os.getpid()
    stem = f"{_PREFIX}-{os.getuid()}-{pid}-{start_time(pid)}"
    path = base / stem
    while True:
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            path = Path(tempfile.mkdtemp(prefix=f"{stem}-", dir=base))
        # A lab in another container may remove it before it is locked.
        if (lock := hold(path, os.O_DIRECTORY)) is not None:
            return path, lock


class RunDirectory:
    """A directory (mode 0700) for sockets and logs of one lab process."""

    def __init__(self, base: Path | None = None) -> None:
        base = base_directory() if base is None else base
        remove_stale(base)
        try:
            self.path, self._lock = _make_locked(base)
        except OSError as error:
            raise MachineError(
                f"cannot make a run directory in {base}: {error.strerror}",
                "free some space there, or set TMPDIR to another directory",
            ) from error
        self._prefixes = 0
        self._started: dict[int, int | None] = {}

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # A program that left its process group outlives the child that started it.
        _end_orphans(self.path)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def owns(self, pid: int) -> bool:
        """Whether a process is this lab, or works for it: it was started with the environment of
        this directory, or is one of those that are noted (`started`), also when it has ended.
        """
        if pid == os.getpid() or _is_of(pid, self.path):
            return True
        # Its pid may be another's by now.
        return pid in self._started and start_time(pid) in {None, self._started[pid]}

    def started(self, pid: int) -> None:
        """Note a process that the lab started here."""
        self._started[pid] = start_time(pid)

    def new_prefix(self, role: str) -> str:
        """A file prefix that no other program on this machine uses."""
        self._prefixes += 1
        return f"lr-{os.getpid()}-{role[:3]}{self._prefixes}"

    def environment(self) -> dict[str, str]:
        """Environment for children: EAL puts its run-time files below this directory.

        EAL reads XDG_RUNTIME_DIR when it is not root, and RUNTIME_DIRECTORY always.
        """
        return {
            **os.environ,
            "XDG_RUNTIME_DIR": str(self.path),
            "RUNTIME_DIRECTORY": str(self.path),
        }


@dataclass(frozen=True)
class Command:
    """What a child runs, and on which CPUs; the `Host` that starts it says where."""

    role: str
    argv: tuple[str, ...]
    cpus: tuple[int, ...]
    environment: dict[str, str] = field(default_factory=dict)
    # The child reads end-of-file from its standard input, unless this holds it open.
    hold_stdin: bool = False
    # What it prints on standard output is for the lab to read; only its errors go to its log.
    answers: bool = False
    # The directory that it starts in; None: the run directory.
    directory: Path | None = None
    # The signal that asks it to end, and how long it is waited for then; None: SIGINT.
    ending: tuple[signal.Signals, float] | None = None


def wait_until(
    ready: Callable[[], object], alive: Callable[[], None], timeout_s: float, otherwise: str
) -> None:
    """Look until a link is ready; `alive` raises when waiting is in vain."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        alive()
        if time.monotonic() >= deadline:
            raise LinkError(f"{otherwise} within {timeout_s:g} s")
        time.sleep(0.01)


class Child:
    """A process that the lab started, pinned, and will end. `Host.start` makes them."""

    def __init__(self, command: Command, run: RunDirectory, namespace: str | None = None) -> None:
        """`namespace`: the network namespace that it starts in; None: the lab's."""
        self.command = command
        stem = f"{command.role}-{time.monotonic_ns()}"
        self.log = run.path / f"{stem}.log"
        # A program may make files where it starts, and the next one must not find them.
        self._own = None if command.directory else run.path / stem
        self._unread = b""
        parent = os.getpid()
        cpus = set(command.cpus)

        def in_child() -> None:
            _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(127)  # the lab died between fork and prctl
            os.sched_setaffinity(0, cpus)
            if entered and _LIBC.setns(entered.fileno(), CLONE_NEWNET):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))

        try:
            if self._own:
                self._own.mkdir(mode=0o700)
            with contextlib.ExitStack() as opened:
                log = opened.enter_context(self.log.open("wb"))
                entered = namespace and opened.enter_context((NAMESPACES / namespace).open("rb"))
                self._popen = subprocess.Popen(
                    command.argv,
                    stdin=subprocess.PIPE if command.hold_stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if command.answers else log,
                    stderr=log,
                    env={**run.environment(), **command.environment},
                    cwd=command.directory or self._own,
                    process_group=0,
                    preexec_fn=in_child,  # noqa: PLW1509 - the lab forks from its main thread
                )
        except FileNotFoundError as error:
            if namespace and not (NAMESPACES / namespace).exists():
                raise LinkError(f"the network namespace {namespace} is gone") from error
            raise MissingError(f"{command.argv[0]} is not there", "make build") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise ProcessError(f"cannot start {command.argv[0]}: {error}") from error
        self.pid = self._popen.pid
        run.started(self.pid)
        self._pidfd = os.pidfd_open(self.pid)
        # The process that does the work, where this one only started it: a script, or the client of
        # a container engine. Who knows it says so.
        self.working_pid = self.pid

    def output(self, limit: int = 16000) -> str:
        """The end of what the child printed."""
        try:
            return self.log.read_bytes()[-limit:].decode(errors="replace")
        except OSError:
            return ""

    @property
    def last_words(self) -> str:
        """The end of what it printed, on one line."""
        return last_words(self.output())

    def tell(self, line: str) -> None:
        """Type a line into a child whose standard input is held open."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(f"{line}\n".encode())
            self._popen.stdin.flush()
        except BrokenPipeError:
            self.check()
            raise

    def answer(self, timeout_s: float) -> str:
        """The next line of a child that answers; raises `ProcessError` when none comes in time."""
        assert self._popen.stdout is not None
        descriptor = self._popen.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise ProcessError(f"{self.command.role} gave no answer within {timeout_s:g} s")
            if not select.select([descriptor], [], [], min(rest, 0.2))[0]:
                checkpoint()
                continue
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                self.wait(1.0)
                self.check()
                raise ProcessError(f"{self.command.role} closed its standard output")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    def widen_output(self) -> None:
        """Let a child that answers print up to a megabyte that nobody has read yet, if allowed."""
        assert self._popen.stdout is not None
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._popen.stdout, fcntl.F_SETPIPE_SZ, _MOST_HEARD)

    def hear(self, timeout_s: float = 0.0) -> bytes:
        """What a child that answers printed since it was last read; waits so long for some.

        Nothing: none came in time, or its output is closed.
        """
        assert self._popen.stdout is not None
        descriptor = self._popen.stdout.fileno()
        heard, self._unread = self._unread, b""
        while len(heard) < _MOST_HEARD:
            if not select.select([descriptor], [], [], 0 if heard else timeout_s)[0]:
                break
            if not (chunk := os.read(descriptor, 1 << 16)):
                break
            heard += chunk
        return heard

    @property
    def running(self) -> bool:
        return self._code() is None

    def check(self) -> None:
        """Raise when the child has ended, or the lab should: called wherever the lab waits."""
        checkpoint()
        code = self._code()
        if code is None:
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        # Who was killed had no say in it, but a panic ends its own process by SIGABRT.
        said = last_words(self.output()) if code >= 0 or code == -signal.SIGABRT else ""
        raise ProcessError(f"{self.command.role} {how}{said and f': {said}'}")

    def wait_until(self, ready: Callable[[], object], timeout_s: float, otherwise: str) -> None:
        """Look until the child's link is ready; raises `LinkError` when it is not in time."""
        wait_until(ready, self.check, timeout_s, otherwise)

    def wait(self, timeout_s: float) -> bool:
        """True when the child ended within the time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def ask_to_end(self) -> None:
        """Send the signal that asks it to end, and wait for nothing: `stop` does."""
        own = self.command.ending
        self._signal(own[0] if own else _ENDINGS[0][0])
        self._close_stdin()

    def _close_stdin(self) -> None:
        """After a signal that it noted, testpmd still waits for the end of its commands."""
        if self._popen.stdin:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def freeze(self) -> None:
        """Stop it, and what it started; `stands_still` tells when it has."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """To all of its process group, for a script does not tell its own children. Until it is
        reaped, in `stop`, no other group can have its number.
        """
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _code(self) -> int | None:
        """Its exit code, below 0 a signal's number; None while it runs. Leaves it to be reaped."""
        if self._popen.returncode is not None:
            return self._popen.returncode
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        found = os.waitid(os.P_PIDFD, self._pidfd, look)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def stop(self) -> int:
        """End the child in bounded time; returns its exit code (negative: the signal)."""
        # Who stands still hears no signal but SIGKILL.
        self.thaw()
        if self.running:
            own = self.command.ending
            for number, patience_s in (own, *_ENDINGS[1:]) if own else _ENDINGS:
                self._signal(number)
                self._close_stdin()
                if self.wait(patience_s):
                    break
        # What it started and did not end.
        self._signal(signal.SIGKILL)
        code = self._reap()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._close_stdin()
        if self._popen.stdout:
            with contextlib.suppress(OSError):
                self._popen.stdout.close()
        with contextlib.suppress(OSError):
            self.log.unlink()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
        return -signal.SIGKILL if code is None else code

    def _reap(self) -> int | None:
        """On a CPU that none of its threads was given, if there is one.

        Threads still clean up in the kernel when their process can be reaped, and who reaps it
        waits for them without letting go of the CPU (Linux 6.18, shrink_dcache_parent). On their
        own CPU, which others want as well, that took minutes, in which nothing else ran there.
        """
        usual = os.sched_getaffinity(0)
        elsewhere = set(range(os.cpu_count() or 1)) - set(self.command.cpus)
        try:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, elsewhere)
            return self._popen.poll()
        finally:
            os.sched_setaffinity(0, usual)

    def activity(self) -> Activity:
        """What the scheduler counted so far of the process that does the work, where it runs."""
        return sampler.take(Wanted(pids=(self.working_pid,))).processes[self.working_pid]

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def ended_with() -> Iterator[Callable[[int], None]]:
    """A function that notes a process, which a child started, perhaps in a session of its own. Who
    still runs when the context ends is killed.
    """
    with contextlib.ExitStack() as opened:

        def note(pid: int) -> None:
            with contextlib.suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                opened.callback(os.close, pidfd)
                opened.callback(_kill, pidfd)

        yield note


def _kill(pidfd: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


class _Signals:
    """The first signal that asked the lab to end. The handler only notes it: an exception raised
    from a handler can surface anywhere, also where Python drops it (in a fork hook, in __del__).
    """

    received: int | None = None
    # Becomes readable when a signal arrives.
    arrivals: int | None = None


def checkpoint() -> None:
    """Raise `Interrupted` when a signal has asked the lab to end. Called wherever the lab waits."""
    number = _Signals.received
    if number is not None:
        raise Interrupted(number)


def pause(seconds: float) -> None:
    """Sleep in one piece, as nothing that is measured must be disturbed; a signal ends it."""
    until = time.monotonic() + seconds
    while (rest := until - time.monotonic()) > 0:
        checkpoint()
        if _Signals.arrivals is None:
            time.sleep(rest)
        elif select.select([_Signals.arrivals], [], [], rest)[0]:
            # Whoever else had a signal has been told by now.
            os.read(_Signals.arrivals, 512)
    checkpoint()


def await_end(pids: Iterable[int], timeout_s: float) -> None:
    """Sleep until one of these processes ends, whoever's they are, or the time is over; a signal
    ends it, too. One that is gone already is not waited for.
    """
    with contextlib.ExitStack() as opened:
        watched = [] if _Signals.arrivals is None else [_Signals.arrivals]
        for pid in pids:
            with contextlib.suppress(OSError):
                watched.append(os.pidfd_open(pid))
                opened.callback(os.close, watched[-1])
        checkpoint()
        if _Signals.arrivals in select.select(watched, [], [], timeout_s)[0]:
            assert _Signals.arrivals is not None
            os.read(_Signals.arrivals, 512)
    checkpoint()


@contextlib.contextmanager
def interruptible(
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
) -> Iterator[None]:
    """Let these signals end the lab at its next `checkpoint`, so that it cleans up undisturbed."""

    def note(number: int, frame: FrameType | None) -> None:
        if _Signals.received is None:
            _Signals.received = number

    # What the caller ignores, as nohup does SIGHUP, stays ignored.
    heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    arrivals, announce = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    woken = signal.set_wakeup_fd(announce, warn_on_full_buffer=False)
    _Signals.arrivals = arrivals
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield
        checkpoint()
    finally:
        _Signals.received = _Signals.arrivals = None
        signal.set_wakeup_fd(woken)
        os.close(arrivals)
        os.close(announce)
        for number, handler in before.items():
            signal.signal(number, handler)
