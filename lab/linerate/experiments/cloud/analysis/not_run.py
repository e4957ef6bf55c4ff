# SPDX-License-Identifier: BSD-3-Clause
"""Cells that were requested and not measured: nothing is dropped silently.

Levels that the machine does not support, and for each framework the missing windows, by reason: its
own rate was not found, the windows were void, or the run ended before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import NOBODY, Place
from linerate.experiments.cloud.design.plan import alone
from linerate.host.text import counted
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import NotRun, OwnRate
from linerate.records.trial import Trial

# A framework and a reason.
_Group = tuple[str, str]


def not_run(
    design: CloudDesign, windows: Windows, rates: Sequence[OwnRate], *, interrupted: bool
) -> list[NotRun]:
    # Blocks run one after the other: a cell without trials in a finished block could not be run.
    over = not interrupted or any(trial.block for _, trial in windows.measured)
    unknown = {(rate.framework, rate.size) for rate in rates if over and rate.pps is None}
    blocks = design.blocks
    by_place: dict[Place, list[Trial]] = {}
    for place, trial in [*windows.measured, *windows.alone]:
        by_place.setdefault(place, []).append(trial)
    every = [*design.places, *alone(design.places)]
    cells: dict[_Group, dict[Place, None]] = {}
    trials: dict[_Group, int] = {}
    for place in every:
        began = by_place.get(place, [])
        for reason, count in _missing(place, began, blocks, unknown, _ended(design, interrupted)):
            group = place.framework, reason
            cells.setdefault(group, {})[place] = None
            trials[group] = trials.get(group, 0) + count
    planned: dict[str, int] = {}
    for place in every:
        planned[place.framework] = planned.get(place.framework, 0) + 1
    return [
        *design.not_held,
        *(
            NotRun(
                what=_what(framework, len(found), planned[framework]),
                reason=reason,
                cells=len(found),
                trials=trials[framework, reason],
                places=[place.words for place in found],
            )
            for (framework, reason), found in cells.items()
        ),
    ]


def _ended(design: CloudDesign, interrupted: bool) -> str:
    """Return why there are no windows that were not begun."""
    if not interrupted:
        return "no window is on record"
    if design.minutes is not None:
        return (
            f"did not fit into --minutes {design.minutes:g}, or the run was ended: --resume goes "
            "on with it"
        )
    return "the run ended before: --resume goes on with it"


def _missing(
    place: Place,
    began: Sequence[Trial],
    blocks: int,
    unknown: set[tuple[str, int]],
    ended: str,
) -> Iterator[tuple[str, int]]:
    """Return the reasons why blocks have no valid window of a cell, with the number of blocks for
    each.
    """
    void = Counter(trial.invalid_code or "error" for trial in began if not trial.valid)
    for code, count in void.items():
        why = "the sender was late in every window" if code == "late" else f"invalid: {code}"
        yield why, count
    if (rest := blocks - len(began)) > 0:
        framework = place.framework.removesuffix(AA_SUFFIX)
        lacks = (framework, place.size) in unknown
        yield (f"its rate alone at {place.size} B is unknown" if lacks else ended), rest


def _what(framework: str, cells: int, planned: int) -> str:
    who = "tenants alone" if framework == NOBODY else framework
    return f"{who}: {cells} of {counted(planned, 'cell')}"
