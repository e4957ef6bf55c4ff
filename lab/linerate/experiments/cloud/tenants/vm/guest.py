# SPDX-License-Identifier: BSD-3-Clause
"""The guests of virtual machines: a kernel and a first file system (initramfs) for each load.

Everything in one comes from Debian's packages, except its first program, `init.sh` here. An idle
guest has busybox alone, the others also the program of their load with its libraries.

Lifecycle: an initramfs is a file below the lab's build directory, named by a digest of its
contents, written completely or not at all and never changed; guests only read it. Its sources are
read once per process.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Load
from linerate.experiments.cloud.tenants.packages import (
    Installed,
    installed,
    told,
    versions,
    with_libraries,
)
from linerate.experiments.cloud.tenants.vm import cpio, kernel
from linerate.host.builds import elf
from linerate.host.builds.make import locked
from linerate.host.errors import MissingError
from linerate.host.host import LOCAL
from linerate.host.places import build_directory

INIT = Path(__file__).with_name("init.sh")
# The commands in init.sh.
APPLETS = (
    "cat", "dd", "grep", "insmod", "ip", "mount", "mv", "poweroff", "sed", "sh", "sleep", "stty",
    "tail", "tr",
)  # fmt: skip
# Debian's path; a program of that name elsewhere belongs to none of its packages.
BUSYBOX = Path("/bin/busybox")
STRESS_NG, FIO, IPERF3 = (Path("/usr/bin") / name for name in ("stress-ng", "fio", "iperf3"))
# Memory of the kernel, stress-ng and iperf3; and of fio, which a SIGBUS ends if its memory pools do
# not fit.
_SYSTEM_MIB, _FIO_MIB = 128, 128


@dataclass(frozen=True)
class Guest:
    """A guest. `packages`: versions of all its packages, by name."""

    kernel: Path
    initramfs: Path
    packages: Mapping[str, str]
    load: Load = Load.IDLE

    @property
    def least_memory_mib(self) -> int:
        """The memory that it needs at least: an initramfs exists twice while it is unpacked."""
        programs_mib = _SYSTEM_MIB + (_FIO_MIB if self.load.has_io else 0)
        return programs_mib + 2 * -(-self.initramfs.stat().st_size // 2**20)


def programs(load: Load) -> list[Path]:
    """Return the programs of a guest's load, beside busybox."""
    wanted = ((load.has_cpu, STRESS_NG), (load.has_io, FIO), (load.has_network, IPERF3))
    return [program for has, program in wanted if has]


def missing(load: Load) -> list[str]:
    """Return why no guest for this load can be made here, one reason each."""
    reasons = []
    if platform.machine() != "x86_64":
        reasons.append(
            f"guests are made of amd64 packages, and this machine is {platform.machine()}"
        )
    if not _is_static(BUSYBOX):
        reasons.append(f"{BUSYBOX} is not there or not static (Debian: busybox-static)")
    reasons += [
        f"{program} is not installed (Debian: {program.name})"
        for program in programs(load)
        if not program.is_file()
    ]
    tools = [tool for tool in ("apt-get", "apt-cache", "dpkg-deb", "dpkg-query")
             if LOCAL.which(tool) is None]  # fmt: skip
    reasons += [f"{tool} is not installed: guests are made on Debian only" for tool in tools]
    if not tools and not kernel.extracted(_directory()) and kernel.candidate() is None:
        reasons.append(f"apt knows no {kernel.META_PACKAGE} (apt-get update)")
    return reasons


@functools.cache
def build(load: Load) -> Guest:
    """Return the guest for a load; make it unless its files exist."""
    if reasons := missing(load):
        raise MissingError(f"no guest can be made: {'; '.join(reasons)}", "make setup")
    directory = _directory()
    booted = kernel.get(directory)
    _check_applets()
    paths = [path for program in programs(load) for path in with_libraries(program)]
    files = installed(list(dict.fromkeys([BUSYBOX, *paths])))
    archive = cpio.archive(entries(files, booted.modules))
    initramfs = _stored(directory, archive)
    known = versions(each.package for each in files)
    return Guest(booted.image, initramfs, {booted.package: booted.version, **known}, load)


def entries(files: Sequence[Installed], modules: Sequence[Path]) -> list[cpio.Entry]:
    """Return everything in an initramfs: busybox first among the files, then programs and
    libraries.
    """
    busybox, *others = files
    folders = ("bin", "dev", "etc", "lib", "lib/modules", "lib64", "proc", "sys", "tmp")
    made = [cpio.directory(name) for name in folders]
    made += [
        # For the kernel's messages before the first program runs.
        cpio.device("dev/console", 5, 1),
        cpio.file("init", INIT.read_bytes(), executable=True),
        cpio.file("bin/busybox", busybox.content, executable=True),
        *(cpio.symlink(f"bin/{applet}", "busybox") for applet in APPLETS),
        cpio.file("etc/modules", "".join(f"{path.stem}\n" for path in modules).encode()),
        *(cpio.file(f"lib/modules/{path.name}", path.read_bytes()) for path in modules),
    ]
    names = set()
    for each in others:
        # The loader is where programs ask for it; it looks for libraries in /lib.
        name = each.name.name
        if str(each.name).startswith("/lib64/"):
            place = f"lib64/{name}"
        else:
            place = f"lib/{name}" if ".so" in name else f"bin/{name}"
        if place not in names:
            names.add(place)
            made.append(cpio.file(place, each.content, executable=True))
    return made


def _directory() -> Path:
    return build_directory() / "guest"


def _is_static(program: Path) -> bool:
    try:
        return elf.read(program).loader is None
    except (OSError, elf.UnreadableError):
        return False


def _check_applets() -> None:
    listed = set((told(str(BUSYBOX), "--list") or "").split())
    if lacking := [applet for applet in APPLETS if applet not in listed]:
        raise MissingError(
            f"{BUSYBOX} has no {', '.join(lacking)}", "apt-get install busybox-static"
        )


def _stored(directory: Path, archive: bytes) -> Path:
    path = directory / f"initramfs-{hashlib.sha256(archive).hexdigest()[:16]}.cpio"
    if not path.is_file():
        with locked(directory, "a guest"):
            file, name = tempfile.mkstemp(dir=directory, prefix=".initramfs-")
            try:
                with os.fdopen(file, "wb") as written:
                    written.write(archive)
                    written.flush()
                    os.fsync(written.fileno())
                Path(name).rename(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
    return path
