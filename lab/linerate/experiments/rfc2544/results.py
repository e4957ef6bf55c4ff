# SPDX-License-Identifier: BSD-3-Clause
"""Compute the results of searches from their records, by running the procedures again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from linerate.experiments.rfc2544.presets import Preset
from linerate.experiments.rfc2544.units import Unit, run_tests
from linerate.records.trial import Test, Trial
from linerate.trial.search.replay import EndOfRecordsError, MismatchError, Replay
from linerate.verdict.comparisons import Pairing

# The library wants one.
NO_LIMIT_S = 1e9


@dataclass
class Searched:
    """One unit: an arm's search in one block, with its trials."""

    arm: str
    block: int
    trials: list[Trial] = field(default_factory=list)
    unit: Unit = field(default_factory=Unit)
    # False: it was cut off.
    complete: bool = False
    # The test that the records end in.
    cut_in: Test | None = None
    # The records do not belong to this procedure.
    mismatch: str | None = None

    def pairing_of(self, *tests: Test) -> Pairing | None:
        """Return the one `Trial.pairing` of all trials of these tests: only such figures make
        pairs.

        None if there are no such trials, or if they are of several pairings.
        """
        pairings = {trial.pairing for trial in self.trials if trial.request.test in tests}
        return pairings.pop() if len(pairings) == 1 else None


def searched(
    trials: Iterable[Trial],
    preset: Preset,
    tests: Callable[[str], Sequence[Test]],
    blocks: int,
) -> list[Searched]:
    """Return the units of one cell, in the order in which they ran; `tests`: those of an arm's
    label.
    """
    units: dict[tuple[str, int], Searched] = {}
    for trial in trials:
        if trial.role == "search":
            key = (trial.arm, trial.block)
            units.setdefault(key, Searched(*key)).trials.append(trial)
    for each in units.values():
        _ask_again(each, preset, tests(each.arm), blocks)
    return list(units.values())


def _ask_again(found: Searched, preset: Preset, tests: Sequence[Test], blocks: int) -> None:
    max_pps = maximum_of(found.trials)
    if max_pps is None:
        return
    device = Replay(found.trials, max_pps)
    try:
        # The records end a search whose time was over; how long this takes says nothing.
        run_tests(device, replace(preset, limit_s=NO_LIMIT_S), tests, blocks, found.unit)
        found.complete = device.left == 0
    except EndOfRecordsError:
        found.cut_in = device.test
    except MismatchError as error:
        found.mismatch = str(error)


def maximum_of(trials: Sequence[Trial]) -> float | None:
    """Return 100 % of the search of these trials."""
    return next((trial.request.maximum_pps for trial in trials if trial.request.maximum_pps), None)
