# SPDX-License-Identifier: BSD-3-Clause
"""Where the lab finds what was built, and where it puts what it builds itself."""

from __future__ import annotations

import os
from pathlib import Path

from linerate.host.errors import MissingError


def project_root() -> Path:
    """The checkout that the lab runs from, or the working directory when it is installed."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "Cargo.toml").is_file() and (folder / "pyproject.toml").is_file():
            return folder
    return Path.cwd()


def rust_binary(name: str, *, target: str = "build") -> Path:
    """What cargo builds of this project's Rust workspace. `target`: that of `make` which does."""
    path = project_root() / "target" / "release" / name
    if not path.is_file():
        raise MissingError(f"{path} is not built", f"make {target}")
    return path


def user_cache() -> Path:
    """The user's cache for what the lab builds."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "linerate"


def build_directory() -> Path:
    """`build/` of the checkout when it can be written, else the user's cache."""
    root = project_root()
    if (root / "Cargo.toml").is_file() and os.access(root, os.W_OK):
        return root / "build"
    return user_cache()
