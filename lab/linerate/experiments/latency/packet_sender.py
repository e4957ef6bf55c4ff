# SPDX-License-Identifier: BSD-3-Clause
"""Round trips by a packet socket: `af-packet-ping`, in the generator's place on the same link.

One frame at a time is on its way, so that idle is the only load. No generator runs meanwhile: it
would poll for the same frames on the same CPU. Each unit is one process of the forwarder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from linerate.experiments.latency.loads import IDLE_PPS, Step
from linerate.forwarders import forwarder
from linerate.host.errors import LinkError, ProcessError, TrialError
from linerate.host.netns import Interface
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command
from linerate.links import Wire
from linerate.records.cells import Arm
from linerate.records.outcome import Clock, LatencyFigures
from linerate.records.trial import DISTURBED, Trial
from linerate.traffic import books
from linerate.traffic.sender import Sent
from linerate.trial.activity import Watch
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import Running, launch
from linerate.trial.trial import Bench, Plan, ProgramStart, new_record, watched
from linerate.trial.window import LINK_TIMEOUT_S, Settled, settle

PROGRAM = "af-packet-ping"
# The probe frames that test if the forwarder forwards yet.
_FIRST_FRAMES, _FIRST_DEADLINE_S = 3, 0.02
# The program's own wait for a frame.
_DEADLINE_S = 0.1


class ToldClock(BaseModel):
    """The clock in the program's document."""

    tsc_hz: int
    clock_cost_cycles: int


class Told(BaseModel):
    """The program's output. `cycles`: by `min`, `mean`, `max` and quantile, less the clock's
    cost.
    """

    clock: ToldClock
    sent: int
    not_sent: int
    received: int
    late: int
    duplicates: int
    dropped: int
    cycles: dict[str, int] | None = None


class PacketSender:
    """One unit: a forwarder on an open link, and the program that sends to it.

    Lifecycle: a context manager. The forwarder is started by the first trial.
    """

    def __init__(self, bench: Bench, setup: LinkSetup, arm: Arm, *, block: int) -> None:
        self.bench = bench
        self.setup = setup
        self.arm = arm
        self.block = block
        self._stack = ExitStack()
        self._running: Running | None = None
        self._started: ProgramStart | None = None

    def __enter__(self) -> PacketSender:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        stack, self._stack, self._running = self._stack, ExitStack(), None
        stack.close()

    def window(
        self, step: Step, seconds: float, attempt: int, record: Callable[[Trial], None]
    ) -> Trial:
        """Run attempt number `attempt` of a trial; `record` stores it."""
        trial = self._window(step, seconds, attempt)
        record(trial)
        return trial

    def _window(self, step: Step, seconds: float, attempt: int) -> Trial:
        plan = Plan(self.arm, "paced", self.block, 0, "search", load_share=0.0, pps=IDLE_PPS)
        trial = new_record(self.bench, plan, self.setup)
        request = trial.request
        request.test, request.attempt, request.protocol = "ping", attempt, step.protocol
        request.maximum_pps = request.pps = IDLE_PPS
        request.seconds = seconds
        trial.program.build = forwarder(self.arm.forwarder).build_facts()
        with watched(self.bench, trial, self.setup):
            if self._running is None:
                self._started = ProgramStart.next(self.bench, self.setup)
            if self._started:
                self._started.enter(trial)
            running, wire = self._ready()
            watch = Watch(trial, self.bench.host, running.children, wire.threads)
            before = settle(lambda: Sent(0, 0), running, wire.interfaces)
            frames = max(round(seconds * IDLE_PPS), 1)
            found = self._send(running, wire, step, frames, _DEADLINE_S)
            _enter(trial, found, before, settle(lambda: _sent(found), running, wire.interfaces))
            watch.enter()
        if not trial.valid and trial.invalid_code not in DISTURBED:
            self._stop()
        return trial

    def _ready(self) -> tuple[Running, Wire]:
        """Make sure that the forwarder runs and forwards."""
        wire, _ = self.setup.ready()
        if self._running is None:
            bench = self.bench
            program = forwarder(self.arm.forwarder)
            running = self._stack.enter_context(
                launch(program, bench.run, bench.cores, bench.memory, wire)
            )
            running.wait_until(running.ports.up, LINK_TIMEOUT_S, "the link did not come up")
            first = Step("udp", 0.0)

            def carried() -> bool:
                sent = self._send(running, wire, first, _FIRST_FRAMES, _FIRST_DEADLINE_S)
                return sent.received > 0

            running.wait_until(carried, LINK_TIMEOUT_S, "no frame of a packet socket came back")
            self._running = running
        self._running.check()
        return self._running, wire

    def _send(
        self, running: Running, wire: Wire, step: Step, frames: int, deadline_s: float
    ) -> Told:
        """Return the program's output after `frames` frames."""
        (end,) = wire.of(Interface.GENERATOR)
        with _file(self.bench.run.path) as out:
            command = Command(
                "packet-sender",
                (
                    str(rust_binary(PROGRAM)),
                    "--iface", end.name,
                    f"--{step.protocol}",
                    "--count", str(frames),
                    "--size", str(self.setup.context.size),
                    "--deadline", str(round(deadline_s * 1e6)),
                    "--out", str(out),
                ),
                (self.bench.cores.control,),
            )  # fmt: skip
            with end.host.start(command, self.bench.run) as child:
                # Were every frame lost, it would wait for each until its deadline.
                longest = frames * (1 / IDLE_PPS + deadline_s) + 5
                _await(child, running, longest)
                code = child.stop()
                if code:
                    raise ProcessError(f"{PROGRAM} ended with exit code {code}: {child.last_words}")
            try:
                return Told.model_validate_json(out.read_text())
            except (OSError, ValidationError) as error:
                raise TrialError(f"{PROGRAM} wrote no figures: {error}") from error


@contextmanager
def _file(directory: Path) -> Iterator[Path]:
    path = directory / "packet-sender.json"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _await(child: Child, running: Running, seconds: float) -> None:
    """Wait until the program has ended; the forwarder must not end before it."""
    slice_s = 0.2
    for _ in range(int(seconds / slice_s) + 1):
        if child.wait(slice_s):
            return
        running.check()
    raise LinkError(f"{PROGRAM} did not end within {seconds:.0f} s")


def _sent(found: Told) -> Sent:
    """Return the books like any sender's: frames that came back in time, late or twice."""
    attempted = found.sent + found.not_sent
    return Sent(
        accepted=found.sent,
        received=found.received + found.late + found.duplicates,
        intended=attempted,
        attempted=attempted,
        lost_at_ingress=found.not_sent,
    )


def _enter(trial: Trial, found: Told, before: Settled, after: Settled) -> None:
    lost = after.lost_since(before)
    if found.dropped:
        lost["packet sender's socket"] = found.dropped
    books.enter(trial, after.sent, after.forwarded.since(before.forwarded), lost)
    clock = Clock(tsc_hz=found.clock.tsc_hz, cost_cycles=found.clock.clock_cost_cycles)
    trial.frames.clock = clock
    if found.cycles is None:
        return

    delays = {name: cycles / clock.tsc_hz * 1e9 for name, cycles in found.cycles.items()}
    trial.frames.latency = LatencyFigures(
        count=found.received,
        net=True,
        minimum_ns=delays["min"],
        mean_ns=delays["mean"],
        maximum_ns=delays["max"],
        quantiles_ns={name: value for name, value in delays.items() if name.startswith("0.")},
    )
