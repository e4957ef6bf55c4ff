# SPDX-License-Identifier: BSD-3-Clause
"""One trial: start the forwarder, let it work, read it, stop it.

Lifecycle: the forwarder lives for one trial; the link and the sender at its other end live for a
block (`linerate.bed`). A trial that fails becomes a record with `invalid`; only errors that would
spoil every trial (a missing program) leave this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import cast

from pydantic import ValidationError

from linerate import books
from linerate.bed import Bed
from linerate.cpus import Cores, cpu_times
from linerate.design import Arm
from linerate.eal import Memory
from linerate.errors import GeneratorError, TelemetryError, TrialError
from linerate.forwarders import Forwarder, forwarder
from linerate.otg import Traffic
from linerate.process import Activity, Child, RunDirectory
from linerate.records import InvalidCode, Load, Polling, Process, Role, Trial
from linerate.sender import Sender, Sent
from linerate.telemetry import Reading, Telemetry, ask_when_known, connect, socket_path

START_TIMEOUT_S = 10.0
LINK_TIMEOUT_S = 12.0
SETTLE_TIMEOUT_S = 2.0
WARM_UP_S = 0.05
# Long enough that the one wake-up of the lab after it is no part of it, and that a short gap of the
# machine's own is under the limit of lateness.
PACED_WINDOW_S = 1.0
AFTER_S = 0.02
# Share of the window at its beginning and end that the figures of polls leave out.
EDGE = 0.15
# A forwarder that waited for its CPU for more of its time than this was not measured.
STARVED = 0.25
# Packets per port that may be under way inside a forwarder when its counters are read.
UNDER_WAY = 256
# The forwarder's counters may be read this much apart before the window's length is in doubt.
UNCERTAINTY_LIMIT = 0.005


@dataclass(frozen=True)
class Bench:
    """What all trials of a run share."""

    run: RunDirectory
    cores: Cores
    memory: Memory
    experiment: str
    seed: int
    window_s: float
    tsc_hz: int | None = None


@dataclass(frozen=True)
class Plan:
    """One trial to come."""

    arm: Arm
    load: Load
    block: int
    position: int
    role: Role = "measure"
    load_share: float | None = None
    pps: float | None = None
    # The probe is in the forwarder.
    probe: bool = False


def run_trial(bench: Bench, plan: Plan, bed: Bed) -> Trial:
    """Run one trial on this bed and return its record, whatever happens in it."""
    trial = Trial(
        experiment=bench.experiment,
        seed=bench.seed,
        block=plan.block,
        position=plan.position,
        role=plan.role,
        arm=plan.arm.label,
        forwarder=plan.arm.forwarder,
        link=bed.link.name,
        size=bed.context.size,
        load=plan.load,
        load_share=plan.load_share,
        probe=plan.probe,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        tsc_hz=bench.tsc_hz,
        memory="hugepages" if bench.memory.hugepages else "no-huge",
    )
    steal = cpu_times()
    try:
        _Attempt(bench, plan, bed, trial).go()
    except TrialError as error:
        # The cause is better news than what was noticed on the way.
        trial.invalid = None
        trial.reject(cast(InvalidCode, error.code), str(error.message))
    after = cpu_times()
    for cpu in sorted({bench.cores.control, bench.cores.forwarder}):
        trial.steal_ticks[str(cpu)] = after[cpu].steal - steal[cpu].steal
    return trial


class _Attempt:
    """The steps of one trial, filling its record as they go."""

    def __init__(self, bench: Bench, plan: Plan, bed: Bed, trial: Trial) -> None:
        self.bench = bench
        self.plan = plan
        self.wire, self.sender = bed.ready()
        self.ports = bed.link.ports
        self.trial = trial
        self.forwarder: Forwarder = forwarder(plan.arm.forwarder)
        self.probed = plan.probe

    def go(self) -> None:
        sender = self.sender
        if sender:
            sender.check()
            sender.configure(self._traffic())
        prefix = self.bench.run.new_prefix("forwarder")
        command = self.forwarder.command(
            self.bench.cores.forwarder, self.bench.memory, prefix, self.wire, probed=self.probed
        )
        self.trial.build = self.forwarder.build_facts()
        with Child(command, self.bench.run) as child:
            children = [child, *([sender.child] if sender and sender.child else [])]
            self._describe(children)
            path = socket_path(self.bench.run.path, prefix)
            with connect(path, START_TIMEOUT_S, child.check) as telemetry:
                before = [each.activity() for each in children]
                try:
                    if sender:
                        self._with_sender(sender, telemetry, child)
                    else:
                        self._self_driven(telemetry, child)
                except TrialError:
                    # The cause is better news than the symptom.
                    for each in children:
                        each.check()
                    raise
                for index, each in enumerate(children):
                    self._activity(index, before[index], each.activity())

    def _describe(self, children: list[Child]) -> None:
        self.trial.processes = [
            Process(
                role=child.command.role,
                argv=list(child.command.argv),
                cpus=list(child.command.cpus),
            )
            for child in children
        ]

    def _activity(self, index: int, before: Activity, after: Activity) -> None:
        process = self.trial.processes[index]
        process.voluntary_switches = after.voluntary - before.voluntary
        process.involuntary_switches = after.involuntary - before.involuntary
        process.ran_s = after.ran_s - before.ran_s
        process.waited_s = after.waited_s - before.waited_s
        total = process.ran_s + process.waited_s
        if process.role == "forwarder" and total and process.waited_s / total > STARVED:
            self.trial.reject(
                "starved",
                f"others had the forwarder's CPU for {process.waited_s / total:.0%} of the time",
            )

    def _traffic(self) -> Traffic:
        locations = self.wire.locations
        pps = self.plan.pps / len(locations) if self.plan.pps else None
        seconds = PACED_WINDOW_S if pps else self.bench.window_s
        return Traffic(locations, self.trial.size, seconds, pps)

    # -- a link whose ports make their own frames ------------------------------------------------

    def _self_driven(self, telemetry: Telemetry, child: Child) -> None:
        """Differences of running counters: nothing is lost here, so nothing must settle."""
        child.wait_until(
            lambda: _counters(telemetry, self.ports)[0] > 0,
            START_TIMEOUT_S,
            "the forwarder forwards nothing",
        )
        time.sleep(WARM_UP_S)
        self._await_polling(telemetry, child)
        polling = self._polling(telemetry)
        first = [telemetry.read_tight(f"/ethdev/stats,{n}") for n in range(self.ports)]
        time.sleep(self.bench.window_s)
        child.check()
        last = [telemetry.read_tight(f"/ethdev/stats,{n}") for n in range(self.ports)]
        self.trial.polling = _difference(polling, self._polling(telemetry))
        duration_ns = last[0].at_ns - first[0].at_ns
        self.trial.duration_s = duration_ns / 1e9
        self.trial.duration_uncertainty_s = (
            max(a.uncertainty_ns + b.uncertainty_ns for a, b in zip(first, last, strict=True)) / 1e9
        )
        self.trial.forwarder_rx = _sum(last, "ipackets") - _sum(first, "ipackets")
        self.trial.forwarder_tx = _sum(last, "opackets") - _sum(first, "opackets")
        kept = abs(self.trial.forwarder_rx - self.trial.forwarder_tx)
        if kept > UNDER_WAY * self.ports:
            # Whoever drops what it receives is fast for the wrong reason.
            self.trial.reject(
                "kept", f"{kept} packets were received and not sent on this lossless link"
            )
        if self.trial.duration_uncertainty_s > UNCERTAINTY_LIMIT * self.trial.duration_s:
            self.trial.reject(
                "unreadable",
                f"counters could be read only to {self.trial.duration_uncertainty_s * 1e3:.1f} ms",
            )

    # -- a link with a sender --------------------------------------------------------------------

    def _with_sender(self, sender: Sender, telemetry: Telemetry, child: Child) -> None:
        def alive() -> None:
            child.check()
            sender.check()

        child.wait_until(
            lambda: self._links_up(sender, telemetry), LINK_TIMEOUT_S, "the link did not come up"
        )
        self._warm_up(sender, telemetry, child)
        _, at_start = self._settled(sender, telemetry)
        window = self._traffic().seconds
        # A paced sender must not share its CPU with the lab for a moment: between start and end
        # the lab sleeps, and polls are read around the window. A flood does not mind; its polls are
        # read inside, so that idle ones before and after do not count.
        polls = [self._polling(telemetry)]
        started = time.monotonic()
        sender.client.start()
        if self.plan.pps is None:
            _sleep_until(started + EDGE * window, alive)
            polls = [self._polling(telemetry)]
            _sleep_until(started + (1 - EDGE) * window, alive)
            polls.append(self._polling(telemetry))
        _sleep_until(started + window + AFTER_S, alive)
        sender.client.wait_stopped(5, alive)
        sent, at_end = self._settled(sender, telemetry)
        polls.append(self._polling(telemetry))
        self.trial.polling = _difference(polls[0], polls[1])
        self.trial.tsc_hz = self.trial.tsc_hz or sender.tsc_hz()
        books.enter(
            self.trial,
            sent,
            books.Forwarded(rx=at_end[0] - at_start[0], tx=at_end[1] - at_start[1]),
        )

    def _warm_up(self, sender: Sender, telemetry: Telemetry, child: Child) -> None:
        """Send until every port of the forwarder has received.

        Programs look for their links every 100 ms and forward only then; with the link just up, a
        third of the window would be spent waiting for that.
        """
        sender.client.start()
        ports = range(self.ports)
        child.wait_until(
            lambda: all(telemetry.ask(f"/ethdev/stats,{n}")["ipackets"] > 0 for n in ports),
            LINK_TIMEOUT_S,
            "the forwarder received nothing",
        )
        time.sleep(WARM_UP_S)
        sender.client.stop()
        self._await_polling(telemetry, child)

    def _links_up(self, sender: Sender, telemetry: Telemetry) -> bool:
        states = (telemetry.ask(f"/ethdev/link_status,{n}") for n in range(self.ports))
        return all(state["status"] == "UP" for state in states) and sender.links_up()

    def _settled(self, sender: Sender, telemetry: Telemetry) -> tuple[Sent, tuple[int, int]]:
        """Read until nothing changes any more."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        before: object = None
        while True:
            sent = sender.sent()
            counters = _counters(telemetry, self.ports)
            now = (sent, counters)
            if now == before:
                return sent, counters
            if time.monotonic() >= deadline:
                raise GeneratorError(f"counters did not settle within {SETTLE_TIMEOUT_S:g} s")
            before = now
            time.sleep(0.01)

    def _await_polling(self, telemetry: Telemetry, child: Child) -> None:
        """Commands may come some time after the socket; look for them only once."""
        if self.probed:
            ask_when_known(telemetry, self.forwarder.polling, START_TIMEOUT_S, child.check)

    def _polling(self, telemetry: Telemetry) -> list[Polling] | None:
        if not self.probed:
            return None
        answer = telemetry.ask(self.forwarder.polling)
        try:
            return [Polling.model_validate(entry) for entry in answer]
        except ValidationError as error:
            raise TelemetryError(f"{self.forwarder.polling} answered {answer!r:.200}") from error


def _counters(telemetry: Telemetry, ports: int) -> tuple[int, int]:
    """Frames received and sent, over all ports."""
    readings = [telemetry.read(f"/ethdev/stats,{n}") for n in range(ports)]
    return _sum(readings, "ipackets"), _sum(readings, "opackets")


def _sum(readings: list[Reading], name: str) -> int:
    return sum(int(reading.value[name]) for reading in readings)


def _difference(before: list[Polling] | None, after: list[Polling] | None) -> list[Polling] | None:
    """What was counted in between, by those who polled in between."""
    if before is None or after is None:
        return None
    earlier = {(entry.lcore, entry.port, entry.queue): entry for entry in before}
    result = []
    for entry in after:
        old = earlier.get((entry.lcore, entry.port, entry.queue))
        difference = _since(entry, old) if old else entry
        if difference.polls:
            result.append(difference)
    return result


def _since(entry: Polling, old: Polling) -> Polling:
    # A histogram is as long as what was asked for or found until then.
    both = zip_longest(entry.burst_histogram, old.burst_histogram, fillvalue=0)
    return entry.model_copy(
        update={
            "polls": entry.polls - old.polls,
            "empty_polls": entry.empty_polls - old.empty_polls,
            "packets": entry.packets - old.packets,
            "busy_tsc": entry.busy_tsc - old.busy_tsc,
            "total_tsc": entry.total_tsc - old.total_tsc,
            "burst_histogram": [now - then for now, then in both],
        }
    )


def _sleep_until(moment: float, alive: Callable[[], None]) -> None:
    """Sleep until `time.monotonic()` says so, then see whether every process still runs."""
    if (rest := moment - time.monotonic()) > 0:
        time.sleep(rest)
    alive()
