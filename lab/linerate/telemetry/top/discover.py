# SPDX-License-Identifier: BSD-3-Clause
"""Find the DPDK programs that run here, by the telemetry sockets that are listened on.

EAL puts its socket into DIRECTORY/dpdk/PREFIX, where DIRECTORY is $RUNTIME_DIRECTORY, else /var/run
for root and $XDG_RUNTIME_DIR or /tmp for others. A second program with the same prefix (they may be
--in-memory) gets `:1` after the socket's name, a third `:2`. The kernel's list of listening sockets
adds those in other directories: a run of the lab, a service with a RuntimeDirectory.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.host.errors import MissingError, TelemetryError, UsageError
from linerate.host.foreign import is_trusted, user_name
from linerate.host.host import LOCAL, Host
from linerate.host.text import printable
from linerate.telemetry.client import SOCKET_NAME, Telemetry

# The flag of a listening socket: __SO_ACCEPTCON.
_LISTENS = 0x10000
_ANSWER_WITHIN_S = 1.0
_MOST_ASKED = 256
_NAME = re.compile(re.escape(SOCKET_NAME) + r"(:[0-9]+)?")


@dataclass(frozen=True)
class Program:
    """A program that answers. `prefix`: its file prefix, with `:1` for a second one of the same.

    `user`: its name, if it is neither root nor the caller.
    """

    prefix: str
    socket: Path
    pid: int
    name: str
    user: str | None = None

    def __str__(self) -> str:
        of = f", user {self.user}" if self.user else ""
        return printable(f"{self.prefix} (pid {self.pid}, {self.name}{of})")


@dataclass(frozen=True)
class Found:
    """Programs that answer, and sockets that listen but were not asked or did not answer.

    `forbidden`: programs that this user may not ask. `foreign`: programs of another user, which
    were not asked because they were not named.
    """

    programs: tuple[Program, ...]
    forbidden: tuple[Path, ...] = ()
    silent: tuple[Path, ...] = ()
    foreign: tuple[Path, ...] = ()


def prefix_of(socket: Path) -> str:
    return socket.parent.name + socket.name.removeprefix(SOCKET_NAME)


def directories(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the directories in which EAL makes its directory `dpdk`: for this and for other
    users.
    """
    chosen = [environment.get("RUNTIME_DIRECTORY"), environment.get("XDG_RUNTIME_DIR")]
    return [Path(folder) for folder in (*chosen, "/var/run", "/tmp") if folder]


def sockets(folders: Iterable[Path], host: Host = LOCAL) -> list[Path]:
    """Return telemetry sockets, including those left by ended programs; each once."""
    found: dict[Path, Path] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for path in sorted((folder / "dpdk").glob(f"*/{SOCKET_NAME}*")):
                if _NAME.fullmatch(path.name):
                    found.setdefault(path.resolve(), path)
    for path in _listening(host):
        with contextlib.suppress(OSError):
            found.setdefault(path.resolve(), path)
    return list(found.values())


def _listening(host: Host) -> list[Path]:
    try:
        lines = host.read_text("/proc/net/unix").splitlines()[1:]
    except OSError:
        return []
    found = []
    for line in lines:
        # Num RefCount Protocol Flags Type St Inode Path
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7].startswith("/") and int(words[3], 16) & _LISTENS:
            path = Path(words[7])
            if _NAME.fullmatch(path.name) and path.parent.parent.name == "dpdk":
                found.append(path)
    return sorted(found)


def program_name(pid: int) -> str:
    """Return the file name of the program, or the kernel's name of the process."""
    for source in ("cmdline", "comm"):
        with contextlib.suppress(OSError):
            text = LOCAL.read_bytes(f"/proc/{pid}/{source}").split(b"\0")[0]
            name = Path(text.decode(errors="replace").strip()).name
            if name:
                return name
    return "unknown"


def look(paths: Iterable[Path], *, foreign: bool = True) -> Found:
    """Ask each socket for its program. Skips sockets that nobody listens on, and those after the
    first `_MOST_ASKED`: each may take `_ANSWER_WITHIN_S`.

    `foreign`: ask sockets of other users as well. Anybody can make one below /tmp with any name;
    asking is no danger to root, but the figures could be invented.
    """
    programs: list[Program] = []
    forbidden: list[Path] = []
    silent: list[Path] = []
    others: list[Path] = []
    for path in itertools.islice(paths, _MOST_ASKED):
        if not foreign and _is_foreign(path):
            # The kernel asks for the right to write.
            (others if os.access(path, os.W_OK) else forbidden).append(path)
            continue
        try:
            with Telemetry(path, _ANSWER_WITHIN_S) as telemetry:
                pid, user = telemetry.peer_pid(), telemetry.peer_user()
                trusted = is_trusted(user)
                if not trusted and not foreign:
                    others.append(path)
                    continue
                of = None if trusted else user_name(user)
                programs.append(Program(prefix_of(path), path, pid, program_name(pid), of))
        except TelemetryError as error:
            if isinstance(error.__cause__, PermissionError):
                forbidden.append(path)
            elif isinstance(error.__cause__, TimeoutError):
                silent.append(path)
    return Found(tuple(programs), tuple(forbidden), tuple(silent), tuple(others))


def _is_foreign(path: Path) -> bool:
    """Return True if an untrusted user made it; False if it no longer exists."""
    try:
        return not is_trusted(path.stat().st_uid)
    except OSError:
        return False


def choose(found: Found, wanted: str | None) -> Program:
    """Return the requested program; without `wanted` the only one there is.

    `wanted` is a file prefix, or the path of a socket or of its directory.
    """
    fitting = [program for program in found.programs if _is_at(program.socket, wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        what = "several DPDK programs run" if wanted is None else f"{wanted} is not the only one"
        alike = len({program.prefix for program in fitting}) < len(fitting)
        paths = [f"  {printable(str(program.socket))}" if alike else "" for program in fitting]
        lines = [f"    {program}{path}" for program, path in zip(fitting, paths, strict=True)]
        name = printable(str(fitting[0].socket if alike else fitting[0].prefix))
        raise UsageError("\n".join([f"{what}:", *lines]), f"choose one: linerate top {name}")
    if any(_is_at(path, wanted) for path in found.silent):
        raise TelemetryError(
            f"{wanted or 'the only DPDK program'} does not answer",
            "is it stopped, or held by a debugger?",
        )
    if any(_is_at(path, wanted) for path in found.forbidden):
        raise MissingError(
            f"{wanted or 'the only DPDK program'} belongs to another user", "run as root or as them"
        )
    if found.foreign and not found.programs and wanted is None:
        raise MissingError(
            "no DPDK program of yours or root's answers telemetry here, and those of other users "
            "are only asked by name",
            "to watch one of theirs: linerate top "
            + printable(" or ".join(shlex.quote(str(each)) for each in found.foreign[:3])),
        )
    if found.programs:
        raise MissingError(
            f"no DPDK program with the file prefix {wanted}",
            f"there is: {', '.join(str(program) for program in found.programs)}",
        )
    name = "no DPDK program" if wanted is None else f"no DPDK program with the file prefix {wanted}"
    raise MissingError(
        f"{name} answers telemetry here",
        "start one, and not with --no-telemetry; for instance: linerate attach -- PROGRAM ARGS...",
    )


def _is_at(path: Path, wanted: str | None) -> bool:
    if wanted is None or wanted == prefix_of(path):
        return True
    return "/" in wanted and Path(wanted).resolve() in (path.resolve(), path.parent.resolve())


def find(wanted: str | None) -> Program:
    """Search everywhere, and choose."""
    if wanted is not None and "/" in wanted:
        given = Path(wanted)
        return choose(look([given / SOCKET_NAME if given.is_dir() else given]), wanted)
    paths = sorted(sockets(directories()), key=_is_foreign)
    found = look(paths, foreign=False)
    named = [path for path in found.foreign if wanted == prefix_of(path)]
    if named and not any(_is_at(program.socket, wanted) for program in found.programs):
        # A program of one's own comes before another user's with the same prefix.
        return choose(look(named), wanted)
    return choose(found, wanted)
