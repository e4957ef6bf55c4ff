# SPDX-License-Identifier: BSD-3-Clause
"""Frames that interfaces lost: what the kernel counts of refusals, and that each is named once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

import pytest

from linerate import link_drops, netns
from linerate.errors import LabError, LinkError
from linerate.link_drops import Counters, Program, lost
from linerate.netns import Interface, Namespaces, ip

BEFORE = {"generator": Counters(90, 7, 100, 5), "forwarder": Counters(90, 1, 100, 50)}
IDLE = Program(received=0, sent=0)
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


def named(since: Counters, program: Program) -> tuple[int, int, int]:
    """Lost at the generator's end: sending, receiving, and between interfaces and program."""
    was = BEFORE["generator"]
    after = Counters(*(a + b for a, b in zip(astuple(was), astuple(since), strict=True)))
    found = lost(BEFORE, {**BEFORE, "generator": after}, {"generator": program, "forwarder": IDLE})
    places = ("interfaces tx_dropped", "interfaces rx_dropped", "not received")
    assert [found.pop(f"forwarder {place}") for place in places] == [0, 0, 0]
    sending, receiving, between = (found.pop(f"generator {place}") for place in places)
    assert not found
    return sending, receiving, between


def sending(tx_packets: int, tx_dropped: int, *, sent: int) -> tuple[int, int, int]:
    return named(Counters(tx_packets=tx_packets, tx_dropped=tx_dropped), Program(0, sent))


def receiving(rx_packets: int, rx_dropped: int, *, received: int) -> tuple[int, int, int]:
    return named(Counters(rx_packets, rx_dropped), Program(received, 0))


def test_what_its_sender_does_not_know_of_is_lost_at_the_interface() -> None:
    assert sending(90, 10, sent=100) == (10, 0, 0)


def test_what_its_sender_was_told_of_is_named_by_the_sender_alone() -> None:
    assert sending(90, 10, sent=90) == (0, 0, 0)


def test_a_frame_that_is_offered_again_is_not_lost() -> None:
    assert sending(100, 156, sent=100) == (0, 0, 0)
    # Two were refused more often than there was time for.
    assert sending(98, 156, sent=100) == (2, 0, 0)


def test_what_no_counter_names_is_not_said_to_be_refused() -> None:
    assert sending(90, 4, sent=100) == (4, 0, 0)
    # Of the time before, held back by the sender until now.
    assert sending(110, 4, sent=100) == (0, 0, 0)


def test_what_the_program_did_not_receive_is_lost_before_it() -> None:
    assert receiving(100, 3, received=90) == (0, 3, 7)
    assert receiving(100, 0, received=100) == (0, 0, 0)


def test_what_the_program_received_was_not_dropped_before_it() -> None:
    assert receiving(100, 30, received=100) == (0, 0, 0)


@contextmanager
def unplugged() -> Iterator[Interface]:
    """An interface that is up and whose other end is down: it refuses every frame."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with Namespaces(("a",)) as made:
        namespace = made.name("a")
        ip("-n", namespace, "link", "add", "x", "type", "veth", "peer", "name", "y")
        ip("-n", namespace, "link", "set", "x", "up")
        yield Interface(namespace, "x", Interface.FORWARDER)


@pytest.mark.parametrize("past_the_qdisc", [True, False])
def test_a_refused_frame_is_in_the_books_once(past_the_qdisc: bool) -> None:
    """By the kernel itself, which tells a sender of it or does not, and counts it in both cases."""
    frames, told = 10, 0
    with unplugged() as interface, netns.inside(interface.namespace):
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
    assert after["forwarder"].since(before["forwarder"]).tx_dropped == frames
    found = lost(before, after, {"forwarder": Program(0, frames - told)})
    # The sender's own drops, and the link's.
    assert told + sum(found.values()) == frames


def test_what_is_no_namespace_is_named() -> None:
    with pytest.raises(LinkError, match="linerate-none"):
        link_drops.read([Interface("linerate-none", "x", Interface.FORWARDER)])


def test_without_interfaces_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: pytest.fail("read"))
    assert link_drops.read([]) == {}
    assert lost({}, {}, {"generator": IDLE, "forwarder": IDLE}) == {}
