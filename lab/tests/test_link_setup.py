# SPDX-License-Identifier: BSD-3-Clause
"""The setup owns link and sender: made when asked for, made anew after a death, always closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linerate.host.errors import ProcessError
from linerate.links import Link, LinkContext, Wire, link
from linerate.traffic.sender import Sender, Sent
from linerate.trial.link_setup import LinkSetup

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
            yield Wire(vdevs=("net_null0",), locations=("here",))
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
