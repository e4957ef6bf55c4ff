# SPDX-License-Identifier: BSD-3-Clause
"""Frames lost by interfaces: the kernel's counts of refusals, each reported once."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fake_host import inside

from linerate.host import netns
from linerate.host.errors import LabError, LinkError
from linerate.host.host import InNamespace, Local
from linerate.host.netns import Interface, Namespaces, ip
from linerate.trial import link_drops
from linerate.trial.link_drops import Passed, lost

BEFORE = {"generator": Passed(90, 100), "forwarder": Passed(50, 60)}
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


def named(interfaces: Passed, program: Passed) -> tuple[int, int]:
    """Frames of the generator's end: not sent, not received."""
    was = BEFORE["generator"]
    after = Passed(was.received + interfaces.received, was.sent + interfaces.sent)
    programs = {"generator": program, "forwarder": Passed()}
    found = lost(BEFORE, {**BEFORE, "generator": after}, programs)
    assert found["forwarder not sent"] == found["forwarder not received"] == 0
    assert len(found) == 4
    return found["generator not sent"], found["generator not received"]


def test_what_its_sender_does_not_know_of_was_not_sent() -> None:
    assert named(Passed(sent=90), Passed(sent=100)) == (10, 0)


def test_what_its_sender_was_told_of_is_named_by_the_sender_alone() -> None:
    assert named(Passed(sent=90), Passed(sent=90)) == (0, 0)


def test_what_a_ring_held_back_belongs_to_the_window_that_it_left_in() -> None:
    assert named(Passed(sent=110), Passed(sent=100)) == (-10, 0)


def test_what_the_program_did_not_receive_is_lost_before_it() -> None:
    assert named(Passed(received=100), Passed(received=93)) == (0, 7)


@contextmanager
def unplugged() -> Iterator[Interface]:
    """An interface that is up and whose peer is down: it refuses every frame."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with Namespaces(("a",)) as made:
        host = made.host("a")
        ip("link", "add", "x", "type", "veth", "peer", "name", "y", host=host)
        ip("link", "set", "x", "up", host=host)
        yield Interface(host, "x", Interface.FORWARDER)


@pytest.mark.parametrize("past_the_qdisc", [True, False])
def test_a_refused_frame_is_in_the_books_once(past_the_qdisc: bool) -> None:
    """The kernel itself counts it, whether or not it reports it to the sender."""
    frames, told = 10, 0
    with unplugged() as interface, inside(interface.host):
        before = link_drops.read([interface])
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, past_the_qdisc)
            sender.bind((interface.name, 0))
            for _ in range(frames):
                try:
                    sender.send(bytes(60))
                except OSError as error:
                    told += error.errno == errno.ENOBUFS
        after = link_drops.read([interface])
        shown = json.loads(ip("-s", "-j", "link", "show", "dev", "x", host=interface.host))
    # The kernel counts all frames in either case.
    assert shown[0]["stats64"]["tx"]["dropped"] == frames
    found = lost(before, after, {"forwarder": Passed(sent=frames - told)})
    # The sender's own drops, and the link's.
    assert told + sum(found.values()) == frames


def test_what_is_no_namespace_is_named() -> None:
    with pytest.raises(LinkError, match="linerate-none"):
        link_drops.read([Interface(InNamespace("linerate-none"), "x", Interface.FORWARDER)])


def test_an_interface_that_is_gone_is_named_and_not_counted_as_nothing() -> None:
    with unplugged() as interface:
        other = Interface(interface.host, "y", interface.end)
        assert link_drops.read([interface, other])
        ip("link", "del", "y", host=interface.host)
        with pytest.raises(LinkError, match=f"x, y: gone from .*{interface.host.namespace}"):
            link_drops.read([interface, other])


def test_without_interfaces_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Local, "sample", lambda *_: pytest.fail("sampled"))
    assert link_drops.read([]) == {}
    assert lost({}, {}, {"generator": Passed(3, 4), "forwarder": Passed(4, 3)}) == {}
