# SPDX-License-Identifier: BSD-3-Clause
"""Compilers and flags that the C peers are built with."""

from __future__ import annotations

import shutil

# What may be used on this machine beyond what DPDK's own flags allow. valgrind knows no AVX-512.
NATIVE = "-march=native -mno-avx512f"


def clang() -> str | None:
    """The command of a clang: the plain one, or the newest that has its version in its name."""
    return shutil.which("clang") or next(
        (found for n in range(30, 10, -1) if (found := shutil.which(f"clang-{n}"))), None
    )
