# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of things, in words."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 block`, `12 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
