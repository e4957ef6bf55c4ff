# SPDX-License-Identifier: BSD-3-Clause
"""One window of traffic between a running sender and a running forwarder: start, stop, settle,
read.

A trial of `linerate.trial.trial` has one window, a search (`linerate.trial.search.setup_device`)
many with the same forwarder. Failures are `TrialError`s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pydantic import ValidationError

from linerate.forwarders import Forwarder
from linerate.host.errors import GeneratorError, TelemetryError, UnknownCommandError
from linerate.host.netns import Interface
from linerate.host.process import pause, wait_until
from linerate.records.outcome import Polling
from linerate.records.trial import Trial
from linerate.telemetry.client import Reading, Telemetry, ask_when_known
from linerate.traffic import books
from linerate.traffic.sender import Sender, Sent
from linerate.trial import link_drops
from linerate.trial.cpu_time import CpuMeter
from linerate.trial.link_drops import Passed
from linerate.trial.running import START_TIMEOUT_S, Running

LINK_TIMEOUT_S = 12.0
SETTLE_TIMEOUT_S = 2.0
WARM_UP_S = 0.05
AFTER_S = 0.02
# The share of the window at its beginning and end that poll figures leave out.
EDGE = 0.15


PROBE = "/linerate/probe"


@dataclass(frozen=True)
class Settled:
    """The counters after they stopped changing."""

    sent: Sent
    forwarded: books.Forwarded
    missed: dict[str, int]
    interfaces: dict[str, Passed]

    def lost_since(self, before: Settled) -> dict[str, int]:
        """Return the frames that neither program has, by place. The traffic began in between."""
        missed = {place: count - before.missed[place] for place, count in self.missed.items()}
        forwarded = self.forwarded.since(before.forwarded)
        programs = {
            Interface.GENERATOR: Passed(self.sent.received, self.sent.accepted),
            Interface.FORWARDER: Passed(forwarded.rx + sum(missed.values()), forwarded.tx),
        }
        return missed | link_drops.lost(before.interfaces, self.interfaces, programs)


def settle(sent: Callable[[], Sent], running: Running, interfaces: Sequence[Interface]) -> Settled:
    """Read the counters until they stop changing."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    before: Settled | None = None
    while True:
        told = sent()
        readings = running.ports.readings()
        forwarded = books.Forwarded(total(readings, "ipackets"), total(readings, "opackets"))
        now = Settled(told, forwarded, missed(readings), link_drops.read(interfaces))
        if now == before:
            return now
        if time.monotonic() >= deadline:
            raise GeneratorError(f"counters did not settle within {SETTLE_TIMEOUT_S:g} s")
        before = now
        time.sleep(0.01)


class Polls:
    """The poll figures of the probe in a forwarder; none if it does not count."""

    def __init__(self, forwarder: Forwarder, telemetry: Telemetry | None, *, probed: bool) -> None:
        """Prepare. `telemetry`: None if there is no program, and so no polls."""
        self.command = forwarder.polling or ""
        self.telemetry = telemetry if forwarder.polling else None
        self.probed = probed and self.telemetry is not None

    def await_known(self, alive: Callable[[], None]) -> None:
        """Wait for the commands, which may be registered some time after the socket; only once."""
        if self.probed and self.telemetry:
            ask_when_known(self.telemetry, self.command, START_TIMEOUT_S, alive)

    def look(self, wanted: bool) -> None:
        """Install or remove the probe's callbacks; no effect on a program without the probe.

        Without callbacks, the program runs as if there were no probe.
        """
        if wanted == self.probed or self.telemetry is None:
            return
        try:
            if self.command.startswith(PROBE):
                self.telemetry.ask(f"{PROBE},polling={'on' if wanted else 'off'}")
            self.telemetry.ask(self.command)
        except UnknownCommandError:
            self.probed = False
        else:
            self.probed = wanted

    def read(self) -> list[Polling] | None:
        if not self.probed or self.telemetry is None:
            return None
        answer = self.telemetry.ask(self.command)
        try:
            return [Polling.model_validate(entry) for entry in answer]
        except (TypeError, ValidationError) as error:
            raise TelemetryError(f"{self.command} answered {answer!r:.200}") from error


class Exchange:
    """A running forwarder at one end of a link and a running sender at the other."""

    def __init__(
        self,
        running: Running,
        sender: Sender,
        polls: Polls,
        *,
        interfaces: Sequence[Interface] = (),
        cpu: CpuMeter | None = None,
    ) -> None:
        """Connect both. `interfaces`: kernel interfaces on the way. `cpu`: the meter of the
        forwarder's core.
        """
        self.running = running
        self.sender = sender
        self.polls = polls
        self.interfaces = interfaces
        self.cpu = cpu

    def alive(self) -> None:
        self.running.check()
        self.sender.check()

    def await_links(self) -> None:
        wait_until(self._links_up, self.alive, LINK_TIMEOUT_S, "the link did not come up")

    def begin(
        self, receiving: int | None = None, otherwise: str = "the forwarder received nothing"
    ) -> None:
        """Start sending, and return when every destination port has received: the first
        `receiving`, or all.

        Programs check their links every 100 ms and forward only then; right after the link is up, a
        third of the window would be spent waiting for that.
        """
        carried = self.running.carrying(receiving)
        self.sender.start()
        wait_until(carried, self.alive, LINK_TIMEOUT_S, otherwise)

    def warm_up(self, receiving: int | None = None) -> None:
        """`begin`, and stop some time later."""
        self.begin(receiving)
        time.sleep(WARM_UP_S)
        self.sender.stop()
        self.polls.await_known(self.running.check)

    def run(self, trial: Trial, seconds: float, *, rest_s: float = 0.0) -> None:
        """Send the sender's configured traffic for `seconds`, and enter the counts in the books.

        `rest_s`: the minimum time to wait for late frames before counters are read.
        """
        before = self.polls.read()
        idle_cpu = self.cpu.look() if self.cpu else None
        at_start = self._settled()
        # A paced sender must never share its CPU with the lab: between start and end the lab
        # sleeps, and polls are read around the window; `idle` then gives the number of polls
        # outside it. A flood does not need this; its polls are read inside.
        polls = [self.polls.read()]
        idle = difference(before, polls[0])
        begin_cpu = self.cpu.look() if self.cpu else None
        started = time.monotonic()
        self.sender.start()
        if trial.request.load == "flood":
            _sleep_until(started + EDGE * seconds, self.alive)
            polls = [self.polls.read()]
            _sleep_until(started + (1 - EDGE) * seconds, self.alive)
            polls.append(self.polls.read())
        _sleep_until(started + seconds + AFTER_S, self.alive)
        self.sender.wait_stopped(5, self.alive)
        end_cpu = self.cpu.look() if self.cpu else None
        if rest_s:
            _sleep_until(time.monotonic() + rest_s, self.alive)
        at_end = self._settled()
        polls.append(self.polls.read())
        polled = difference(polls[0], polls[1])
        tsc_hz = trial.program.tsc_hz = trial.program.tsc_hz or self.sender.tsc_hz()
        books.enter(
            trial,
            at_end.sent,
            at_end.forwarded.since(at_start.forwarded),
            at_end.lost_since(at_start),
        )
        frames = trial.frames
        if self.cpu and idle_cpu and begin_cpu and end_cpu:
            window_s = frames.duration_s or seconds
            frames.cpu_time = self.cpu.used(idle_cpu, begin_cpu, end_cpu, window_s)
        if trial.request.load != "flood" and frames.duration_s and tsc_hz:
            polled = inside(polled, idle, round(frames.duration_s * tsc_hz))
        frames.polling = polled

    def _links_up(self) -> bool:
        return self.running.ports.up() and self.sender.links_up()

    def _settled(self) -> Settled:
        return settle(self.sender.sent, self.running, self.interfaces)


def missed(readings: list[Reading]) -> dict[str, int]:
    """Return frames that found no room at the forwarder's ports; 0 if a driver does not count
    them.
    """
    return {
        f"forwarder port {n} imissed": int(reading.value.get("imissed", 0))
        for n, reading in enumerate(readings)
    }


def total(readings: list[Reading], name: str) -> int:
    return sum(int(reading.value[name]) for reading in readings)


def difference(before: list[Polling] | None, after: list[Polling] | None) -> list[Polling] | None:
    """Return the counts in between, of the queues that were polled in between."""
    if before is None or after is None:
        return None
    earlier = {(entry.lcore, entry.port, entry.queue): entry for entry in before}
    result = []
    for entry in after:
        old = earlier.get((entry.lcore, entry.port, entry.queue))
        found = _since(entry, old) if old else entry
        if found.polls:
            result.append(found)
    return result


def inside(
    found: list[Polling] | None, idle: list[Polling] | None, cycles: int
) -> list[Polling] | None:
    """Return the polls of a window of so many cycles, from those counted around it.

    Outside the window nothing comes, and polls are empty and as frequent as in `idle`, the time
    before.
    """
    if found is None or idle is None:
        return found
    waiting = {(entry.lcore, entry.port, entry.queue): entry for entry in idle}
    return [_inside(e, waiting.get((e.lcore, e.port, e.queue)), cycles) for e in found]


def _inside(entry: Polling, idle: Polling | None, cycles: int) -> Polling:
    beside = entry.total_tsc - cycles
    if idle is None or idle.packets or not idle.total_tsc or beside <= 0:
        return entry
    polls = min(round(idle.polls / idle.total_tsc * beside), entry.empty_polls)
    none, *others = entry.burst_histogram
    return entry.model_copy(
        update={
            "polls": entry.polls - polls,
            "empty_polls": entry.empty_polls - polls,
            "burst_histogram": [max(none - polls, 0), *others],
            "total_tsc": cycles,
        }
    )


def _since(entry: Polling, old: Polling) -> Polling:
    # A histogram is as long as the largest burst requested or found so far.
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
    """Sleep until `time.monotonic()` reaches the moment, then check that every process still
    runs.
    """
    if (rest := moment - time.monotonic()) > 0:
        pause(rest)
    alive()
