# SPDX-License-Identifier: BSD-3-Clause
"""Select the records that count: one window of each cell and block, void ones repeated or not.

Only windows on one setup are compared: an interrupted block is finished on another one
(`Trial.pairing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from linerate.experiments.cloud.design.levels import Place, place_of
from linerate.experiments.cloud.window import levels_of
from linerate.records.trial import Kind, Trial
from linerate.verdict.programs import program_of

# Kind, load and number of tenants; and the setup.
_Alone = tuple[str, str, int, tuple[int, int]]


@dataclass(frozen=True)
class Windows:
    """The windows. `measured`: with a forwarder; `alone`: tenants without any. Each in the order of
    the run.

    For each, the window that is valid, or the last of those that were void.
    """

    measured: tuple[tuple[Place, Trial], ...]
    alone: tuple[tuple[Place, Trial], ...]

    @cached_property
    def _kinds(self) -> dict[str, Kind | None]:
        trials = [trial for _, trial in self.measured]
        names = {trial.forwarder for trial in trials}
        return {name: program_of(trials, name).kind for name in names}

    def kind_of(self, forwarder: str) -> Kind | None:
        """Return the kind of a forwarder that was measured; None if it was not, or is unknown."""
        return self._kinds.get(forwarder)

    @cached_property
    def _alone(self) -> dict[_Alone, Trial]:
        found: dict[_Alone, Trial] = {}
        for place, trial in self.alone:
            if trial.valid:
                cell = place.cell
                found[cell.kind, cell.load, cell.tenants, trial.pairing] = trial
        return found

    def beside_nobody(self, trial: Trial) -> Trial | None:
        """Return the same tenants on the same setup without a forwarder; None if not measured, or
        void.
        """
        cell = levels_of(trial)
        if cell is None:
            return None
        return self._alone.get((cell.kind, cell.load, cell.tenants, trial.pairing))


def windows_of(trials: Sequence[Trial]) -> Windows:
    found: dict[tuple[str, Place, int], Trial] = {}
    for trial in trials:
        place = place_of(trial)
        if place is None or trial.role not in {"measure", "alone"}:
            continue
        key = trial.role, place, trial.block
        if key not in found or not found[key].valid:
            found[key] = trial

    def of(role: str) -> tuple[tuple[Place, Trial], ...]:
        return tuple((key[1], trial) for key, trial in found.items() if key[0] == role)

    return Windows(of("measure"), of("alone"))
