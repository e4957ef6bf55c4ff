# SPDX-License-Identifier: BSD-3-Clause
"""The device of a search on a real setup: a running forwarder, and a sender.

Lifecycle: a context manager. The forwarder is started and warmed up by the first trial and runs
until the end, as in RFC 2544; the setup is the caller's. Every window becomes a record, even an
invalid one.

Lateness. Frames that left or arrived while the sender was kept from its CPU are counted separately,
and a search sees only the others. A window in which they are more than half, or in which the
forwarder was starved of its CPU, says nothing about the forwarder. It is void, recorded as invalid,
and repeated up to a limit; then the trial could not be measured, which is an error and neither loss
nor success. The decision uses the sender's clock and the scheduler's counters, never the loss.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace

from linerate.forwarders import forwarder
from linerate.host.errors import DisturbedError, GeneratorError, ProcessError, TrialError
from linerate.host.process import Command, pause
from linerate.links import Wire
from linerate.records.cells import Arm
from linerate.records.outcome import SOUND_SHARE, ChangeFigures, LatencyFigures
from linerate.records.trial import DISTURBED, Load, Method, Protocol, Role, Test, Trial
from linerate.telemetry.spans import Spans
from linerate.traffic.otg import Slice, Traffic
from linerate.traffic.sender import Sender
from linerate.trial.activity import Watch
from linerate.trial.cpu_time import CpuMeter
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import launch
from linerate.trial.search.core_use import share_of
from linerate.trial.search.device import Changed, Latency, Outcome
from linerate.trial.search.slices import change_of, cut
from linerate.trial.trial import Bench, Plan, ProgramStart, new_record, watched
from linerate.trial.window import Exchange, Polls

WARM_UP_PPS = 10_000.0
# A probe without callbacks until it is asked for them, in a program that runs on without it.
_PROBE_WAITS = {"LINERATE_PROBE_POLLING": "off", "LINERATE_PROBE_REQUIRED": "0"}


@dataclass(frozen=True)
class Terms:
    """How windows are sent. `windows`: the maximum for one trial; `burst_windows`: for bursts and
    changes of rate, None: the same.

    `settle_s`: to wait after sending for late frames; `rest_s`: before the next trial (RFC 2544,
    section 23, has 2 s and 5 s). `patience_s`: to wait after the first void window, and twice as
    long after each further one: a disturbance may last for seconds, for instance if a hypervisor
    runs a machine's two CPUs at different times.
    """

    windows: int = 10
    patience_s: float = 0.0
    settle_s: float = 0.0
    rest_s: float = 0.0
    burst_windows: int | None = None

    def windows_for(self, asked: Asked) -> int:
        steady = asked.load == "paced" and asked.then is None
        return self.windows if steady or self.burst_windows is None else self.burst_windows


@dataclass(frozen=True)
class Asked:
    """The request of one trial, over all directions. `then`: rate and seconds that follow. `pps`:
    infinite for a flood.
    """

    pps: float
    seconds: float
    frames: int | None = None
    latency: bool = False
    then: tuple[float, float] | None = None

    @property
    def load(self) -> Load:
        if math.isinf(self.pps):
            return "flood"
        return "paced" if self.frames is None else "burst"

    @classmethod
    def burst(cls, frames: int, pps: float) -> Asked:
        """Return the request for `frames` frames at this rate."""
        return cls(pps, frames / pps, frames=frames)

    @property
    def whole_s(self) -> float:
        return self.seconds + (self.then[1] if self.then else 0.0)

    def enter(self, trial: Trial) -> None:
        request = trial.request
        request.pps, request.seconds, request.frames = self.pps, self.seconds, self.frames
        if self.then:
            request.then_pps, request.then_s = self.then


class SetupDevice:
    """A `linerate.trial.search.device.ChangingDevice`."""

    def __init__(
        self,
        bench: Bench,
        setup: LinkSetup,
        arm: Arm,
        *,
        block: int,
        max_pps: float,
        terms: Terms,
        record: Callable[[Trial], None],
        role: Role = "search",
        probe: bool = False,
        spans: int = 0,
        method: Method = "fresh",
    ) -> None:
        """Prepare. `record` takes each window's trial, gives it its position and stores it.

        `max_pps`: 0 for floods only. `probe`: load the probe into the forwarder, if possible; it
        counts in test `core-use` only. `spans`: measure how long frames are inside, in one of so
        many bursts; 0: do not.
        """
        self.bench = bench
        self.setup = setup
        self.arm = arm
        self.block = block
        self.terms = terms
        self.role = role
        self.probe = probe
        # The test of the next trials.
        self.test: Test = "throughput"
        # The kind of frames of the next trials; None: the bench's.
        self.protocol: Protocol | None = None
        self.void = 0
        self.method = method
        # The context of each window: programs that take turns are stopped outside of theirs.
        self.turn: Callable[[], AbstractContextManager[object]] = nullcontext
        self._spans = spans
        self._max_pps = max_pps
        self._record = record
        self._running: ExitStack | None = None
        self._exchange: Exchange | None = None
        self._started: ProgramStart | None = None
        self._ended_s = -math.inf

    @property
    def max_pps(self) -> float:
        return self._max_pps

    def begin(self) -> None:
        """Start the program and pass frames through it, unless it runs; raises `TrialError`."""
        if self._exchange is None:
            self._started = ProgramStart.next(self.bench, self.setup)
            self._start()

    @property
    def exchange(self) -> Exchange | None:
        """The exchange with the running program; None if no program runs."""
        return self._exchange

    def flood(self, seconds: float) -> Trial:
        """Flood: the sender sends as fast as frames are taken. The setup's sender must be for
        floods.
        """
        trial = self._window(None, Asked(math.inf, seconds))
        self._record(trial)
        return trial

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return outcome_of(self._trial(Asked(pps, seconds, latency=latency)))

    def burst(self, frames: int) -> Outcome:
        return outcome_of(self._trial(Asked.burst(frames, self.max_pps)))

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return changed_of(self._trial(Asked(pps, seconds, then=(then_pps, then_seconds))))

    def _trial(self, asked: Asked) -> Trial:
        """Return the first valid window."""
        pause(max(self._ended_s + self.terms.rest_s - time.monotonic(), 0.0))
        void, self.void, why = self.void, 0, "they are on record"
        windows = self.terms.windows_for(asked)
        for attempt in range(void + 1, windows + 1):
            if attempt > 1:
                pause(self.terms.patience_s * 2 ** (attempt - 2))
            trial = self._window(attempt, asked)
            self._record(trial)
            self._ended_s = time.monotonic()
            if trial.valid:
                return trial
            if trial.invalid_code not in DISTURBED:
                raise error_of(trial)
            why = f"the last because: {trial.invalid}"
        raise DisturbedError(
            f"{windows} windows of {asked.whole_s:.3g} s at {asked.pps / 1e6:.3f} Mpps "
            f"were all disturbed, {why}"
        )

    def _window(self, attempt: int | None, asked: Asked) -> Trial:
        """Run one window. `attempt`: None if it is not repeated."""
        trial = new_record(self.bench, self._plan(asked), self.setup)
        trial.method = self.method
        request = trial.request
        if asked.load != "flood":
            request.test, request.attempt = self.test, attempt
            request.maximum_pps = self.max_pps
            asked.enter(trial)
            request.ip, request.protocol = self.bench.ip, self.protocol
            if self.setup.link.ports > 1:
                request.directions = self.bench.directions
        trial.program.build = forwarder(self.arm.forwarder).build_facts()
        with watched(self.bench, trial, self.setup), self.turn():
            if self._exchange is None:
                self._started = ProgramStart.next(self.bench, self.setup)
            if self._started:
                self._started.enter(trial)
            exchange = self._ready()
            sender = exchange.sender
            children = [*exchange.running.children, *([sender.child] if sender.child else [])]
            traffic = self._traffic(asked)
            if self.probe:
                # Only this test pays for the probe.
                exchange.polls.look(self.test == "core-use")
                trial.program.probe = exchange.polls.probed
            sender.configure(traffic)
            watch = Watch(trial, self.bench.host, children, self.setup.ready()[0].threads)
            spans = self._spans_of(exchange)
            exchange.run(trial, traffic.lead_s + asked.whole_s, rest_s=self.terms.settle_s)
            frames = trial.frames
            if spans:
                frames.spans, frames.clock = spans.found(), spans.clock()
            if asked.latency:
                frames.latency, frames.clock = sender.latency(), sender.clock()
            if traffic.slices:
                frames.change = change_of(
                    traffic, sender.received_by_flow(), sender.disturbed_by_flow()
                )
                _judge_change(trial, frames.change)
            watch.enter()
        if not trial.valid and trial.invalid_code not in DISTURBED:
            self.close()
        return trial

    def _plan(self, asked: Asked) -> Plan:
        if asked.load == "flood":
            return Plan(self.arm, asked.load, self.block, 0, self.role)
        share = share_of(asked.pps, self.max_pps)
        return Plan(self.arm, asked.load, self.block, 0, self.role, load_share=share, pps=asked.pps)

    def _spans_of(self, exchange: Exchange) -> Spans | None:
        command = forwarder(self.arm.forwarder).spans
        telemetry = exchange.running.telemetry
        if not self._spans or command is None or telemetry is None:
            return None
        return Spans(telemetry, command, self.setup.link.ports)

    def _traffic(self, asked: Asked) -> Traffic:
        wire, sender = self.setup.ready()
        senders = self.bench.senders(len(wire.locations))
        pps = None if asked.load == "flood" else asked.pps / senders
        frames = None if asked.frames is None else max(round(asked.frames / senders), 1)
        slices: tuple[Slice, ...] = ()
        if asked.then and pps is not None:
            frames = max(round(pps * asked.seconds), 1)
            slices = cut(asked.seconds, asked.then[0] / senders, asked.then[1])
        return Traffic(
            wire.locations,
            self.setup.context.size,
            asked.seconds,
            pps,
            latency=asked.latency,
            frames=frames,
            senders=senders,
            ip=self.bench.ip,
            slices=slices,
            lead_s=sender.lead_s if sender else 0.0,
            protocol=self.protocol or "udp",
        )

    def _ready(self) -> Exchange:
        """Make sure that forwarder and sender run and have passed frames."""
        if self._exchange is None:
            self._start()
        assert self._exchange is not None
        self._exchange.alive()
        return self._exchange

    def _start(self) -> None:
        wire, sender = self.setup.ready()
        if sender is None:
            raise GeneratorError(f"link {self.setup.link.name} has no generator")
        sender.check()
        warm_up = min(WARM_UP_PPS, self.max_pps) or math.inf
        # Stopped when frames have come through, long before its end.
        sender.configure(self._traffic(Asked(warm_up, 30.0)))
        try:
            self._launch(wire, sender, probe=self.probe)
        except ProcessError:
            if not self.probe:
                raise
            # The program may not accept plugins: try without.
            self._launch(wire, sender, probe=False)
            self.probe = False

    def _launch(self, wire: Wire, sender: Sender, *, probe: bool) -> None:
        program = forwarder(self.arm.forwarder)

        def told(command: Command) -> Command:
            if self._spans:
                return program.measuring_spans(command, self._spans)
            if probe:
                return replace(command, environment={**command.environment, **_PROBE_WAITS})
            return command

        bench = self.bench
        probed = probe or bool(self._spans)
        with ExitStack() as stack:
            running = stack.enter_context(
                launch(
                    program, bench.run, bench.cores, bench.memory, wire, probed=probed, told=told
                )
            )
            polls = Polls(program, running.telemetry, probed=False)
            meter = CpuMeter(bench.host, running.forwarder, wire.threads, bench.cores.forwarder)
            exchange = Exchange(running, sender, polls, interfaces=wire.interfaces, cpu=meter)
            _carry(exchange, self.bench.senders(len(wire.locations)))
            self._exchange = exchange
            self._running = stack.pop_all()

    def close(self) -> None:
        running, self._running, self._exchange = self._running, None, None
        if running:
            running.close()

    def __enter__(self) -> SetupDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _carry(exchange: Exchange, receiving: int) -> None:
    try:
        exchange.await_links()
        exchange.warm_up(receiving)
    except TrialError:
        # The cause is better news than the symptom.
        exchange.alive()
        raise


def _judge_change(trial: Trial, found: ChangeFigures) -> None:
    """Check that each of the two rates has enough undisturbed frames."""
    for when, touched, sent in (
        ("before", found.before_disturbed, found.before_intended),
        ("after", found.after_disturbed, found.after_intended),
    ):
        if touched and touched > (1 - SOUND_SHARE) * sent:
            trial.reject(
                "late",
                f"{touched / sent:.1%} of the frames {when} the change of rate left or arrived "
                f"while the generator was kept from its CPU (limit {1 - SOUND_SHARE:.0%})",
            )


def outcome_of(trial: Trial) -> Outcome:
    """Return the outcome of a valid trial for a search: frames intended, and frames received."""
    request, frames = trial.request, trial.frames
    asked = request.frames
    if asked is None and request.pps and request.seconds:
        asked = round(request.pps * request.seconds)
    intended, received = frames.undisturbed or (asked or 0, frames.received or 0)
    return Outcome(
        intended=intended,
        received=received,
        seconds=frames.duration_s or request.seconds or 0.0,
        latency=_latency_of(frames.latency),
    )


def changed_of(trial: Trial) -> Changed:
    """Return the outcome of a valid trial whose rate changed."""
    found = trial.frames.change
    if found is None:
        raise TrialError("the trial has no figures of its two rates")
    before, after = trial.request.seconds or 0.0, trial.request.then_s or 0.0
    return Changed(
        before=Outcome(*found.undisturbed_before, before),
        after=Outcome(*found.undisturbed_after, after),
        last_lost=found.last_lost_s,
        slice_s=found.slice_s or 0.0,
    )


def _latency_of(found: LatencyFigures | None) -> Latency | None:
    if found is None:
        return None
    return Latency(
        count=found.count,
        minimum=found.minimum_ns / 1e9,
        mean=found.mean_ns / 1e9,
        maximum=found.maximum_ns / 1e9,
        quantiles=_seconds(found.quantiles_ns),
        jitter=None if found.jitter_rfc3550_ns is None else found.jitter_rfc3550_ns / 1e9,
        ipdv=_seconds(found.ipdv_quantiles_ns),
    )


def _seconds(quantiles_ns: dict[str, float]) -> dict[float, float]:
    return {float(name): value / 1e9 for name, value in quantiles_ns.items()}


def error_of(trial: Trial) -> TrialError:
    """Return the error for an invalid trial, the same live and from records."""
    kind = DisturbedError if trial.invalid_code in DISTURBED else TrialError
    error = kind(trial.invalid_why or "the trial failed")
    error.code = trial.invalid_code or "error"
    return error
