# SPDX-License-Identifier: BSD-3-Clause
"""The probe in testpmd: right counts across several queues, stops, restarts and other devices.

testpmd forwards the packets that it was given first between two ring ports until it is told to
stop, so all counters are at rest when they are compared.
"""

from __future__ import annotations

import re
from collections import Counter

from forwarding_programs import Testpmd, commanded_testpmd

from linerate.host.process import RunDirectory

QUEUES = ["--rxq=2", "--txq=2"]
# Bursts that `start tx_first` puts into each queue.
FIRST = 8
STREAM = (
    r"RX Port= (\d+)/Queue= (\d+) -> TX Port= \d+/Queue= \d+ -+\s+RX-packets: (\d+) .*\s+"
    r"RX-bursts : (\d+) "
)
Counts = Counter[tuple[int, int]]


def forward(testpmd: Testpmd, start: str = f"start tx_first {FIRST}") -> tuple[Counts, Counts]:
    """Start, let some packets pass, stop; return packets and polls of each queue as testpmd counted
    them.
    """
    program = testpmd.program
    before = program.received(1)
    testpmd.tell(start)
    program.wait("packets", lambda: program.received(1) > before + 100_000)
    printed = testpmd.tell("stop")
    streams = re.findall(STREAM, printed)
    assert len(streams) == 4, printed
    packets, polls = Counts(), Counts()
    for port, queue, received, bursts in streams:
        packets[int(port), int(queue)] = int(received)
        polls[int(port), int(queue)] = int(bursts)
    return packets, polls


def polls(testpmd: Testpmd) -> Counts:
    """Return those of the lcore that forwards; the main lcore discards what it finds when it
    starts.
    """
    entries = testpmd.program.entries()
    return Counts(
        {(each["port"], each["queue"]): each["polls"] for each in entries if each["lcore"] == 1}
    )


def times(testpmd: Testpmd) -> dict[tuple[int, int], tuple[int, int]]:
    """Return busy and total cycles of port 1's queues."""
    entries = testpmd.program.entries()
    return {
        (each["lcore"], each["queue"]): (each["busy_tsc"], each["total_tsc"])
        for each in entries
        if each["port"] == 1
    }


def check_devices(testpmd: Testpmd, *, gone: Counts | None = None) -> None:
    """Check that each queue's packets are its device's; `gone`: also those of devices that were
    there before.
    """
    counted = testpmd.program.packets()
    for port in (0, 1):
        stats = testpmd.program.stats(port)
        here = [counted[port, queue] - (gone or Counts())[port, queue] for queue in (0, 1)]
        assert here == stats["q_ipackets"][:2]
        assert sum(here) == stats["ipackets"]


def test_counts_are_right_across_stops_and_restarts() -> None:
    with (
        RunDirectory() as run,
        commanded_testpmd(run, ["net_ring0", "net_ring1"], QUEUES) as testpmd,
    ):
        testpmd.program.await_queues(4)
        testpmd.tell("set record-burst-stats on")
        testpmd.tell("set flush_rx off")
        forwarded, polled = forward(testpmd)
        assert testpmd.program.packets() == forwarded
        assert polls(testpmd) == polled
        check_devices(testpmd)

        # What is left in the rings is taken by the main lcore in one burst of up to 512.
        testpmd.tell("set flush_rx on")
        testpmd.tell("start")
        testpmd.tell("stop")
        check_devices(testpmd)
        flushes = [entry for entry in testpmd.program.entries() if entry["lcore"] == 0]
        assert len(flushes) == 4
        for entry in flushes:
            assert (entry["polls"], entry["empty_polls"], entry["burst_limit"]) == (3, 2, 512)
            assert entry["burst_histogram"][32 * FIRST] == 1
        testpmd.tell("set flush_rx off")

        for _ in range(3):
            before, polls_before = testpmd.program.packets(), polls(testpmd)
            testpmd.tell("port stop all")
            testpmd.tell("port start all")
            forwarded, polled = forward(testpmd)
            assert testpmd.program.packets() - before == forwarded
            assert polls(testpmd) - polls_before == polled
            check_devices(testpmd)
        assert testpmd.program.child.stop() == 0


def test_a_device_in_the_place_of_a_closed_one_is_counted_from_its_first_packet() -> None:
    ports = ["net_ring0", "net_null1,size=64"]
    with RunDirectory() as run, commanded_testpmd(run, ports, QUEUES) as testpmd:
        program = testpmd.program
        testpmd.tell("set record-burst-stats on")
        testpmd.tell("set flush_rx off")
        # net_ring has 16 queues from the start, of which two are used.
        program.await_queues(16 + 2)
        forward(testpmd, "start")
        check_devices(testpmd)
        for device in range(2, 5):
            before, watched = program.packets(), times(testpmd)
            testpmd.tell("port stop 1")
            testpmd.tell("port close 1")
            assert program.ask("/linerate/probe")["rx_queues"] == 16
            assert program.packets() == before
            testpmd.tell(f"port attach net_null{device},size=64")
            testpmd.tell("port start 1")
            program.await_queues(16 + 2)
            forwarded, _ = forward(testpmd, "start")
            assert program.packets() - before == forwarded
            # The thread rested since a poll with packets, and the queue was gone meanwhile: nobody
            # was busy with it.
            for queue, (busy, total) in times(testpmd).items():
                assert busy - watched[queue][0] <= total - watched[queue][1]
            gone = Counts({each: n for each, n in before.items() if each[0] == 1})
            check_devices(testpmd, gone=gone)
        assert program.child.stop() == 0
