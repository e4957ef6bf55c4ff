# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's examples in C, from the distribution's package, built unmodified with their Makefiles.

A build is cached by a digest of the source, the compiler, the flags and DPDK's version. None of
their code enters this repository. A header of ours (`bench/examples`) can be included before each
source, and C files of ours can be compiled beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.host.builds.compilers import NATIVE
from linerate.host.builds.make import announce, locked, make
from linerate.host.errors import LabError, MissingError
from linerate.host.machine import dpdk_version, first_line
from linerate.host.places import build_directory, project_root

PLACES = (Path("/usr/share/dpdk/examples"), Path("/usr/local/share/dpdk/examples"))


@dataclass(frozen=True)
class CExample:
    """A built example."""

    program: Path
    # Source and build parameters, for records.
    facts: dict[str, str]


def example_source(name: str) -> Path | None:
    """The directory of an example's source, if it is installed."""
    places = (place / name for place in PLACES)
    return next((place for place in places if (place / "Makefile").is_file()), None)


def build(
    name: str,
    compiler: str | None = None,
    *,
    native: bool = False,
    make_arguments: Sequence[str] = (),
    include: str | None = None,
    sources: Sequence[str] = (),
) -> CExample:
    """Build an example, once for each state of its inputs.

    `compiler`: default: the system's, or $CC. `native`: with -march=native instead of the -march of
    the distribution's DPDK. `make_arguments`: further arguments of make, such as `static`.
    `include`: a header of `bench/examples` that is included before every source (-include).
    `sources`: C files of `bench/examples` that are compiled with the example's.
    """
    what = f"the C {name}"
    source = example_source(name)
    if source is None:
        raise MissingError(
            f"DPDK's {name} example is not installed in {PLACES[0] / name}",
            "make setup (Debian: dpdk-doc)",
        )
    compiler = compiler or os.environ.get("CC", "cc")
    version = first_line(compiler, "--version")
    dpdk = dpdk_version()
    for tool, found in ((compiler, version), ("make", shutil.which("make")), ("libdpdk", dpdk)):
        if not found:
            raise MissingError(
                f"{tool} is missing, which {what} is built with",
                "make setup (Debian: gcc make pkg-config libdpdk-dev)",
            )
    flags = {name: os.environ.get(name, "") for name in ("CFLAGS", "LDFLAGS")}
    if native:
        # The Makefile compiles and links in one command in which LDFLAGS come last: CFLAGS
        # would lose against the -march of the distribution's DPDK.
        flags["LDFLAGS"] = f"{flags['LDFLAGS']} {NATIVE}".strip()
    ours = _ours(include, sources)
    if include:
        # All options come before the included header, so that its own includes are found.
        flags["CFLAGS"] = f"{flags['CFLAGS']} -include {include}".strip()
    code, makefile = hashlib.sha256(), (source / "Makefile").read_bytes()
    for path in sorted(source.glob("*.[ch]")):
        code.update(path.read_bytes())
    digest = code.copy()
    digest.update(makefile)
    shared = _shared(source, makefile)
    for path in [*ours, *(sorted(shared.rglob("*.h")) if shared else [])]:
        digest.update(path.read_bytes())
    if sources:
        make_arguments = [*make_arguments, _with_sources(what, makefile, sources)]
    made_with = [version, dpdk, flags, *make_arguments]
    digest.update(json.dumps(made_with, sort_keys=True).encode())
    target = build_directory() / "c-peers" / f"{name}-{digest.hexdigest()[:16]}"
    named = re.search(rb"^APP *:?= *(\S+)", makefile, re.MULTILINE)
    program = target / "build" / (named.group(1).decode() if named else name)
    facts = {
        "source": str(source),
        "source_sha256": code.hexdigest(),
        "compiler": version or "",
        "dpdk": dpdk or "",
    }
    if include:
        added = hashlib.sha256()
        for path in ours:
            added.update(path.read_bytes())
        facts["include"] = f"bench/examples/{include}"
        facts["include_sha256"] = added.hexdigest()
    if sources:
        facts["sources"] = " ".join(f"bench/examples/{each}" for each in sources)
    if not program.is_file():
        with locked(target.parent, what):
            if not program.is_file():
                beside = [*ours, *([shared] if shared else [])]
                announce(what, compiler, NATIVE if native else "")
                _build(
                    what, source, target, [f"CC={compiler}", *make_arguments], flags, beside=beside
                )
    facts["command"] = (target / "command.txt").read_text().strip()
    return CExample(program, facts)


def _ours(include: str | None, sources: Sequence[str]) -> list[Path]:
    """Return our headers (`include`, and those that it may include) and our `sources`."""
    named = [*([include] if include else []), *sources]
    if not named:
        return []
    folder = project_root() / "bench" / "examples"
    for name in named:
        if not (folder / name).is_file():
            raise MissingError(f"{folder / name} is not there", "run the lab from a checkout")
    return sorted(folder.glob("*.h")) + [folder / name for name in sources]


def _with_sources(what: str, makefile: bytes, sources: Sequence[str]) -> str:
    """Return the make argument that compiles `sources` together with those in the Makefile."""
    listed = re.search(rb"^SRCS-y *:?= *(.*[^\\\s])\s*$", makefile, re.MULTILINE)
    if listed is None:
        raise LabError(f"{what} takes no further sources: its Makefile has no line SRCS-y")
    return f"SRCS-y={listed.group(1).decode()} {' '.join(sources)}"


def _shared(source: Path, makefile: bytes) -> Path | None:
    """Return the directory that examples share, if this example's Makefile refers to it."""
    if b"../common" not in makefile:
        return None
    common = source.parent / "common"
    if not common.is_dir():
        raise MissingError(
            f"{common} is missing, which the C {source.name} is built with",
            "make setup (Debian: dpdk-doc)",
        )
    return common


def _build(
    what: str,
    source: Path,
    target: Path,
    arguments: Sequence[str],
    flags: Mapping[str, str],
    *,
    beside: Sequence[Path],
) -> None:
    """Build beside the target and move the result there: the target is complete or absent.

    `beside`: our files, which go where the compiler runs, and a directory that goes next to it.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{source.name}-") as work:
        copy = Path(work) / source.name
        shutil.copytree(source, copy)
        for path in beside:
            if path.is_dir():
                shutil.copytree(path, Path(work) / path.name)
            else:
                shutil.copy(path, copy)
        printed = make(what, copy, arguments, flags)
        names = [path.name for path in source.glob("*.c")]
        commands = [line for line in printed.splitlines() if any(name in line for name in names)]
        (copy / "command.txt").write_text("\n".join(commands) + "\n")
        shutil.rmtree(target, ignore_errors=True)
        copy.rename(target)
