# SPDX-License-Identifier: BSD-3-Clause
"""ARCHITECTURE.md names what exists, and what it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
QUOTED = set(re.findall(r"`([^`\n]+)`", TEXT))


def test_every_path_that_is_named_exists() -> None:
    named = {
        word for word in QUOTED if re.fullmatch(r"(crates|lab|tests|scripts|docs)[\w./-]*", word)
    }
    assert len(named) > 30
    assert not {word for word in named if not (ROOT / word).exists()}


def test_every_crate_is_named() -> None:
    crates = {f"crates/{path.parent.name}" for path in ROOT.glob("crates/*/Cargo.toml")}
    assert crates
    assert crates <= QUOTED


def test_the_map_of_the_lab_is_as_it_would_be_made_now() -> None:
    """`scripts/lab-map` writes it, from the modules' docstrings."""
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "lab-map", "--print"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert made in TEXT, "run scripts/lab-map"


def test_every_direct_dependency_has_its_reason() -> None:
    direct: set[str] = set()
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        parsed = tomllib.loads(manifest.read_text(encoding="utf-8"))
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            direct |= {name for name in parsed.get(table, {}) if not name.startswith("linerate-")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    direct |= {re.split(r"[<>=\[]", requirement)[0] for requirement in wanted}
    assert not {name for name in direct if name not in QUOTED}
