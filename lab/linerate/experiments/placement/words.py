# SPDX-License-Identifier: BSD-3-Clause
"""Figures of advice in words."""

from __future__ import annotations

from linerate.experiments.placement.record import MeasuredDelay
from linerate.records.summary_figures import Quartiles


def unit_of(pps: float) -> tuple[float, str]:
    """Return the unit that suits this rate, in frames per second, and its name."""
    return next((unit for unit in ((1e6, "Mpps"), (1e3, "kpps")) if pps >= unit[0]), (1.0, "pps"))


def number(value: float) -> str:
    """Format a number with four digits, or all those before the point."""
    return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value:.4g}"


def rate(pps: float) -> str:
    """Format a rate: `2 Mpps`, `577 kpps`, `997 pps`."""
    unit, name = unit_of(pps)
    return f"{number(pps / unit)} {name}"


def percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def spread(figure: Quartiles, scale: float = 1.0) -> str:
    """Format `2.41 (2.30 to 2.52)`: the median, and its 95 % interval if it has one with ends."""
    median = number(figure.median * scale)
    if figure.low is None or figure.high is None:
        return f"{median} (no interval)"
    low, high = (number(value * scale) for value in (figure.low, figure.high))
    return median if low == high else f"{median} ({low} to {high})"


def loads_words(found: MeasuredDelay) -> str:
    """Format the loads at which delays were measured."""
    if found.least_pps is None or found.most_pps is None:
        return "no load"
    least, most = rate(found.least_pps), rate(found.most_pps)
    return least if least == most else f"{least} to {most}"
