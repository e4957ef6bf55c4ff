# SPDX-License-Identifier: BSD-3-Clause
"""Compilers and flags that the C peers are built with."""

from __future__ import annotations

import shutil

# All instructions of this machine, beyond the flags of the distribution's DPDK.
NATIVE = "-march=native"


def clang() -> str | None:
    """Return the command of a clang: `clang`, or the newest one with a version in its name."""
    return shutil.which("clang") or next(
        (found for n in range(30, 10, -1) if (found := shutil.which(f"clang-{n}"))), None
    )
