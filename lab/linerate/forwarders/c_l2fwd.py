# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's l2fwd example in C, from the distribution's package, built unmodified with its Makefile.

The build is cached by a digest of the source, the compiler and DPDK's version. None of its code
enters this repository.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from linerate.compilers import NATIVE, clang
from linerate.errors import MissingError
from linerate.forwarders.base import DpdkForwarder, l2fwd_arguments
from linerate.machine import dpdk_version, first_line
from linerate.make import locked, make
from linerate.places import build_directory

SOURCES = (Path("/usr/share/dpdk/examples/l2fwd"), Path("/usr/local/share/dpdk/examples/l2fwd"))


class CL2fwd(DpdkForwarder):
    """The baseline of every comparison.

    `clang`: built by clang instead of the system's compiler. `native`: with -march=native instead
    of the -march of the distribution's DPDK.
    """

    language = "C"

    def __init__(self, *, clang: bool = False, native: bool = False) -> None:
        self.name = "-".join(["c-l2fwd", *["clang"] * clang, *["native"] * native])
        self._clang = clang
        self._native = native
        self._program: Path | None = None
        self._facts: dict[str, str] = {}

    def prepare(self) -> None:
        source = next((path for path in SOURCES if (path / "main.c").is_file()), None)
        if source is None:
            raise MissingError(
                f"DPDK's l2fwd example is not installed in {SOURCES[0]}",
                "make setup (Debian: dpdk-doc)",
            )
        compiler = self._compiler()
        version = first_line(compiler, "--version")
        dpdk = dpdk_version()
        for tool, found in ((compiler, version), ("make", shutil.which("make")), ("libdpdk", dpdk)):
            if not found:
                raise MissingError(
                    f"{tool} is missing, which the C l2fwd is built with",
                    "make setup (Debian: gcc make pkg-config libdpdk-dev)",
                )
        flags = {name: os.environ.get(name, "") for name in ("CFLAGS", "LDFLAGS")}
        if self._native:
            # The Makefile compiles and links in one command in which LDFLAGS come last: CFLAGS
            # would lose against the -march of the distribution's DPDK.
            flags["LDFLAGS"] = f"{flags['LDFLAGS']} {NATIVE}".strip()
        digest = hashlib.sha256()
        for part in ("main.c", "Makefile"):
            digest.update((source / part).read_bytes())
        digest.update(json.dumps([version, dpdk, flags], sort_keys=True).encode())
        target = build_directory() / "c-peers" / f"l2fwd-{digest.hexdigest()[:16]}"
        self._facts = {
            "source": str(source),
            "source_sha256": hashlib.sha256((source / "main.c").read_bytes()).hexdigest(),
            "compiler": version or "",
            "dpdk": dpdk or "",
        }
        if not (target / "build" / "l2fwd").is_file():
            self._build(source, target, compiler, flags)
        self._facts["command"] = (target / "command.txt").read_text().strip()
        self._program = target / "build" / "l2fwd"

    def _compiler(self) -> str:
        if not self._clang:
            return os.environ.get("CC", "cc")
        if found := clang():
            return found
        raise MissingError("clang is missing, which one of the C l2fwd is built with", "make bench")

    def _build(self, source: Path, target: Path, compiler: str, flags: dict[str, str]) -> None:
        """Build beside the target and move it there, so that it is there whole or not at all."""
        with locked(target.parent, "the C l2fwd"):
            if (target / "build" / "l2fwd").is_file():
                return
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".l2fwd-") as work:
                copy = Path(work) / "l2fwd"
                shutil.copytree(source, copy)
                printed = make("the C l2fwd", copy, [f"CC={compiler}"], flags)
                commands = [line for line in printed.splitlines() if "main.c" in line]
                (copy / "command.txt").write_text("\n".join(commands) + "\n")
                shutil.rmtree(target, ignore_errors=True)
                copy.rename(target)

    def program(self) -> Path:
        if self._program is None:
            self.prepare()
        assert self._program is not None
        return self._program

    def arguments(self, ports: int) -> list[str]:
        return l2fwd_arguments(ports)

    def build_facts(self) -> dict[str, str]:
        return dict(self._facts)
