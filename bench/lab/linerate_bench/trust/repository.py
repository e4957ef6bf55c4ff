# SPDX-License-Identifier: BSD-3-Clause
"""A git repository of a forwarder in which each commit is another program.

The forwarder is `bench/plain/plain.c` as it was when the repository was made. Each commit changes
`version.h`: a text that is in the program, and the number of dependent additions after each burst.
`make` builds `fw`, and fails if a commit is broken.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from linerate.host.host import LOCAL
from linerate.host.places import project_root

PROGRAM = "./fw {eal} -- -p {portmask} --burst-forwarding"
_MAKEFILE = """\
fw: fw.c version.h
\tcc -std=gnu11 -O3 -DCHAINED $$(pkg-config --cflags libdpdk) -include version.h fw.c \\
\t  -o fw.new $$(pkg-config --libs libdpdk)
\tmv fw.new fw
"""
_VERSION = """\
__attribute__((used)) static const char version[] = "{name}";
#define DEFAULT_CHAIN {chain}
"""
_BROKEN = "#error this commit does not build\n"
# Ignore the user's git settings, such as templates and signatures.
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@localhost",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@localhost",
}


@dataclass(frozen=True)
class Repository:
    """`path`: the working tree."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> Repository:
        """Make a repository without commits, in a directory that does not exist yet."""
        path.mkdir()
        made = cls(path)
        made.git("init", "--quiet", "--initial-branch=main")
        source = project_root() / "bench" / "plain" / "plain.c"
        (path / "fw.c").write_bytes(source.read_bytes())
        (path / "Makefile").write_text(_MAKEFILE)
        (path / ".gitignore").write_text("/fw\n/fw.new\n")
        return made

    def git(self, *words: str) -> str:
        """Return what git prints; raises `RuntimeError` with its error message."""
        done = LOCAL.run(["git", *words], directory=self.path, environment=_ENVIRONMENT)
        if done.exit_code:
            raise RuntimeError(f"git {' '.join(words)}: {done.errors.strip()}")
        return done.output.strip()

    def commit(self, name: str, chain: int, *, broken: bool = False) -> str:
        """Make a commit and return its id. `chain`: the additions after each burst."""
        text = _VERSION.format(name=name, chain=chain)
        (self.path / "version.h").write_text(text + (_BROKEN if broken else ""))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", name)
        return self.git("rev-parse", "HEAD")
