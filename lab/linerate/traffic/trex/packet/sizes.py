# SPDX-License-Identifier: BSD-3-Clause
"""Frame sizes: a packet's length, or what a trim instruction cuts it to."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import Any

from linerate.traffic.trex.packet.variables import Counter, Known, Listed
from linerate.traffic.trex.refusal import RefusalError

FCS = 4
# Bytes of the shortest frame, without FCS: shorter packets are filled up with zeros.
SHORTEST = 60
# Sizes of a mix.
_MOST_SIZES = 64
# Bytes of layer 1 beside a frame: preamble, start of frame, and the gap.
L1_OVERHEAD = 20


@dataclass(frozen=True)
class Sizes:
    """`json`: as OTG has them. `mean`: bytes with FCS. `notes`: what is not quite the same.

    `in_step`: successive frames have the sizes of successive values of the trim's variable.
    """

    json: dict[str, Any]
    mean: float
    smallest: int
    notes: tuple[str, ...] = ()
    in_step: bool = True

    @property
    def mean_l1_bits(self) -> float:
        return (self.mean + L1_OVERHEAD) * 8


def fixed(length: int) -> Sizes:
    """Of packets of so many bytes without FCS."""
    size = max(length, SHORTEST) + FCS
    return Sizes({"choice": "fixed", "fixed": size}, size, size)


def trimmed(known: Known, name: str, length: int, line: int | None) -> Sizes:
    """Of packets of `length` bytes that a variable cuts; raises `RefusalError`."""
    values = known.values
    least, most = (
        (min(values.values), max(values.values)) if isinstance(values, Listed) else values.extremes
    )
    if least < SHORTEST or most > length:
        raise RefusalError(
            f"trims to {least} to {most} bytes (variable {name!r}), a packet of {length}: frames "
            f"have at least {SHORTEST} bytes without FCS",
            line,
        )
    low, high = least + FCS, most + FCS
    if low == high:
        return fixed(least)
    if isinstance(values, Counter):
        step = abs(values.step)
        increment = {"start": low, "end": high, "step": step}
        notes = () if values.step > 0 else ("frame sizes count up instead of down",)
        return Sizes(
            {"choice": "increment", "increment": increment},
            (low + high) / 2, low, notes, values.step > 0,
        )  # fmt: skip
    if isinstance(values, Listed):
        shares = Tally(values.values)
        if len(shares) > _MOST_SIZES:
            raise RefusalError(
                f"trims to {len(shares)} sizes (variable {name!r}): a mix has at most "
                f"{_MOST_SIZES}",
                line,
            )
        pairs = [{"size": size + FCS, "weight": float(count)} for size, count in shares.items()]
        mean = sum(values.values) / len(values.values) + FCS
        return Sizes(
            {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": pairs}},
            mean, low, ("frame sizes have the list's shares, in another order",), False,
        )  # fmt: skip
    return Sizes(
        {"choice": "random", "random": {"min": low, "max": high}}, (low + high) / 2, low, (), False
    )
