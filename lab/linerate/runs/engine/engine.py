# SPDX-License-Identifier: BSD-3-Clause
"""The session of any experiment: runs its plan's steps (`linerate.runs.plans.steps`) one by one.

Lifecycle: a context manager, made once for a session. Its journal has the measured trials
(`linerate.runs.engine.ledger`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from rich.console import Console

from linerate.host.cores import cpus
from linerate.host.process import RunDirectory, pause
from linerate.links.eal import Memory
from linerate.records.journal import Journal
from linerate.records.trial import DISTURBED, Trial
from linerate.runs.engine import preparation
from linerate.runs.engine.ledger import Ledger, TimeIsUpError, place_of
from linerate.runs.engine.setups import setup_of
from linerate.runs.engine.started import StartedDevice, device_of
from linerate.runs.engine.together import share_core, take_turns
from linerate.runs.plans.steps import (
    Announce,
    Attempts,
    BlockOver,
    GiveUp,
    More,
    Once,
    OnSetup,
    Rest,
    Say,
    SessionPlan,
    Standing,
    Start,
    Step,
    Steps,
    Turns,
)
from linerate.runs.progress import Monitor, say
from linerate.trial.trial import Bench, Plan, run_trial

T = TypeVar("T")


class Engine:
    """One session of a run. `warnings`: those known before the run begins."""

    def __init__(
        self,
        plan: SessionPlan,
        run: RunDirectory,
        journal: Journal,
        console: Console,
        warnings: Sequence[str] = (),
        *,
        outweighs: bool = False,
    ) -> None:
        """Prepare. `outweighs`: processes of the lab outweigh others on their CPUs."""
        self.plan = plan
        self.journal = journal
        self.console = console
        self.unfinished = False
        self._outweighs = outweighs
        self.cores = cpus.Cores.choose()
        plan.bench = Bench(
            run=run,
            cores=self.cores,
            memory=Memory.choose(plan.hugepages),
            experiment=plan.name,
            seed=plan.seed,
            window_s=plan.window_s,
            session=journal.session,
            ip=plan.ip,
            directions=plan.directions,
        )
        self.monitor = Monitor(console, plan.total, plan.unit)
        self.ledger = Ledger(plan, journal, self.monitor)
        self._before = list(warnings)
        for warning in warnings:
            plan.warn(warning)
        # The same list: a plan decides from it.
        plan.trials = journal.trials
        self._held = ExitStack()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def bench(self) -> Bench:
        return self.plan.bench

    @property
    def warnings(self) -> list[str]:
        return self.plan.warnings

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def prepare(self) -> None:
        """Check for everything that may be missing; raises `LabError`."""
        self._held.enter_context(self.plan.held())
        self.ledger.clock = preparation.prepare(self.plan, outweighs=self._outweighs)

    def programs(self) -> dict[str, str]:
        """Return the SHA-256 of the programs that take part, after `prepare`."""
        return preparation.programs(self.plan)

    def measure(self) -> None:
        """Run the plan's steps, from the first to the last or to the end of the budget."""
        self.ledger.begin()
        with self.monitor:
            for warning in self._before:
                self.monitor.announce(warning)
            try:
                self._go(self.plan.steps())
            except TimeIsUpError:
                self.unfinished = True
                return
        self.journal.finish()

    def _go(self, steps: Steps[T]) -> T:
        """Run these steps, and return their result."""
        try:
            step = next(steps)
            while True:
                step = steps.send(self._do(step))
        except StopIteration as end:
            found: T = end.value
            return found
        finally:
            steps.close()

    def _do(self, step: Step) -> Any:
        match step:
            case Announce():
                self.monitor.announce(step.text)
            case Say():
                say(self.console, step.text)
            case More():
                self.monitor.add(step.trials)
            case BlockOver():
                self.monitor.block_over()
            case OnSetup():
                with setup_of(self.plan, step.cell, flood=step.flood, sender=step.sender) as setup:
                    return self._go(step.steps(setup))
            case Rest():
                self.ledger.may_begin()
                self.monitor.announce(f"{step.why}; again in {step.seconds:g} s")
                pause(step.seconds)
            case GiveUp():
                with self.ledger.giving_up(step):
                    self._go(step.steps())
            case Once():
                return self._once(step)
            case Start():
                return self._start(step)
            case Standing():
                share_core(self.plan, self.ledger, step)
            case Turns():
                take_turns(self.plan, self.ledger, step)
            case Attempts():
                return self._attempts(step)
            case _:
                raise TypeError(f"{step!r} is no step")
        return None

    def _once(self, step: Once) -> Trial:
        setup, arm = step.setup, step.arm
        trial = self.journal.replay(**place_of(setup, arm, step.block, step.role), load=step.load)
        if trial:
            self.ledger.passed(trial, counts=step.counts)
            return trial
        self.ledger.may_begin()
        bench = self.bench
        if step.window_s is not None:
            bench = replace(bench, window_s=step.window_s)
        plan = Plan(
            arm, step.load, step.block, len(self.trials), step.role, probe=step.role == "probed"
        )
        trial = run_trial(bench, plan, setup)
        self.ledger.record(trial)
        self.ledger.ran(trial, counts=step.counts)
        if step.fails:
            self.ledger.count(trial.invalid_why, trial)
        return trial

    def _start(self, step: Start) -> Any:
        self.ledger.may_begin(begun=self.ledger.replaying)
        where = (step.setup.link.name, step.setup.context.size, step.arm.label)
        if step.told:
            self.monitor.begin(*where, step.block)
        before = len(self.trials)
        with device_of(
            self.bench, step.setup, step, step.arm, step.role, self.ledger.record,
            max_pps=step.max_pps,
        ) as device:  # fmt: skip
            device.test = step.test
            place = place_of(step.setup, step.arm, step.block, step.role) | dict(step.of)
            started = StartedDevice(
                self.ledger, device, step.arm, place, each_fails=step.each_fails
            )
            found = step.procedure(started)
        mine = self.trials[before:]
        run = [trial for trial in mine if trial.session == self.journal.session]
        fresh = bool(run)
        if step.told or step.role == "self-test":
            for trial in run:
                if trial.invalid and trial.invalid_code not in DISTURBED:
                    self.monitor.complain(trial)
        if step.told:
            self.monitor.item(*where, step.told(found), fresh=fresh)
        if step.failed and mine:
            # Results of earlier sessions stand, and do not end this one.
            self.ledger.count(step.failed(found) if fresh else None, mine[-1])
        return found

    def _attempts(self, step: Attempts) -> Trial:
        most = step.most
        tried = starts = 0
        last: Trial | None = None
        fresh = False

        def over() -> bool:
            return last is not None and (
                last.valid or tried >= most.windows or starts >= most.starts
            )

        def failed(trial: Trial) -> bool:
            return not trial.valid and trial.invalid_code not in most.disturbed

        while not over() and (
            passed := self.ledger.replayed(step.due(tried + 1), first=tried == 0)
        ):
            tried, last = tried + 1, passed
            starts += failed(passed)
        while not over():
            self.ledger.may_begin(begun=fresh)
            before, fresh = len(self.trials), True
            last = step.run(tried + 1, self.ledger.record)
            tried += len(self.trials) - before
            starts += failed(last)
        assert last
        if fresh:
            self.ledger.ran(last, counts=step.counts)
            if step.fails:
                self.ledger.count(last.invalid_why, last)
        else:
            self.ledger.passed(last, counts=step.counts)
        return last
