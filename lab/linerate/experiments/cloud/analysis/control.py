# SPDX-License-Identifier: BSD-3-Clause
"""The A/A control: the reference against itself, in all of its cells.

The rule: docs/how-it-measures.md#the-aa-arm.

If it finds a difference by a metric, or was not measured, there is no statement about frameworks by
that metric. Its differences are judged as everywhere in the lab (`verdict`): a ratio whose whole
interval lies outside the margin; for loss, which has no margin, any significant difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.cloud.analysis.observations import (
    METRICS,
    TESTED,
    CloudMetric,
    observed,
    of_control,
)
from linerate.experiments.cloud.analysis.summary_entries import entry
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import FRAMEWORK
from linerate.experiments.cloud.factorial.answers.takeaways import Takeaway, delta_of, estimate
from linerate.experiments.cloud.factorial.contrasts import contrasts, inside_margin
from linerate.experiments.cloud.factorial.losses import loss_contrasts
from linerate.host.text import counted, probability
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import TakeawayEntry
from linerate.verdict.judgement import MARGIN, found_difference, found_shift
from linerate.verdict.stats import ALPHA, MIN_COUNT, Paired, Shifted

_NONE = "no A/A control was measured, so nothing is said of frameworks"


@dataclass(frozen=True)
class Control:
    """The result of the control. `entries`: by metric; empty without a control. `forbids`: why
    there is no statement about frameworks by a metric, by the metric's name.
    """

    entries: dict[str, TakeawayEntry]
    forbids: dict[str, str]

    def judged(self, found: TakeawayEntry) -> TakeawayEntry:
        """Return the same entry, undecided if it is about frameworks and the control forbids it."""
        if FRAMEWORK not in found.about or found.verdict == "undecided":
            return found
        why = self.forbids.get(found.metric) or self._explained(found)
        if not why:
            return found
        reason = f"{why} (without the control: {found.verdict}; {found.reason})"
        return found.model_copy(update={"verdict": "undecided", "reason": reason})

    def _explained(self, found: TakeawayEntry) -> str | None:
        """Return why the control's difference could explain the effect, if so: it may be within the
        margin, and explain effects that are no larger.
        """
        control = self.entries.get(found.metric)
        if control is None or found.measure != "ratio" or found.verdict != "held":
            return None
        if control.p is None or control.p >= ALPHA or control.effect is None:
            return None
        if found.low is None or found.high is None:
            return None
        # The order of the two labels in a statement is arbitrary.
        least = max(math.log(found.low), -math.log(found.high))
        if least > abs(math.log(control.effect)):
            return None
        how = f"ratio {control.effect:.3f}, {probability(control.p, 3)}"
        return f"the A/A control differed as far ({how})"


def control_of(windows: Windows, design: CloudDesign, metrics: Sequence[str] = TESTED) -> Control:
    if not design.control or not design.places:
        return Control({}, dict.fromkeys(metrics, _NONE))
    entries, forbids = {}, {}
    for name in metrics:
        entries[name], why = _by(METRICS[name], windows, design)
        if why:
            forbids[name] = why
    return Control(entries, forbids)


def _by(
    metric: CloudMetric, windows: Windows, design: CloudDesign
) -> tuple[TakeawayEntry, str | None]:
    """Return the control's result by a metric, and why it forbids statements, if so."""
    reference, again = design.reference, design.reference + AA_SUFFIX
    found = observed(windows, metric, of_control(design.places, reference, again))
    relative = metric.scale == "log"
    (pair,) = (contrasts if relative else loss_contrasts)(found, FRAMEWORK)
    differs = pair.found is not None and _differs(pair.found)
    blocks = pair.found.n if pair.found else 0
    why = None
    if differs:
        why = f"the A/A control, {reference} against itself, differs by this metric"
    elif blocks < MIN_COUNT:
        why = (
            f"the A/A control has {counted(blocks, 'block')} by this metric, of which {MIN_COUNT} "
            "or more are needed"
        )
    effect, low, high = estimate(pair.found)
    told = Takeaway(
        f"{reference} differs from itself in {metric.words}",
        metric.words,
        (FRAMEWORK,),
        f"{'Wilcoxon signed rank' if relative else 'sign flips'} in blocks, over all of its cells",
        "held" if differs else "not held" if _alike(pair.found) else "undecided",
        _reason(pair.found, differs=differs),
        p=pair.found.p if pair.found else None,
        measure="ratio" if relative else "difference",
        effect=effect,
        low=low,
        high=high,
        compared=f"{again} against {reference}",
        detectable=pair.detectable,
        cliffs_delta=delta_of(pair.found),
    )
    return entry(told, metric, "tested"), why


def _differs(found: Paired | Shifted) -> bool:
    return found_shift(found) if isinstance(found, Shifted) else found_difference(found)


def _alike(found: Paired | Shifted | None) -> bool:
    if isinstance(found, Shifted):
        return found.n >= MIN_COUNT and found.arm_zeros == found.baseline_zeros == 1
    return found is not None and inside_margin(found)


def _reason(found: Paired | Shifted | None, *, differs: bool) -> str:
    if found is None:
        return "no block has values of both"
    if isinstance(found, Shifted):
        if _alike(found):
            return "all values are 0"
        return "the interval excludes a difference of 0" if differs else "no difference is shown"
    margin = f"+-{MARGIN * 100:.0f} %"
    if differs:
        return f"the whole interval lies outside {margin}"
    return (
        f"the interval lies inside {margin}"
        if _alike(found)
        else (f"the interval neither lies inside {margin} nor outside")
    )
