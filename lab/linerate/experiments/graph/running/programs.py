# SPDX-License-Identifier: BSD-3-Clause
"""The programs that run the windows: `graph-bench`, built twice, with the C nodes built four times.

The C nodes are built here by `bench/graph/c/Makefile` when they are first needed; `make build`
builds `graph-bench`, and `make native-graph` once more, for this processor alone
(`-C target-cpu=native`).
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from linerate.host.builds.bench_programs import built_library
from linerate.host.builds.compilers import NATIVE, clang
from linerate.host.errors import LabError
from linerate.host.places import project_root, rust_binary
from linerate.host.process import Command
from linerate.links import Wire, eal
from linerate.links.eal import Memory

PROGRAM = "graph-bench"
NATIVE_SUFFIX = "/native"
ROLE = "graph-bench"
C_BUILDS = ("gcc", "clang", "gcc-native", "clang-native")


@dataclass(frozen=True)
class Programs:
    """The programs that exist here. `libraries`: the C nodes, by build. `left_out`: what does not
    exist.
    """

    rust: Path
    rust_native: Path | None
    libraries: dict[str, Path]
    left_out: list[str]

    def files(self) -> dict[str, Path]:
        """Return the files by their names in the lab, for their digests."""
        found = {PROGRAM: self.rust}
        if self.rust_native:
            found[PROGRAM + NATIVE_SUFFIX] = self.rust_native
        return found | {f"c-graph/{name}": path for name, path in self.libraries.items()}

    def command(self, *, native: bool, cpu: int, memory: Memory, prefix: str) -> Command:
        """Return the command. The plain program also runs the C nodes: everything that it compares
        is in one process.
        """
        program = self.rust_native if native and self.rust_native else self.rust
        argv = [str(program), *eal.options(eal.lcores(cpu), memory, prefix, Wire()), "--"]
        if not native:
            for name, path in self.libraries.items():
                argv += ["--library", f"{name}={path}"]
        return Command(ROLE, tuple(argv), (cpu,), hold_stdin=True, answers=True)


def find(builds: Collection[str] = C_BUILDS) -> Programs:
    """Build what is missing of these builds of the C nodes, each of which takes half a minute.

    Raises `MissingError` without `graph-bench`.
    """
    rust = rust_binary(PROGRAM)
    left_out: list[str] = []
    libraries: dict[str, Path] = {}
    for name, compiler, flags in _builds():
        if name not in builds:
            continue
        if compiler is None:
            left_out.append(
                f"c-graph/{name} is left out: there is no {name.partition('-')[0]} here"
            )
            continue
        try:
            libraries[name] = built_library("graph/c", "libgraph_c.so", compiler, flags)
        except LabError as error:
            left_out.append(f"c-graph/{name} is left out: {error.message}")
    native: Path | None = project_root() / "target" / "native" / "release" / PROGRAM
    if native is not None and not native.is_file():
        native = None
        left_out.append("the Rust arms' native builds are left out: make native-graph builds them")
    return Programs(rust, native, libraries, left_out)


def _builds() -> list[tuple[str, str | None, str]]:
    compilers = {"gcc": shutil.which("gcc"), "clang": clang()}
    return [
        (name, compilers[name.partition("-")[0]], NATIVE if name.endswith("-native") else "")
        for name in C_BUILDS
    ]
