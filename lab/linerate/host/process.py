# SPDX-License-Identifier: BSD-3-Clause
"""Processes and directories that the lab owns.

Lifecycle: a `RunDirectory` is private to one lab process and is removed with it; a `Child` lives
between `start` and `stop`. Both clean up on success, on errors and on SIGINT or SIGTERM. If the lab
itself is killed with SIGKILL the kernel kills its children (PR_SET_PDEATHSIG), and the next lab
removes the remaining directory. A lab locks (flock) its directory while it runs: other containers
that share /tmp can see the lock, but not its pid.

Threading: start children from the main thread only, because PR_SET_PDEATHSIG follows the thread
that forked.
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
# The directory of network namespaces named by `ip netns`.
NAMESPACES = Path("/run/netns")
_PREFIX = "linerate"
# The signals that end a child, and how long (s) to wait after each.
_ENDINGS = ((signal.SIGINT, 3.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))
# The most output of a child that is read at once, in bytes.
_MOST_HEARD = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
# System call numbers of sched_setattr(2), which the C library wraps only in new releases, and the
# shortest slice.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SHORTEST_NS = 100_000


def start_time(pid: int) -> int | None:
    """Return the start of a process in ticks after boot; None if there is no such process.

    Pid and start time together identify one process while the machine is up.
    """
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(told.rpartition(")")[2].split()[19])


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if there is no such process."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(told.rpartition(")")[2].split()[1])


def thread_states(pid: int) -> Iterator[str]:
    """Yield the state of each thread of a process, as the kernel writes it: R for one that runs or
    waits for a CPU. Empty if there is no such process.
    """
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            yield path.read_text().rpartition(")")[2].split()[0]


def stands_still(pid: int) -> bool:
    """Return True if all threads of a process are stopped, or there is no such process."""
    return all(state in "TtZX" for state in thread_states(pid))


def prefer_threads(pid: int, name: str) -> None:
    """Let the threads of this name run soon after they wake on a contended CPU: request the
    shortest slice of the scheduler (EEVDF). No effect before Linux 6.12, which has no such request.
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
    """Return the directory in which run directories are made."""
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
    """Remove run directories of labs that no longer run; return their paths."""
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
    """Kill the processes that a dead lab's children had started: only the children themselves are
    killed by the kernel or the lab.
    """
    for pid in _processes_of(path):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _processes_of(path: Path) -> Iterator[int]:
    """Yield the processes that have the environment of a run directory
    (`RunDirectory.environment`).
    """
    for found in Path("/proc").glob("[0-9]*"):
        if _is_of(int(found.name), path):
            yield int(found.name)


def _is_of(pid: int, path: Path) -> bool:
    """Return True if a process has the environment of a run directory."""
    return f"RUNTIME_DIRECTORY={path}".encode() in _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    """Return the environment of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def started_for(path: Path, prefix: str) -> list[int]:
    """Return the processes that have the environment of a run directory and this file prefix on
    their command lines, whoever started them: a script, a container engine.
    """
    found = []
    for pid in _processes_of(path):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if prefix.encode() in re.split(rb"[\0=/]", words):
                found.append(pid)
    return found


def _without_process(path: Path) -> bool:
    """Return True if the lab of this directory is not visible here: it ended, or is in another
    container.
    """
    try:
        pid, started = (int(part) for part in path.name.split("-")[2:4])
    except ValueError:
        return False
    found = path.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return ours and start_time(pid) != started


def _make_locked(base: Path) -> tuple[Path, int]:
    """Make a directory of this process and return it with the lock on it."""
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
        """Return True if a process is this lab or works for it: it has the environment of this
        directory, or was noted by `started` (even if it has ended).
        """
        if pid == os.getpid() or _is_of(pid, self.path):
            return True
        # Another process may have its pid by now.
        return pid in self._started and start_time(pid) in {None, self._started[pid]}

    def started(self, pid: int) -> None:
        """Note a process that the lab started here."""
        self._started[pid] = start_time(pid)

    def new_prefix(self, role: str) -> str:
        """Return a file prefix that no other program on this machine uses."""
        self._prefixes += 1
        return f"lr-{os.getpid()}-{role[:3]}{self._prefixes}"

    def environment(self) -> dict[str, str]:
        """Return the environment for children: EAL puts its run-time files below this directory.

        EAL reads XDG_RUNTIME_DIR when it is not root, and RUNTIME_DIRECTORY always.
        """
        return {
            **os.environ,
            "XDG_RUNTIME_DIR": str(self.path),
            "RUNTIME_DIRECTORY": str(self.path),
        }


@dataclass(frozen=True)
class Command:
    """A child's command and its CPUs; the `Host` that starts it decides where it runs."""

    role: str
    argv: tuple[str, ...]
    cpus: tuple[int, ...]
    environment: dict[str, str] = field(default_factory=dict)
    # The child reads end-of-file from its standard input, unless this holds it open.
    hold_stdin: bool = False
    # The lab reads its standard output; only its errors go to its log.
    answers: bool = False
    # The directory that it starts in; None: the run directory.
    directory: Path | None = None
    # The signal that asks it to end, and how long it is waited for then; None: SIGINT.
    ending: tuple[signal.Signals, float] | None = None


def wait_until(
    ready: Callable[[], object], alive: Callable[[], None], timeout_s: float, otherwise: str
) -> None:
    """Poll until a link is ready; `alive` raises if waiting is useless."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        alive()
        if time.monotonic() >= deadline:
            raise LinkError(f"{otherwise} within {timeout_s:g} s")
        time.sleep(0.01)


class Child:
    """A process that the lab starts, pins and ends. `Host.start` makes them."""

    def __init__(self, command: Command, run: RunDirectory, namespace: str | None = None) -> None:
        """Start the process. `namespace`: the network namespace that it starts in; None: the
        lab's.
        """
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
        """Return the end of the child's output."""
        try:
            return self.log.read_bytes()[-limit:].decode(errors="replace")
        except OSError:
            return ""

    @property
    def last_words(self) -> str:
        """The end of the child's output on one line."""
        return last_words(self.output())

    def tell(self, line: str) -> None:
        """Write a line to the standard input of a child that holds it open."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(f"{line}\n".encode())
            self._popen.stdin.flush()
        except BrokenPipeError:
            self.check()
            raise

    def answer(self, timeout_s: float) -> str:
        """Return the next line of a child that answers; raises `ProcessError` if none comes in
        time.
        """
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
        """Enlarge the output pipe of a child that answers to a megabyte, if this user may."""
        assert self._popen.stdout is not None
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._popen.stdout, fcntl.F_SETPIPE_SZ, _MOST_HEARD)

    def hear(self, timeout_s: float = 0.0) -> bytes:
        """Return the output of a child that answers since the last read; wait up to `timeout_s` for
        some.

        Empty if none came in time, or if its output is closed.
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
        """Raise if the child has ended, or if the lab should end: called wherever the lab waits."""
        checkpoint()
        code = self._code()
        if code is None:
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        # A killed process has no last words, but a panic ends its own process by SIGABRT.
        said = last_words(self.output()) if code >= 0 or code == -signal.SIGABRT else ""
        raise ProcessError(f"{self.command.role} {how}{said and f': {said}'}")

    def wait_until(self, ready: Callable[[], object], timeout_s: float, otherwise: str) -> None:
        """Poll until the child's link is ready; raises `LinkError` if it is not in time."""
        wait_until(ready, self.check, timeout_s, otherwise)

    def wait(self, timeout_s: float) -> bool:
        """Return True if the child ended within the time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def ask_to_end(self) -> None:
        """Send the signal that asks the child to end, without waiting: `stop` waits."""
        own = self.command.ending
        self._signal(own[0] if own else _ENDINGS[0][0])
        self._close_stdin()

    def _close_stdin(self) -> None:
        """Close the child's standard input: after a signal, testpmd still waits for the end of its
        commands.
        """
        if self._popen.stdin:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def freeze(self) -> None:
        """Stop the child and the processes it started; `stands_still` returns True once they
        have.
        """
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the child's process group, because a script does not pass it on to its
        children. No other group can have its number until `stop` reaps it.
        """
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _code(self) -> int | None:
        """Return its exit code (negative: a signal's number), or None while it runs. Does not reap
        it.
        """
        if self._popen.returncode is not None:
            return self._popen.returncode
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        found = os.waitid(os.P_PIDFD, self._pidfd, look)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def stop(self) -> int:
        """End the child in bounded time; return its exit code (negative: the signal's number)."""
        # A stopped process only handles SIGKILL.
        self.thaw()
        if self.running:
            own = self.command.ending
            for number, patience_s in (own, *_ENDINGS[1:]) if own else _ENDINGS:
                self._signal(number)
                self._close_stdin()
                if self.wait(patience_s):
                    break
        # Processes that it started and did not end.
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
        """Reap the child, on a CPU that none of its threads used, if there is one.

        Threads still clean up in the kernel when their process can be reaped, and the process that
        reaps it waits for them without giving up its CPU (Linux 6.18, shrink_dcache_parent). On
        their own CPU, if other processes want it as well, that took minutes, in which nothing else
        ran there.
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
        """Return the scheduler's counters of the process that does the work, on its host."""
        return sampler.take(Wanted(pids=(self.working_pid,))).processes[self.working_pid]

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def ended_with() -> Iterator[Callable[[int], None]]:
    """Yield a function that notes a process that a child started, perhaps in a session of its own.
    Noted processes that still run when the context ends are killed.
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
    """The first signal that asked the lab to end. The handler only stores it: an exception raised
    in a handler can appear anywhere, also where Python drops it (in a fork hook, in __del__).
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
    """Sleep without waking up, so that measurements are not disturbed; a signal ends the sleep."""
    until = time.monotonic() + seconds
    while (rest := until - time.monotonic()) > 0:
        checkpoint()
        if _Signals.arrivals is None:
            time.sleep(rest)
        elif select.select([_Signals.arrivals], [], [], rest)[0]:
            # Other handlers have run by now.
            os.read(_Signals.arrivals, 512)
    checkpoint()


def await_end(pids: Iterable[int], timeout_s: float) -> None:
    """Sleep until one of these processes ends (of any owner), the time is over, or a signal
    arrives. Ignores processes that have ended already.
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
    """Let these signals end the lab at its next `checkpoint`, so that it can clean up first."""

    def note(number: int, frame: FrameType | None) -> None:
        if _Signals.received is None:
            _Signals.received = number

    # Signals that the caller ignores, as nohup does SIGHUP, stay ignored.
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
