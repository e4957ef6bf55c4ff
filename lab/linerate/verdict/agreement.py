# SPDX-License-Identifier: BSD-3-Clause
"""Check if two programs that share a core compare as they do when each runs alone."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

# The least number of rounds.
MIN_ROUNDS = 3
# Both ways may differ by so much, in the logarithm of a ratio.
AGREE = 0.02
# Standard errors beyond which a further difference is shown, and within which it is not excluded.
_BROKEN, _DOUBTFUL = 4.0, 1.0
# The least standard error for so few rounds.
_LEAST_ERROR = 0.002


@dataclass
class Agreement:
    """Agreement of two programs. They do not agree if one follows the wall clock: it also drains,
    waits or spins while other processes have the CPU. One round is one observation: the difference
    of two log ratios. The result changes how programs are compared, and never the answer to a
    comparison.
    """

    differences: list[float] = field(default_factory=list)

    def add(self, beside: float, alone: float) -> None:
        """Add a round: the log ratio of the programs beside each other, and each alone."""
        self.differences.append(beside - alone)

    @property
    def broken(self) -> bool:
        """True if the two comparisons differ by more than `AGREE`."""
        return len(self.differences) >= MIN_ROUNDS and self._beyond() > _BROKEN

    @property
    def doubtful(self) -> bool:
        """True if disagreement is not excluded: an answer must wait for another round."""
        return len(self.differences) >= MIN_ROUNDS and self._beyond() > _DOUBTFUL

    def _beyond(self) -> float:
        error = statistics.stdev(self.differences) / math.sqrt(len(self.differences))
        return (abs(statistics.fmean(self.differences)) - AGREE) / max(error, _LEAST_ERROR)
