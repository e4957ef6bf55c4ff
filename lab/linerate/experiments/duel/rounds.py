# SPDX-License-Identifier: BSD-3-Clause
"""A duel: what is asked of it, its rounds, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field

from linerate.experiments.duel.inspection import Work
from linerate.experiments.duel.verdict import Answer, Verdict
from linerate.trial.starts.clocks import Per
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.ways import Method
from linerate.trial.starts.window import Window
from linerate.verdict.agreement import MIN_ROUNDS, Agreement


@dataclass(frozen=True)
class Asked:
    """`within_s`: the time that the duel may take. `starts`: of each program in a round. `turns`:
    of each start in a round, of `turn_s`; standing starts have a window of so many `slices`.
    `check`: look at what is sent first, on links where that can be seen. `code`: the same code is
    an answer.
    """

    margin: float = 0.02
    within_s: float = 60.0
    starts: int = 4
    window_s: float = 0.45
    slices: int = 3
    turn_s: float = 0.05
    turns: int = 5
    seed: int = 1
    size: int = 64
    method: Method = "standing"
    per: Per = "cpu"
    check: bool = True
    code: bool = True


@dataclass(frozen=True)
class Round:
    """`steal`: ticks of the forwarders' CPU that the hypervisor took. `alone`: of standing starts,
    what each did while the others were stopped.
    """

    number: int
    windows: tuple[Window, ...]
    steal: int
    alone: tuple[Window, ...] = ()

    def figures(self, arm: int) -> list[float]:
        """Packets per second of each start, in the order of the slots."""
        return [window.pps for window in self.windows if window.arm == arm]


@dataclass
class Duel:
    """What was found; `fault`: why it is no comparison, if so. `rounds`: by `method`. `given_up`:
    the comparison by standing starts that came before, and was no fair one. `per`: what packets are
    counted over. `works`: what each program made of the user's frames, where that was looked at,
    and `unseen`: why it was not. `other_fault`: why the other program does not start either.
    `same_code`: the two run the same code with the same arguments; None: not looked at.
    """

    verdict: Verdict
    rounds: list[Round] = field(default_factory=list)
    method: Method = "standing"
    per: Per = "cpu"
    agreement: Agreement = field(default_factory=Agreement)
    given_up: Verdict | None = None
    works: tuple[Work, ...] = ()
    unseen: str | None = None
    fault: FaultError | None = None
    other_fault: FaultError | None = None
    same_code: bool | None = None
    took_s: float = 0.0

    @property
    def answer(self) -> Answer:
        """The verdict's, unless it may not hold for the programs by themselves. Those that run the
        same code are as fast as each other, unless the figures contradict that.
        """
        if self.by_code:
            return "equal"
        return "undecided" if self.agreement.doubtful else self.verdict.answer

    @property
    def by_code(self) -> bool:
        """Whether it is the same code that answers, before the figures do."""
        verdict = self.verdict
        return bool(
            self.same_code
            and len(verdict.rounds) >= MIN_ROUNDS
            and verdict.answer == "undecided"
            and not verdict.direction
            and verdict.within_margin
            and not verdict.unsound
        )
