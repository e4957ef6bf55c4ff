# SPDX-License-Identifier: BSD-3-Clause
"""Format an arm of a cell beside its baseline, for tables."""

from __future__ import annotations

from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import ArmSummary, CellSummary, Comparison, Summary
from linerate.records.summary_figures import CellRatio


def ratio_to_baseline(summary: Summary, cell: CellSummary, arm: str) -> Comparison | None:
    return next(
        (c for c in summary.comparisons if (c.link, c.size, c.arm) == (cell.link, cell.size, arm)),
        None,
    )


def shown_arms(cell: CellSummary) -> list[ArmSummary]:
    return [arm for arm in cell.arms if not arm.arm.endswith(AA_SUFFIX)]


def ratio_words(found: Comparison | CellRatio | None) -> str:
    """Format the ratio with its interval; a dash for the baseline and arms that cannot be
    compared.
    """
    if found is None or found.ratio is None:
        return "-"
    if found.ci_low is None or found.ci_high is None:
        return f"{found.ratio:.3f}"
    return f"{found.ratio:.3f} ({found.ci_low:.3f} to {found.ci_high:.3f})"
