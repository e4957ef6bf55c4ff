# SPDX-License-Identifier: BSD-3-Clause
"""Frames that interfaces lost: what the kernel counts of refusals, and that each is named once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linerate import link_drops, netns
from linerate.errors import LabError, LinkError
from linerate.link_drops import Counters, lost
from linerate.netns import Interface, Namespaces, ip

BEFORE = {"generator": Counters(7, 100, 5), "forwarder": Counters(1, 100, 50)}
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


def named(rx_dropped: int, tx_packets: int, tx_dropped: int, sent: int) -> tuple[int, int]:
    """What is lost at the generator's interfaces, received and sent."""
    after = {
        "generator": BEFORE["generator"].plus(Counters(rx_dropped, tx_packets, tx_dropped)),
        "forwarder": BEFORE["forwarder"],
    }
    found = lost(BEFORE, after, {"generator": sent, "forwarder": 0})
    assert found["forwarder interfaces rx_dropped"] == found["forwarder interfaces tx_dropped"] == 0
    return found["generator interfaces rx_dropped"], found["generator interfaces tx_dropped"]


def test_what_its_sender_does_not_know_of_is_lost_at_the_interface() -> None:
    assert named(0, 90, 10, sent=100) == (0, 10)
    assert named(3, 100, 0, sent=100) == (3, 0)


def test_what_its_sender_was_told_of_is_named_by_the_sender_alone() -> None:
    assert named(0, 90, 10, sent=90) == (0, 0)


def test_a_frame_that_is_offered_again_is_not_lost() -> None:
    assert named(0, 100, 156, sent=100) == (0, 0)
    # Two were refused more often than there was time for.
    assert named(0, 98, 156, sent=100) == (0, 2)


def test_what_no_counter_names_is_not_said_to_be_lost_there() -> None:
    assert named(0, 90, 4, sent=100) == (0, 4)
    # Of the time before, held back by the sender until now.
    assert named(0, 110, 4, sent=100) == (0, 0)


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
    assert after["forwarder"].plus(before["forwarder"], -1).tx_dropped == frames
    found = lost(before, after, {"forwarder": frames - told})
    # The sender's own drops, and the link's.
    assert told + sum(found.values()) == frames


def test_what_is_no_namespace_is_named() -> None:
    with pytest.raises(LinkError, match="linerate-none"):
        link_drops.read([Interface("linerate-none", "x", Interface.FORWARDER)])


def test_without_interfaces_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _: pytest.fail("read"))
    assert link_drops.read([]) == {}
    assert lost({}, {}, {"generator": 3, "forwarder": 3}) == {}
