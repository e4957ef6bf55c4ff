# SPDX-License-Identifier: BSD-3-Clause
"""A machine made of stubs: the scripts see only the programs that a test puts in PATH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the scripts use of Debian's essential packages.
TOOLS = "bash cat dirname env head mktemp rm sed sha256sum sort true".split()  # noqa: SIM905


class Machine:
    """A directory of programs that is the whole PATH, and a copy of the scripts beside it."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.checkout = directory / "checkout"
        self.log = directory / "calls"
        self.bin.mkdir()
        self.link(*TOOLS)
        shutil.copytree(ROOT / "scripts", self.checkout / "scripts")
        shutil.copy(ROOT / "Cargo.toml", self.checkout)

    def link(self, *tools: str) -> None:
        """Puts real programs into PATH."""
        for tool in tools:
            found = shutil.which(tool)
            assert found, f"{tool} is missing from the machine that runs the tests"
            (self.bin / tool).symlink_to(found)

    def stub(self, name: str, body: str = "exit 0", *, directory: Path | None = None) -> Path:
        """A program that writes down how it was called, then runs `body`."""
        path = (directory or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.log}\n{body}\n')
        path.chmod(0o755)
        return path

    def rust(self, version: str, *, directory: Path | None = None) -> None:
        """rustc and cargo that say they are `version`."""
        for name in ("cargo", "rustc"):
            self.stub(name, f'echo "{name} {version} (stub)"', directory=directory)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of the checkout there; PATH is the stubs', HOME has nothing in it."""
        return subprocess.run(
            [str(self.checkout / command[0]), *command[1:]],
            cwd=self.checkout,
            env={"PATH": str(self.bin), "HOME": "/nonexistent", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self, name: str) -> list[str]:
        """How a stub was called, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(name + " ")]
