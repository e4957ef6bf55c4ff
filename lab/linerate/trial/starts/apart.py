# SPDX-License-Identifier: BSD-3-Clause
"""Starts of which exactly one runs at a time; the others are stopped (SIGSTOP).

On links with a generator each start has a link and a generator of its own, which floods it and is
stopped with it. A turn (`linerate.trial.starts.alone`) measures the program's capacity only if the
generator offered more than it took.

Lifecycle: `apart` is a context manager; everything that it made and started ends with it. A stopped
program is continued before it is asked to end; if its lab was killed, the kernel kills it, stopped
or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from linerate.forwarders import Forwarder
from linerate.host.errors import TelemetryError, TrialError
from linerate.host.netns import Interface
from linerate.links import KernelThread, Link, Wire
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.traffic.sender import Sender
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import START_TIMEOUT_S, KernelPorts, Running, launch
from linerate.trial.starts.busy import BusyTime
from linerate.trial.starts.clocks import Per, polls_at_rest
from linerate.trial.starts.faults import blamed
from linerate.trial.starts.start import Start, refuse_shared
from linerate.trial.trial import Bench
from linerate.trial.window import Exchange, Polls

# The latest end of its generator.
_MOST_S = 3600.0
_SILENT = "it did not receive on every port"


@contextmanager
def apart(  # noqa: PLR0917 - as `standing`, and how packets are counted
    bench: Bench,
    link: Link,
    size: int,
    programs: Sequence[Forwarder],
    order: Sequence[int],
    per: Per,
) -> Iterator[list[Start]]:
    """Start programs in this order, each named by its index in `programs` and on a link of its own;
    yield them stopped, after they have forwarded frames of `size` bytes.

    Raises `FaultError` if a program does not start or forward.
    """

    def flooding(wire: Wire) -> Generator:
        return bench.generator(wire, flood=True)

    with ExitStack() as stack:
        starts: list[Start] = []
        for number, arm in enumerate(order):
            # Otherwise returning frames are lost while a polling generator has the CPU, and a fast
            # program loses more of them.
            context = bench.context(size, number, receive_first=True)
            sent = flooding if link.has_generator else None
            setup = stack.enter_context(LinkSetup(link, context, sent))
            starts.append(stack.enter_context(_started(bench, setup, programs[arm], arm, per)))
            # Never stop a process that the lab did not start.
            refuse_shared(starts[-1], starts[:-1])
            starts[-1].halt()
        yield starts


@contextmanager
def _started(
    bench: Bench, setup: LinkSetup, program: Forwarder, arm: int, per: Per
) -> Iterator[Start]:
    """Start a program that forwards its sender's flood."""
    wire, sender = setup.ready()
    with ExitStack() as stack:
        if sender:
            traffic = Traffic(wire.locations, setup.context.size, _MOST_S, numbered=False)
            sender.configure(traffic)
        with blamed(arm, sender):
            running = stack.enter_context(
                launch(program, bench.run, bench.cores, bench.memory, wire, probed=per == "busy")
            )
            busy = None
            try:
                if sender:
                    polls = Polls(program, running.telemetry, probed=per == "busy")
                    exchange = Exchange(running, sender, polls)
                    exchange.await_links()
                    exchange.begin(otherwise=_SILENT)
                    if per == "busy" and running.telemetry:
                        busy = BusyTime(polls, running.telemetry, running.check)
                else:
                    running.wait_until(running.carrying(), START_TIMEOUT_S, _SILENT)
            except TelemetryError:
                _await_end(running)
                raise
        threads = [each for each in wire.threads if each.role == KernelThread.FORWARDER]
        interfaces = None
        if per == "cpu-and-napi" and running.telemetry:
            interfaces = KernelPorts(wire.of(Interface.FORWARDER))
        start = Start(arm, running, per, sender, busy, threads=threads, interfaces=interfaces)
        if per == "cpu-and-napi":
            with blamed(arm, sender):
                start.cost_only = not _polls(start, sender)
        if sender:
            # A link that is closed under traffic may take the generator with it.
            stack.callback(_quieten, sender)
        # Also continues a stopped one.
        stack.callback(start.go_on)
        yield start


def _polls(start: Start, sender: Sender | None) -> bool:
    """Return True if it uses CPU time even while nothing comes: its own generator, which polls, is
    stopped.
    """
    if sender is None or sender.child is None:
        return True
    sender.child.freeze()
    try:
        return polls_at_rest(
            start.pids, lambda: [each.value for each in start.running.ports.readings()]
        )
    finally:
        sender.child.thaw()


def _quieten(sender: Sender) -> None:
    with suppress(TrialError):
        sender.stop()


def _await_end(running: Running) -> None:
    """Raise how a program ended, which is more useful than its missing answer."""
    running.await_end()
    running.check()
