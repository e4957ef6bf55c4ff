# SPDX-License-Identifier: BSD-3-Clause
"""Check if two programs run the same code.

If a change touches no code, the two builds are the same, and comparing their bytes is a surer test
than any measurement. Running programs are compared, so that shared libraries and plugins that the
program itself chose are included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linerate.forwarders import Forwarder
from linerate.forwarders.containers import engine_of
from linerate.forwarders.template import Template
from linerate.host.builds import elf
from linerate.host.host import LOCAL
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Start

_DELETED = " (deleted)"
# Code that the kernel maps into each process.
_KERNEL_S = {"[vdso]", "[vsyscall]"}


class Executables:
    """The files of prepared programs, as they were when this was made: a user may build again
    during a comparison.
    """

    def __init__(self, programs: Sequence[Forwarder]) -> None:
        self._paths = [program.prepared_program for program in programs]
        self._were = [_state(path) for path in self._paths]

    def check(self) -> None:
        """Raise `FaultError` if a program is another file now."""
        for arm, (path, was) in enumerate(zip(self._paths, self._were, strict=True)):
            if _state(path) != was:
                raise FaultError(
                    arm, "replaced", f"{path} is not the file that it was when the duel began"
                )


def _state(path: Path | None) -> tuple[int, ...] | None:
    """Return numbers that change when a file is written or replaced; None if there is no file."""
    try:
        found = path and path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) if found else None


def same_code(programs: Sequence[Forwarder], starts: Sequence[Start]) -> bool:
    """Return True if two programs, with these running starts, have the same bytes and arguments.

    False also if that is not visible: for scripts and containers, which start something else, and
    for programs on the kernel, which load more than they map.
    """
    one, other = programs
    if _arguments(one) != _arguments(other) or _two_names(one, other):
        return False
    mapped = []
    for arm, program in enumerate(programs):
        start = next((each for each in starts if each.arm == arm), None)
        if start is None or not _is_the_program(start, program):
            return False
        files = _mapped_code(start.pid)
        if files is None:
            return False
        mapped.append(files)
    first, second = mapped
    # The same path in both is the same file.
    try:
        return _digests(first - second) == _digests(second - first)
    except (OSError, elf.UnreadableError):
        return False


def _arguments(program: Forwarder) -> tuple[dict[str, Any], Path | None, list[object]]:
    """Return everything in its definition except its name and the path of its executable."""
    definition = program.definition
    data = definition.as_data()
    for key in ("name", "description", "build", "command"):
        data.pop(key, None)
    folder = program.file.parent if program.file else None
    words: list[object] = list(Template(definition.command or "").words[1:])
    return data, folder, words


def _two_names(one: Forwarder, other: Forwarder) -> bool:
    """Return True if it is one file by two names: the program may behave according to its name."""
    paths = [program.program() for program in (one, other)]
    files = {LOCAL.resolve(path) for path in paths if path}
    return len(files) == 1 and len({path.name for path in paths if path}) == 2


def _is_the_program(start: Start, program: Forwarder) -> bool:
    """Return True if the polling process is the named executable, and works alone."""
    executable, definition = program.program(), program.definition
    if executable is None or start.pid is None:
        return False
    if not definition.uses_dpdk or engine_of(definition):
        return False
    try:
        if LOCAL.resolve(f"/proc/{start.pid}/exe") != LOCAL.resolve(executable):
            return False
        tasks = LOCAL.glob(f"/proc/{start.pid}/task", "*/children")
        return bool(tasks) and not any(LOCAL.read_text(each).strip() for each in tasks)
    except OSError:
        return False


def _mapped_code(pid: int | None) -> set[str] | None:
    """Return the files of the code that a process has mapped; None if one no longer exists, or if
    there is code without a file, such as that of a run-time compiler.
    """
    try:
        lines = LOCAL.read_text(f"/proc/{pid}/maps").splitlines()
    except OSError:
        return None
    found = set()
    for line in lines:
        # Addresses, permissions, offset, device, inode, path.
        fields = line.split(None, 5)
        if "x" in fields[1]:
            found.add(fields[5] if len(fields) == 6 else "")
    found -= _KERNEL_S
    return found if all(map(_is_there, found)) else None


def _is_there(file: str) -> bool:
    return file.startswith("/") and not file.endswith(_DELETED)


def _digests(files: set[str]) -> Counter[str]:
    return Counter(elf.loaded_digest(Path(each)) for each in files)
