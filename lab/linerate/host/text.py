# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as texts have them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 block`, `12 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def probability(p: float, digits: int = 4) -> str:
    """`p 0.0312`, or `p below 0.0001`: one that the digits cannot show is small, but not 0."""
    least = 10.0**-digits
    return f"p below {least:.{digits}f}" if p < least else f"p {p:.{digits}f}"
