# SPDX-License-Identifier: BSD-3-Clause
"""The setup owns link and sender: made on demand, made again after a death, always closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from simulated_lab import blank

from linerate.host.cores import switches
from linerate.host.errors import ProcessError
from linerate.links import KernelThread, Link, LinkContext, Wire, link
from linerate.records.cells import Arm, Cell
from linerate.traffic.sender import Sender, Sent
from linerate.trial.link_setup import LinkSetup
from linerate.trial.trial import stolen

CONTEXT = LinkContext(Path("/nonexistent"), 64)


class Rope(Link):
    name = "rope"
    ports = 1
    has_generator = True
    description = "counts its openings"

    def __init__(self) -> None:
        self.events: list[str] = []

    @contextmanager
    def open(self, context: LinkContext) -> Iterator[Wire]:
        self.events.append("open")
        try:
            thread = KernelThread(KernelThread.GENERATOR, "napi/g0", 9, 0)
            yield Wire(vdevs=("net_null0",), locations=("here",), threads=(thread,))
        finally:
            self.events.append("shut")


class Puppet(Sender):
    def __init__(self, rope: Rope) -> None:
        self.rope = rope
        self.alive = True
        rope.events.append("start")

    @property
    def running(self) -> bool:
        return self.alive

    def links_up(self) -> bool:
        return True

    def sent(self) -> Sent:
        return Sent(accepted=0, received=0)

    def close(self) -> None:
        self.rope.events.append("stop")


def test_link_and_sender_are_made_once_and_the_sender_ends_first() -> None:
    rope = Rope()
    with LinkSetup(rope, CONTEXT, lambda _: Puppet(rope)) as setup:
        assert rope.events == []
        first = setup.ready()
        assert setup.ready() == first
    assert rope.events == ["open", "start", "stop", "shut"]


def test_a_dead_sender_gets_a_new_link() -> None:
    rope = Rope()
    with LinkSetup(rope, CONTEXT, lambda _: Puppet(rope)) as setup:
        sender = setup.ready()[1]
        assert isinstance(sender, Puppet)
        sender.alive = False
        assert setup.ready()[1] is not sender
    assert rope.events == ["open", "start", "stop", "shut"] * 2


def test_a_sender_that_does_not_start_leaves_no_link() -> None:
    rope = Rope()

    def refuse(_: Wire) -> Sender:
        raise ProcessError("no")

    with LinkSetup(rope, CONTEXT, refuse) as setup, pytest.raises(ProcessError):
        setup.ready()
    assert rope.events == ["open", "shut"]


def test_memif_takes_a_dead_server_s_socket_away(tmp_path: Path) -> None:
    socket = tmp_path / "memif.sock"
    socket.touch()
    with link("memif2").open(LinkContext(tmp_path, 64)) as wire:
        assert not socket.exists()
        assert [len(wire.vdevs), len(wire.locations)] == [2, 2]
        assert str(socket) in wire.locations[1]
        socket.touch()
    assert not socket.exists()


def test_threads_that_receive_for_the_link_are_the_lab_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the kernel's, so nothing in their environment says whose they are; a trial may open
    the link while it is watched.
    """
    strangers: dict[str, float] = {"cc1": 0.2}

    @contextmanager
    def watched(cpus: set[int], is_own: Callable[[int], bool]) -> Iterator[dict[int, switches.Use]]:
        found: dict[int, switches.Use] = {}
        yield found
        pids = {"fw": 7, "napi": 9, "cc1": 11}
        had = {"fw": 0.4, "napi": 0.3} | strangers
        others = {name: share for name, share in had.items() if not is_own(pids[name])}
        found.update({cpu: switches.Use(others, True) for cpu in cpus})

    monkeypatch.setattr(switches, "watched", watched)
    sampled = SimpleNamespace(cpus=[SimpleNamespace(steal=0)] * 2)
    bench: Any = SimpleNamespace(
        host=SimpleNamespace(sample=lambda _: sampled),
        cores=SimpleNamespace(control=0, forwarder=1),
        run=SimpleNamespace(owns=lambda pid: pid == 7),
    )
    trial = blank(Cell("memif", 64, 1), Arm("l2fwd", "c-l2fwd"), 0, "search", "flood", 1)
    with LinkSetup(Rope(), CONTEXT) as setup:
        assert setup.kernel_threads == set()
        with stolen(bench, [trial], setup):
            setup.ready()
        assert setup.kernel_threads == {9}
    assert trial.others == {"0": strangers, "1": strangers}
    assert setup.kernel_threads == set()
