# SPDX-License-Identifier: BSD-3-Clause
"""Paths of programs that were built, and of the lab's own builds."""

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
    """Return the path of a program of the Rust workspace. `target`: the `make` target that builds
    it.
    """
    path = project_root() / "target" / "release" / name
    if not path.is_file():
        raise MissingError(f"{path} is not built", f"make {target}")
    return path


def user_cache() -> Path:
    """Return the directory for the lab's builds in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "linerate"


def build_directory() -> Path:
    """Return `build/` of the checkout if it is writable, else the user's cache."""
    root = project_root()
    if (root / "Cargo.toml").is_file() and os.access(root, os.W_OK):
        return root / "build"
    return user_cache()
