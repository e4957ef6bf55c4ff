# SPDX-License-Identifier: BSD-3-Clause
"""The session of any experiment: takes its plan's steps (`linerate.runs.plans.steps`) one by one.

Lifecycle: a context manager, made once for a session. Resume, progress, failures in a row, the
budget of time and the places where a signal is noticed are here, and nowhere else. What was
measured is in its journal.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from rich.console import Console

from linerate.forwarders import forwarder
from linerate.host import cpus
from linerate.host.builds.plugins import probe_plugin
from linerate.host.errors import HopelessError, TrialError, UsageError
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory, checkpoint
from linerate.links import Link, LinkContext, Wire
from linerate.links.eal import Memory
from linerate.links.ports import Ports
from linerate.records.cells import Arm, Cell
from linerate.records.journal import Journal
from linerate.records.trial import Role, Trial, field
from linerate.runs import provenance
from linerate.runs.plans.steps import (
    Announce,
    Attempts,
    BlockOver,
    GiveUp,
    More,
    Once,
    OnSetup,
    Say,
    SessionPlan,
    Standing,
    Start,
    Step,
    Steps,
    Turns,
)
from linerate.runs.progress import Monitor, say
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.traffic.sender import Sender
from linerate.trial.clock_check import ClockCheck, check_clock
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Outcome, TestedDevice
from linerate.trial.search.replay import Resumed
from linerate.trial.search.setup_device import DISTURBED, SetupDevice
from linerate.trial.starts.taking_turns import TakingTurns
from linerate.trial.starts.trials import stand
from linerate.trial.starts.ways import room
from linerate.trial.trial import Bench, Plan, run_trial

T = TypeVar("T")

# Of the frames that another generator is asked for before it is used; any takes this size.
SAMPLE_SIZE = 512


class _TimeIsUpError(Exception):
    """The session's budget is used up before a trial that is not on record."""


class _GivenUpError(Exception):
    """Too many starts failed in a row within a `GiveUp`."""


class Engine:
    """One session of a run. `warnings`: what is known of the run before it begins."""

    def __init__(
        self,
        plan: SessionPlan,
        run: RunDirectory,
        journal: Journal,
        console: Console,
        warnings: Sequence[str] = (),
    ) -> None:
        self.plan = plan
        self.run = run
        self.journal = journal
        self.console = console
        self.unfinished = False
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
        self.clock: ClockCheck | None = None
        self.monitor = Monitor(console, plan.total, plan.unit)
        self._before = list(warnings)
        for warning in warnings:
            plan.warn(warning)
        # The same list: a plan decides from it.
        plan.trials = journal.trials
        self._held = ExitStack()
        self._failures = 0
        self._giving_up = False
        self._deadline = float("inf")

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

    # -- before the first trial ----------------------------------------------------------------

    def prepare(self) -> None:
        """Look for everything that can be missing; raises `LabError`."""
        needs = self.plan.needs
        self._held.enter_context(self.plan.held())
        self.plan.prepare()
        for name in dict.fromkeys(needs.forwarders):
            forwarder(name).prepare()
        links = [self.plan.link(name) for name in dict.fromkeys(needs.links)]
        for each in links:
            each.prepare()
            if isinstance(each, Ports) and not self.bench.memory.hugepages:
                each.without_hugepages()
            for name in dict.fromkeys(needs.forwarders):
                if why := forwarder(name).plugin_misfit(each):
                    raise UsageError(f"--forwarders {name}: {why[0]}", why[1])
        if self._generator:
            rust_binary("generator")
        for name in needs.others:
            rust_binary(name)
        if needs.probe:
            probe_plugin()
        if needs.sender:
            for each in links:
                self.warnings.extend(needs.sender.prepare(self._sample(each)))
        # Another generator is not on this machine's cores.
        shared = self.cores.shared_core and self._generator
        self.warnings.extend(cpus.ready(replace(self.cores, shared_core=shared), self.bench.host))
        if needs.clock:
            self.clock = check_clock(self.bench)
            if complaint := self.clock.complaint():
                self.plan.warn(complaint)
            self.plan.bench = replace(self.bench, tsc_hz=self.clock.told_hz)

    @property
    def _generator(self) -> bool:
        """Whether ours sends."""
        needs = self.plan.needs
        return not needs.sender and any(self.plan.link(name).has_generator for name in needs.links)

    def _sample(self, found: Link) -> Traffic:
        """What another generator has to understand, in short."""
        locations = found.locations if isinstance(found, Ports) else ()
        senders = self.bench.senders(len(locations))
        return Traffic(locations, SAMPLE_SIZE, 0.1, 1000.0, senders=senders, ip=self.bench.ip)

    def programs(self) -> dict[str, str]:
        """SHA-256 of the programs that take part, after `prepare`."""
        needs = self.plan.needs
        known = provenance.programs(
            needs.forwarders, generator=self._generator, probe=needs.probe, others=needs.others
        )
        return known | self.plan.programs()

    # -- the steps -----------------------------------------------------------------------------

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def measure(self) -> None:
        """Take the plan's steps, from the first to the last or to the end of the budget."""
        if self.plan.minutes is not None:
            self._deadline = time.monotonic() + self.plan.minutes * 60
        with self.monitor:
            for warning in self._before:
                self.monitor.announce(warning)
            try:
                self._go(self.plan.steps())
            except _TimeIsUpError:
                self.unfinished = True
                return
        self.journal.finish()

    def _go(self, steps: Steps[T]) -> T:
        """Take these steps, and return what they come to."""
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
                with self._setup(step.cell, flood=step.flood, sender=step.sender) as setup:
                    return self._go(step.steps(setup))
            case GiveUp():
                self._tolerate(step)
            case Once():
                return self._once(step)
            case Start():
                return self._start(step)
            case Standing():
                self._stand(step)
            case Turns():
                self._take_turns(step)
            case Attempts():
                return self._attempts(step)
            case _:
                raise TypeError(f"{step!r} is no step")
        return None

    def _setup(self, cell: Cell, *, flood: bool, sender: bool = True, number: int = 0) -> LinkSetup:
        """`number`: of setups that are open at once."""
        plan, bench = self.plan, self.bench

        def ours(wire: Wire) -> Sender:
            return Generator(
                self.run,
                self.cores.control,
                bench.memory,
                wire,
                flood=flood,
                late_after_us=plan.late_after_us,
            )

        found, other = plan.link(cell.link), plan.needs.sender
        directory = self.run.path / f"link{number}" if number else self.run.path
        directory.mkdir(exist_ok=True)
        context = LinkContext(
            directory,
            cell.size,
            bench.memory.hugepages,
            bench.cores,
            receive_first=plan.receive_first,
            host=bench.host,
            number=number,
        )
        start = other.start if other else ours
        return LinkSetup(found, context, start if sender and found.has_generator else None)

    def _tolerate(self, step: GiveUp) -> None:
        done, self._failures, self._giving_up = self.monitor.done, 0, True
        try:
            self._go(step.steps())
        except _GivenUpError:
            self.monitor.skip(step.trials - (self.monitor.done - done))
            self.plan.warn(
                f"{step.what} after {self.plan.failures.most} failures in a row; the last one: "
                f"{self.trials[-1].invalid}"
            )
        finally:
            self._failures, self._giving_up = 0, False

    def _once(self, step: Once) -> Trial:
        setup, arm = step.setup, step.arm
        trial = self.journal.replay(**_place(setup, arm, step.block, step.role), load=step.load)
        if trial:
            self.passed(trial, counts=step.counts)
            return trial
        self._may_begin()
        bench = self.bench
        if step.window_s is not None:
            bench = replace(bench, window_s=step.window_s)
        plan = Plan(
            arm, step.load, step.block, len(self.trials), step.role, probe=step.role == "probed"
        )
        trial = run_trial(bench, plan, setup)
        self._record(trial)
        self.ran(trial, counts=step.counts)
        if step.fails:
            self.count(trial.invalid_why)
        return trial

    def _stand(self, step: Standing) -> None:
        setup, left = step.setup, list(step.items)
        while left:
            role, arm = left[0]
            passed = self.journal.replay(**_place(setup, arm, step.block, role), load="self-driven")
            if passed is None:
                break
            self.passed(passed, counts=True)
            left.pop(0)
        for items in self._at_once(left, setup.link):
            self._may_begin()
            for trial in stand(self.bench, setup, items, step.block):
                self._record(trial)
                self.ran(trial, counts=True)
                self.count(trial.invalid_why)

    def _take_turns(self, step: Turns) -> None:
        # Places in the block are those of its starts, whatever link each is on.
        slots = itertools.count()
        for items in self._at_once(step.items, self.plan.link(step.cell.link)):
            self._may_begin(begun=self.journal.peek() is not None)
            with ExitStack() as stack:
                devices, started = [], []
                for number, (role, arm) in enumerate(items):
                    setup = stack.enter_context(
                        self._setup(step.cell, flood=step.flood, number=number)
                    )
                    setup.slots = slots
                    device = stack.enter_context(
                        SetupDevice(
                            self.bench, setup, arm, block=step.block, max_pps=step.max_pps,
                            terms=step.terms, record=self._record, role=role, probe=step.probe,
                            method="turns",
                        )
                    )  # fmt: skip
                    device.test = step.test
                    devices.append(device)
                    place = _place(setup, arm, step.block, role)
                    started.append(_Started(self, device, place, each_fails=True))
                stack.enter_context(TakingTurns(devices))
                for each in started:
                    step.procedure(each)

    def _at_once(
        self, items: Sequence[tuple[Role, Arm]], link: Link
    ) -> Iterator[Sequence[tuple[Role, Arm]]]:
        """As many at a time as memory takes, in groups of about the same size."""
        if not items:
            return
        programs = [forwarder(arm.forwarder) for _, arm in items]
        groups = math.ceil(len(items) / max(room(self.bench.memory, programs, link), 1))
        for group in range(groups):
            yield items[group * len(items) // groups : (group + 1) * len(items) // groups]

    def _start(self, step: Start) -> Any:
        self._may_begin(begun=self.journal.peek() is not None)
        where = (step.setup.link.name, step.setup.context.size, step.arm.label)
        if step.told:
            self.monitor.begin(*where, step.block)
        before = len(self.trials)
        with SetupDevice(
            self.bench,
            step.setup,
            step.arm,
            block=step.block,
            max_pps=step.max_pps,
            terms=step.terms,
            record=self._record,
            role=step.role,
            probe=step.probe,
            spans=step.spans,
        ) as real:
            real.test = step.test
            place = _place(step.setup, step.arm, step.block, step.role) | dict(step.of)
            found = step.procedure(_Started(self, real, place, each_fails=step.each_fails))
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
            # What earlier sessions found stands, and does not end this one.
            self.count(step.failed(found) if fresh else None)
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

        while not over() and (passed := self._replayed(step.due(tried + 1), first=tried == 0)):
            tried, last = tried + 1, passed
            starts += failed(passed)
        while not over():
            self._may_begin(begun=fresh)
            before, fresh = len(self.trials), True
            last = step.run(tried + 1, self._record)
            tried += len(self.trials) - before
            starts += failed(last)
        assert last
        if fresh:
            self.ran(last, counts=step.counts)
            if step.fails:
                self.count(last.invalid_why)
        else:
            self.passed(last, counts=step.counts)
        return last

    def _replayed(self, due: Any, *, first: bool) -> Trial | None:
        """An attempt as it is on record; None: there is no further of this trial."""
        found = self.journal.peek()
        if not first and found and any(field(found, name) != due[name] for name in due):
            return None
        return self.journal.replay(**due)

    # -- what all of them do -------------------------------------------------------------------

    def _may_begin(self, *, begun: bool = False) -> None:
        """Before what is not on record. `begun`: it is a part of what was begun in time."""
        checkpoint()
        if not begun and time.monotonic() >= self._deadline:
            raise _TimeIsUpError

    def _record(self, trial: Trial) -> None:
        trial.identity.position = len(self.trials)
        if self.clock:
            self.clock.enter(trial)
        self.journal.add(trial)
        if trial.invalid_code in DISTURBED:
            self.monitor.void()

    def ran(self, trial: Trial, *, counts: bool) -> None:
        if counts:
            self.monitor.finished(trial)
        elif trial.invalid:
            self.monitor.complain(trial)

    def passed(self, trial: Trial, *, counts: bool) -> None:
        if counts:
            self.monitor.replayed(trial)
            # A run that ended because all failed is resumed to try again.
            self._failures = 0

    def count(self, why: str | None) -> None:
        """Of what may fail many times in a row. `why` it did; None: it did not."""
        self._failures = self._failures + 1 if why is not None else 0
        limit = self.plan.failures
        if self._failures < limit.most or self.plan.keep_going:
            return
        if self._giving_up:
            raise _GivenUpError
        raise HopelessError(f"{limit.most} {limit.what}", why, limit.hint)


def _place(setup: LinkSetup, arm: Arm, block: int, role: Role) -> dict[str, object]:
    """The fields by which the records of a start are known."""
    return {
        "link": setup.link.name,
        "size": setup.context.size,
        "arm": arm.label,
        "block": block,
        "role": role,
    }


class _Started:
    """A `linerate.runs.plans.steps.Started`."""

    def __init__(
        self, engine: Engine, real: SetupDevice, place: dict[str, object], *, each_fails: bool
    ) -> None:
        """`place`: by which fields its records are known."""
        self._engine = engine
        self._real = real
        self._place = place
        self._first = len(engine.trials)
        self._each_fails = each_fails
        self._device = self._resumed(place)

    def _resumed(self, of: dict[str, object]) -> Resumed:
        device = Resumed(self._real, self._engine.journal, of)
        device.test = self._real.test
        return device

    @property
    def device(self) -> TestedDevice:
        return self._device

    @property
    def trials(self) -> list[Trial]:
        return self._engine.trials[self._first :]

    def measure(
        self, pps: float, seconds: float, *, latency: bool = False, **of: Any
    ) -> Outcome | None:
        engine = self._engine
        for name, value in of.items():
            setattr(self._real, name, value)
        checkpoint()
        before = len(engine.trials)
        try:
            found = self._resumed(self._place | of).send(pps, seconds, latency=latency)
        except TrialError:
            # Its windows are on record.
            found = None
        if len(engine.trials) > before:
            last = engine.trials[-1]
            fresh = last.session == engine.journal.session
            (engine.monitor.finished if fresh else engine.monitor.replayed)(last)
            if self._each_fails:
                # Also of earlier sessions: what was given up stays so.
                engine.count(None if found else last.invalid_why)
        return found

    def flood(self) -> Trial:
        engine = self._engine
        trial = engine.journal.replay(**self._place, load="flood")
        if trial:
            engine.passed(trial, counts=True)
            return trial
        checkpoint()
        trial = self._real.flood(engine.bench.window_s)
        engine.ran(trial, counts=True)
        engine.count(trial.invalid_why)
        return trial

    def skip(self, trials: int) -> None:
        self._engine.monitor.skip(trials)
