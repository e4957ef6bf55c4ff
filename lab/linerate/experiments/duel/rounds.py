# SPDX-License-Identifier: BSD-3-Clause
"""A duel: its request, its rounds, and its result."""

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
    """The request. `within_s`: the time limit of the duel. `starts`: of each program in a round.
    `turns`: of each start in a round, of `turn_s`; standing starts have a window of so many
    `slices`. `check`: check sent packets first, on links where that is possible. `code`: accept
    equal code as an answer.
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
    """A round. `steal`: ticks of the forwarders' CPU that the hypervisor took. `alone`: results of
    standing starts while the others were stopped.
    """

    number: int
    windows: tuple[Window, ...]
    steal: int
    alone: tuple[Window, ...] = ()

    def figures(self, arm: int) -> list[float]:
        """Return packets per second of each start, in the order of the slots."""
        return [window.pps for window in self.windows if window.arm == arm]


@dataclass
class Duel:
    """The result; `fault`: why it is no comparison, if so. `rounds`: by `method`. `given_up`: an
    earlier comparison by standing starts that was not fair. `per`: the unit over which packets are
    counted. `works`: what each program did to the user's frames, if that was checked, and `unseen`:
    why it was not. `other_fault`: why the other program does not start either. `same_code`: the two
    run the same code with the same arguments; None: not checked.
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
        """The verdict's answer, unless it may not hold for the programs alone. Programs with the
        same code are equally fast, unless the figures contradict that.
        """
        if self.by_code:
            return "equal"
        return "undecided" if self.agreement.doubtful else self.verdict.answer

    @property
    def by_code(self) -> bool:
        """True if the answer is based on equal code, before the figures decide."""
        verdict = self.verdict
        return bool(
            self.same_code
            and len(verdict.rounds) >= MIN_ROUNDS
            and verdict.answer == "undecided"
            and not verdict.direction
            and verdict.within_margin
            and not verdict.unsound
        )
