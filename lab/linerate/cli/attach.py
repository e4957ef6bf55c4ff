# SPDX-License-Identifier: BSD-3-Clause
"""`linerate attach`: become a DPDK program whose EAL loads the probe.

The probe is a plugin of EAL (`-d`), so the program itself is unchanged. This process checks
everything that would only fail later and less clearly, and then *is* the program (exec): its pid,
signals, standard streams and exit code are the program's own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from linerate.host import foreign
from linerate.host.builds import elf, plugins
from linerate.host.errors import MachineError, MissingError, ProcessError, UsageError

# The probe's own.
ONE_IN_LIMIT = 2**30
# A name that whatever starts EAL must import or export.
_EAL_SYMBOL = b"rte_eal_init"
# The name that the probe reads from its environment, and so contains.
_PROBE_MARK = b"LINERATE_PROBE_ONE_IN"
# A place for a copy of the probe that EAL accepts, for the hint.
_SAFE_PLACE = "/usr/local/lib/linerate"
# Python ignores these signals; programs expect the default actions.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True)
class Execution:
    """The arguments of `os.execve`."""

    path: Path
    argv: list[str]
    environment: dict[str, str]


def parse_one_in(text: str) -> int:
    """Parse the value of --one-in."""
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) > ONE_IN_LIMIT:
        raise UsageError(
            f"--one-in {text}: not a whole number from 0 to {ONE_IN_LIMIT}",
            "for instance --one-in 64, or 0 for no latency",
        )
    return int(text)


def prepare(
    command: Sequence[str],
    one_in: int | None = None,
    probe: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Execution:
    """Check everything, and return what to run. `one_in` None: the probe's own default.

    Raises `UsageError`, `MissingError` and `MachineError`.
    """
    program, arguments = command[0], list(command[1:])
    if probe is not None:
        check_probe(probe)
    plugin = loadable(probe or plugins.probe_plugin())
    if Path(program).name.startswith("ovs-vswitchd"):
        raise UsageError(
            "ovs-vswitchd takes its EAL options from its database, not from its command line",
            f"ovs-vsctl set Open_vSwitch . other_config:dpdk-extra='-d {plugin}' (and what is in "
            "it already), restart it, then linerate top",
        )
    path = find_program(program, environment)
    check_program(path, program, plugin, environment)
    if "--no-telemetry" in arguments[: arguments.index("--") if "--" in arguments else None]:
        raise UsageError("--no-telemetry: the probe's figures could not be read", "leave it out")
    added = {"LINERATE_PROBE_REQUIRED": "1"}
    if one_in is not None:
        added["LINERATE_PROBE_ONE_IN"] = str(one_in)
    return Execution(path, [program, "-d", str(plugin), *arguments], {**environment, **added})


def check_probe(probe: Path) -> None:
    """Check that the file is the probe: EAL loads any library, and the program would run without a
    probe.
    """
    hint = "leave it out for the one of this build"
    try:
        content = foreign.content(probe, foreign.MOST_PROGRAM)
    except OSError as error:
        raise UsageError(f"--probe {probe}: {error.strerror}", hint) from error
    if _PROBE_MARK not in content:
        raise UsageError(f"--probe {probe}: not a probe of linerate", hint)


def loadable(probe: Path) -> Path:
    """Return the probe's real path, if EAL will load it from there."""
    real = probe.resolve()
    if path := plugins.writable_by_all(real):
        copy = f"{_SAFE_PLACE}/{real.name}"
        raise MachineError(
            f"EAL will not load {real}: everybody can write to {path}",
            f"as root: install -D -m 644 {real} {copy}; "
            f"then linerate attach --probe {copy} -- PROGRAM ARGS...",
        )
    return real


def find_program(program: str, environment: Mapping[str, str]) -> Path:
    """Return the path of the program, as a shell would find it."""
    if "/" not in program:
        found = shutil.which(program, path=environment.get("PATH", os.defpath))
        if found:
            return Path(found)
        here = Path(program).is_file()
        raise MissingError(
            f"{program}: no such program in PATH",
            f"linerate attach -- ./{program}" if here else None,
        )
    path = Path(program)
    if path.is_dir():
        raise UsageError(f"{program} is a directory")
    if not path.exists():
        raise MissingError(f"{program}: no such program")
    if not os.access(path, os.X_OK):
        raise MissingError(f"{program} is not executable", f"chmod +x {program}")
    return path


def check_program(path: Path, program: str, plugin: Path, environment: Mapping[str, str]) -> None:
    """Refuse a program that certainly cannot load the probe. If that is not clear, the probe itself
    ends a program whose DPDK it cannot see (LINERATE_PROBE_REQUIRED).
    """
    try:
        with foreign.opened(path, foreign.MOST_PROGRAM) as file:
            start = file.read(128)
    except OSError:
        return  # executable and not readable: for the kernel alone to judge
    if start.startswith(b"#!"):
        interpreter = start[2:].split(b"\n")[0].decode(errors="replace").strip()
        raise UsageError(
            f"{program} is a script ({interpreter}): EAL's options are for the program it starts",
            "write linerate attach -- before the program inside the script",
        )
    try:
        found = elf.read(path)
    except elf.UnreadableError:
        return
    if not found.dynamic or found.loader is None:
        raise UsageError(
            f"{program} is linked statically: nothing can be loaded into it",
            "build it against DPDK's shared libraries (meson: -Ddefault_library=shared)",
        )
    if _EAL_SYMBOL in found.names:
        return
    libraries = elf.libraries(found, environment)
    if libraries is None or any(_names_eal(library) for library in libraries):
        return
    if _EAL_SYMBOL in foreign.content(path, foreign.MOST_PROGRAM):
        raise UsageError(
            f"{program} holds a DPDK of its own, linked statically: the probe cannot see into it",
            "build it against DPDK's shared libraries (pkg-config --libs libdpdk, no --static)",
        )
    raise UsageError(
        f"{program} is not a DPDK program: none of its libraries has {_EAL_SYMBOL.decode()}",
        "write linerate attach -- directly before the DPDK program, for instance: "
        "taskset -c 2 linerate attach -- PROGRAM; "
        f"one that loads DPDK while it runs needs -d {plugin} among its EAL options",
    )


def _names_eal(library: Path) -> bool:
    try:
        return _EAL_SYMBOL in elf.read(library).names
    except elf.UnreadableError:
        return False
    except OSError:
        return True  # not to be told


def become(execution: Execution) -> NoReturn:
    """Replace this process by the program. Returns only by an exception."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by whoever started this
            stream.flush()
    for number in _PYTHON_IGNORES:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(execution.path, execution.argv, execution.environment)
    except OSError as error:
        raise ProcessError(f"cannot run {execution.path}: {error.strerror}") from error
