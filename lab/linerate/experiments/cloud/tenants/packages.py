# SPDX-License-Identifier: BSD-3-Clause
"""Installed files with their Debian packages, so that a guest contains nothing else.

A file that belongs to no package, or that differs from its package's, is an error. Reads only; any
thread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.host.builds import elf
from linerate.host.errors import MachineError, MissingError
from linerate.host.host import LOCAL

_SUMS = Path("/var/lib/dpkg/info")
_TIMEOUT_S = 60.0
_IN_ENGLISH = {"LC_ALL": "C"}
_REINSTALL = "apt-get install --reinstall"


@dataclass(frozen=True)
class Installed:
    """An installed file; `name`: its path, whose `content` may be that of a link's target."""

    name: Path
    content: bytes
    package: str


def told(*argv: str, cwd: Path | None = None, timeout_s: float = _TIMEOUT_S) -> str | None:
    """Return a command's output in the C locale; None if it fails or does not exist."""
    try:
        done = LOCAL.run(argv, timeout_s=timeout_s, directory=cwd, environment=_IN_ENGLISH)
    except OSError:
        return None
    return None if done.exit_code else done.output


def with_libraries(program: Path) -> list[Path]:
    """Return a program and everything that is loaded with it, including its dynamic loader; itself
    if it is static.

    Additions by the environment (LD_PRELOAD, LD_LIBRARY_PATH) are not included.
    """
    try:
        read = elf.read(program)
    except (OSError, elf.UnreadableError) as error:
        raise MissingError(f"{program}: {error}") from error
    if read.loader is None:
        return [program]
    libraries = elf.libraries(read, {})
    if libraries is None:
        raise MissingError(
            f"{program}: its loader cannot tell its libraries", f"{_REINSTALL} {program.name}"
        )
    return list(dict.fromkeys([program, Path(read.loader), *libraries]))


def installed(paths: Sequence[Path]) -> list[Installed]:
    """Return the files' contents, each checked against its package's checksum."""
    owners = _owners(paths)
    sums = {package: _sums(package) for package in set(owners.values())}
    found = []
    for path in paths:
        package = owners.get(path)
        if package is None:
            raise MachineError(
                f"{path} belongs to no Debian package, and a guest contains only packaged files",
                f"install it from Debian's packages, or move {path} away",
            )
        content = LOCAL.read_bytes(path)
        expected = {
            known
            for name in _names(path)
            if (known := sums[package].get(name.lstrip("/"))) is not None
        }
        if expected and hashlib.md5(content, usedforsecurity=False).hexdigest() not in expected:
            raise MachineError(
                f"{path} differs from the file of package {package}", f"{_REINSTALL} {package}"
            )
        found.append(Installed(path, content, package))
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages, by their names."""
    names = sorted(set(packages))
    printed = told("dpkg-query", "--show", "--showformat=${binary:Package} ${Version}\\n", *names)
    lines = (line.split() for line in (printed or "").splitlines())
    # `binary:Package` has the architecture where several may be installed.
    found = {line[0].partition(":")[0]: line[1] for line in lines if len(line) == 2}
    return {name: found.get(name.partition(":")[0], "unknown") for name in names}


def _names(path: Path) -> list[str]:
    """Return a file's names in packages, some of which still have /lib for files in /usr/lib."""
    names = []
    for name in (str(path), str(path.resolve())):
        names.append(name)
        names.append(name.removeprefix("/usr") if name.startswith("/usr/") else f"/usr{name}")
    return list(dict.fromkeys(names))


def _owners(paths: Sequence[Path]) -> dict[Path, str]:
    candidates = {path: _names(path) for path in paths}
    # It fails if any file belongs to no package, but still prints the others'.
    try:
        names = (name for each in candidates.values() for name in each)
        printed = LOCAL.run(
            ["dpkg-query", "--search", *names], timeout_s=_TIMEOUT_S, environment=_IN_ENGLISH
        ).output
    except OSError as error:
        raise MissingError(f"dpkg-query: {error}", "use a Debian system") from error
    by_name = {
        name: package
        # A directory may belong to several packages, and a diversion has another format.
        for package, name in re.findall(r"^([a-z0-9][a-z0-9+.:-]*): (/.*)$", printed, re.MULTILINE)
    }
    return {
        path: next(by_name[name] for name in names if name in by_name)
        for path, names in candidates.items()
        if any(name in by_name for name in names)
    }


def _sums(package: str) -> dict[str, str]:
    """Return MD5 sums of a package's files by name; empty if it has none."""
    bare = package.partition(":")[0]
    for path in LOCAL.glob(_SUMS, f"{bare}*.md5sums"):
        if path.name in (f"{package}.md5sums", f"{bare}.md5sums"):
            lines = (line.split(maxsplit=1) for line in LOCAL.read_text(path).splitlines())
            return {line[1]: line[0] for line in lines if len(line) == 2}
    return {}
