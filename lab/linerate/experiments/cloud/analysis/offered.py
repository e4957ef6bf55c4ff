# SPDX-License-Identifier: BSD-3-Clause
"""Check that frame sizes and frameworks were offered the same share of their own capacity.

Beside tenants a frame size at a quarter of its NDR loses less than another at three quarters,
regardless of its size. If shares differ, there is no statement about the factor by which they
differ: today's runs have one share for all, but older, merged and resumed ones may not. If the
searches for an NDR did not agree, its share is not known, and there is no statement about sizes or
frameworks. If 100 % was given (--line-rate) all were offered the same rate, and shares are unknown.
"""

from __future__ import annotations

from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.levels import FRAMEWORK, SIZE
from linerate.experiments.cloud.session.own_rate import agree
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import TakeawayEntry

# The largest difference of two shares; an NDR is only known to 2 %.
_SAME = 0.02
_Shares = dict[tuple[str, int], float]


class Offered:
    """The result. `forbids`: by factor, why there is no statement about it."""

    def __init__(self, windows: Windows) -> None:
        self.forbids: dict[str, str] = {}
        # Only windows measured together are compared.
        together: dict[tuple[int, int], _Shares] = {}
        for place, trial in windows.measured:
            full_pps, ndr_pps = trial.request.maximum_pps, trial.request.alone_pps
            if trial.valid and full_pps and ndr_pps:
                framework = place.framework.removesuffix(AA_SUFFIX)
                again_pps = trial.request.alone_again_pps
                if again_pps is not None and not agree(ndr_pps, again_pps):
                    self._unknown(framework, place.size, ndr_pps, again_pps)
                together.setdefault(trial.pairing, {})[framework, place.size] = full_pps / ndr_pps
        for shares in together.values():
            for each in sorted({framework for framework, _ in shares}):
                mine = {f"{size} B": s for (name, size), s in shares.items() if name == each}
                self._compare(SIZE, f"frame sizes with {each}", mine)
            for size in sorted({size for _, size in shares}):
                mine = {name: s for (name, at), s in shares.items() if at == size}
                self._compare(FRAMEWORK, f"frameworks at {size} B", mine)

    def _unknown(self, framework: str, size: int, ndr_pps: float, again_pps: float) -> None:
        found = (
            f"the highest two searches found {ndr_pps / 1e3:,.1f} and {again_pps / 1e3:,.1f} kpps"
            if again_pps
            else "only one search found a rate"
        )
        for factor in (SIZE, FRAMEWORK):
            self.forbids.setdefault(
                factor, f"what {framework} carries alone at {size} B is not known: {found}"
            )

    def _compare(self, factor: str, what: str, shares: dict[str, float]) -> None:
        if max(shares.values()) > min(shares.values()) * (1 + _SAME):
            rising = sorted((share, level) for level, share in shares.items())
            told = ", ".join(f"{share:.0%} ({level})" for share, level in rising)
            self.forbids.setdefault(
                factor, f"{what} were offered different shares of their NDR: {told}"
            )

    def judged(self, found: TakeawayEntry) -> TakeawayEntry:
        """Return the same entry, undecided if it is about a factor whose levels were offered
        different shares.
        """
        why = next((self.forbids[each] for each in found.about if each in self.forbids), None)
        if why is None:
            return found
        return found.model_copy(update={"verdict": "undecided", "reason": why})
