# SPDX-License-Identifier: BSD-3-Clause
"""Starts of both programs, of which exactly one runs at a time; the others are stopped (SIGSTOP).

A turn is some tens of milliseconds, so that what the machine does from one second to the next meets
both programs alike. It is: go on, settle, measure, stop the generator, drain, stop. The order is
drawn anew each time.

On links with a generator each start has a link and a generator of its own, which stands still with
it. A turn says what the program can do only where the generator had more for it than it took.

Lifecycle: `Ground.apart` is a context manager; all that it made and started ends with it. A
stopped program goes on before it is asked to end; one whose lab was killed is killed by the kernel,
stopped or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from linerate.forwarders import Forwarder
from linerate.host.errors import GeneratorError, TelemetryError, TrialError
from linerate.host.process import wait_until
from linerate.links import Link, LinkContext, Wire
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.trial.running import START_TIMEOUT_S, Running, launch
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.halting import polling_pid
from linerate.trial.starts.standing import refuse_shared
from linerate.trial.starts.start import Per, Start
from linerate.trial.trial import Bench
from linerate.trial.window import Exchange, Polls

# A generator of a duel ends by itself, at the latest.
_MOST_S = 3600.0


@dataclass(frozen=True)
class Ground:
    """Where programs take turns: frames of `size` bytes; packets are counted `per` what."""

    bench: Bench
    link: Link
    size: int
    per: Per

    @contextmanager
    def apart(self, programs: Sequence[Forwarder], order: Sequence[int]) -> Iterator[list[Start]]:
        """Start programs in this order, each on a link of its own; they stand still, and could
        forward. Raises `FaultError` for one that does not start or forward.
        """
        bench = self.bench
        with ExitStack() as stack:
            starts: list[Start] = []
            for number, arm in enumerate(order):
                directory = bench.run.path / f"link{number}"
                directory.mkdir(exist_ok=True)
                context = LinkContext(
                    directory, self.size, bench.memory.hugepages, bench.cores,
                    host=bench.host, number=number,
                )  # fmt: skip
                wire = stack.enter_context(self.link.open(context))
                start = stack.enter_context(self._start(wire, programs[arm], arm))
                starts.append(start)
                # Nobody is stopped whom this duel did not start.
                refuse_shared(starts)
                start.halt()
            yield starts

    @contextmanager
    def _start(self, wire: Wire, program: Forwarder, arm: int) -> Iterator[Start]:
        """A program that forwards, on this wire."""
        bench = self.bench
        with ExitStack() as stack:
            sender = self._sender(wire)
            if sender:
                stack.callback(sender.close)
            try:
                running = stack.enter_context(
                    launch(program, bench.run, bench.cores, bench.memory, wire)
                )
                try:
                    _begin(program, running, sender)
                except TelemetryError:
                    # How the program ended is better news than what it no longer answers.
                    running.await_end()
                    running.check()
                    raise
            except GeneratorError:
                raise
            except TrialError as error:
                if sender:
                    # A program whose generator has ended waits in vain.
                    sender.check()
                raise FaultError(arm, "start", str(error.message)) from error
            start = Start(arm, running, polling_pid(running), self.per, sender)
            try:
                yield start
            finally:
                start.go_on()

    def _sender(self, wire: Wire) -> Generator | None:
        """What floods the wire as soon as it is started."""
        if not wire.locations:
            return None
        bench = self.bench
        sender = Generator(bench.run, bench.cores.control, bench.memory, wire, flood=True)
        try:
            sender.configure(Traffic(wire.locations, self.size, _MOST_S, numbered=False))
        except BaseException:
            sender.close()
            raise
        return sender


def _begin(program: Forwarder, running: Running, sender: Generator | None) -> None:
    """Wait until it forwards."""

    def alive() -> None:
        if sender:
            sender.check()
        running.check()

    if sender:
        polls = Polls(program, running.telemetry, probed=False)
        Exchange(running, sender, polls).await_links()
    carried = running.carrying()
    if sender:
        sender.start()
    # Programs look for their links every so often, and forward only then.
    wait_until(carried, alive, START_TIMEOUT_S, "it did not receive on every port")
