# SPDX-License-Identifier: BSD-3-Clause
"""Installed files with the Debian packages that they came in, so that a guest has nothing else.

A file that no package has, or that differs from what its package brought, is an error. Reads only;
any thread.
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
    """A file as it is installed; `name`: how it is found, of which `content` may be a link's."""

    name: Path
    content: bytes
    package: str


def told(*argv: str, cwd: Path | None = None, timeout_s: float = _TIMEOUT_S) -> str | None:
    """What a command prints, in English; None when it fails or is not there."""
    try:
        done = LOCAL.run(argv, timeout_s=timeout_s, directory=cwd, environment=_IN_ENGLISH)
    except OSError:
        return None
    return None if done.exit_code else done.output


def with_libraries(program: Path) -> list[Path]:
    """A program and all that it is loaded with, its dynamic loader too; itself when it is static.

    What the environment adds (LD_PRELOAD, LD_LIBRARY_PATH) is not among it.
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
    """Their contents, each held against the sum that its package has of it."""
    owners = _owners(paths)
    sums = {package: _sums(package) for package in set(owners.values())}
    found = []
    for path in paths:
        package = owners.get(path)
        if package is None:
            raise MachineError(
                f"{path} is of no Debian package; a guest has nothing from elsewhere",
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
                f"{path} is not what the package {package} brought", f"{_REINSTALL} {package}"
            )
        found.append(Installed(path, content, package))
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of installed packages, by their names."""
    names = sorted(set(packages))
    printed = told("dpkg-query", "--show", "--showformat=${binary:Package} ${Version}\\n", *names)
    lines = (line.split() for line in (printed or "").splitlines())
    # `binary:Package` has the architecture where several may be installed.
    found = {line[0].partition(":")[0]: line[1] for line in lines if len(line) == 2}
    return {name: found.get(name.partition(":")[0], "unknown") for name in names}


def _names(path: Path) -> list[str]:
    """A file's names in packages, some of which still have /lib for what is in /usr/lib."""
    names = []
    for name in (str(path), str(path.resolve())):
        names.append(name)
        names.append(name.removeprefix("/usr") if name.startswith("/usr/") else f"/usr{name}")
    return list(dict.fromkeys(names))


def _owners(paths: Sequence[Path]) -> dict[Path, str]:
    candidates = {path: _names(path) for path in paths}
    # It fails when any name is of no package, and prints the others' all the same.
    try:
        names = (name for each in candidates.values() for name in each)
        printed = LOCAL.run(
            ["dpkg-query", "--search", *names], timeout_s=_TIMEOUT_S, environment=_IN_ENGLISH
        ).output
    except OSError as error:
        raise MissingError(f"dpkg-query: {error}", "use a Debian system") from error
    by_name = {
        name: package
        # A directory may be of several packages, a diversion is told in other words.
        for package, name in re.findall(r"^([a-z0-9][a-z0-9+.:-]*): (/.*)$", printed, re.MULTILINE)
    }
    return {
        path: next(by_name[name] for name in names if name in by_name)
        for path, names in candidates.items()
        if any(name in by_name for name in names)
    }


def _sums(package: str) -> dict[str, str]:
    """MD5 sums of a package's files by name; none when it brought none."""
    bare = package.partition(":")[0]
    for path in LOCAL.glob(_SUMS, f"{bare}*.md5sums"):
        if path.name in (f"{package}.md5sums", f"{bare}.md5sums"):
            lines = (line.split(maxsplit=1) for line in LOCAL.read_text(path).splitlines())
            return {line[1]: line[0] for line in lines if len(line) == 2}
    return {}
