# SPDX-License-Identifier: BSD-3-Clause
"""The stored part of the output of a program that ended."""

from __future__ import annotations

import pytest

from linerate.host.text import complaints, last_words

USAGE = "\nUsage: program [options]\n" + "  --option   What it does\n" * 80


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("", ""),
        ("EAL: Detected CPU lcores: 2\n\n", ""),
        (
            "net_nearfree: not the driver interface\nEAL: Bus (vdev) probe failed.\n"
            "  Cause: No Ethernet ports - bye\nMAC updating enabled\n",
            "net_nearfree: not the driver interface; EAL: Bus (vdev) probe failed.; "
            "Cause: No Ethernet ports - bye",
        ),
        (
            "EAL: Detected NUMA nodes: 1\nEAL: lcore 99 unavailable\n"
            + USAGE
            + "EAL: Invalid 'command line' arguments.\nl2fwd: EAL did not start; see above\n",
            "EAL: lcore 99 unavailable; EAL: Invalid 'command line' arguments.; "
            "l2fwd: EAL did not start; see above",
        ),
        (
            "EAL: lcore 99 unavailable\nEAL: Error - exiting with code: 1\n"
            "  Cause: Cannot init EAL: Invalid argument\n" + USAGE,
            "EAL: lcore 99 unavailable; Cause: Cannot init EAL: Invalid argument",
        ),
        (
            "fw: unrecognized option '--no-such'\n" + USAGE + "EAL: Invalid arguments.\n",
            "fw: unrecognized option '--no-such'; EAL: Invalid arguments.",
        ),
        (
            "EAL: 640 hugepages of size 2097152 reserved, but no mounted hugetlbfs found for that "
            "size\nEAL: No free 1048576 kB hugepages reported on node 0\n"
            "EAL: No free 2048 kB hugepages reported on node 0\n",
            "EAL: No free 2048 kB hugepages reported on node 0",
        ),
        (
            "00054|netdev_dpdk|ERR|Failed to create memory pool for netdev p0\n"
            "00055|bridge|INFO|bridge br0: added interface br0 on port 65534\nended\nso it did\n",
            "00054|netdev_dpdk|ERR|Failed to create memory pool for netdev p0; ended; so it did",
        ),
        ("one\n  two\n\nthree\nfour\n", "three; four"),
        (
            "\x1b[1;31mEAL: no memory\x1b[0m\n\x1b]0;title\x07ended\x00\x08\x9b\n\x1b[2J\n",
            "EAL: no memory; ended",
        ),
        ("  one\n  two\n  three\n  four\n", "two; three; four"),
    ],
)
def test_last_words(output: str, expected: str) -> None:
    assert last_words(output) == expected


def test_last_words_are_bounded_and_keep_the_end() -> None:
    output = "".join(f"EAL: {name * 150}\n" for name in "abcd") + "l2fwd: " + "e" * 500
    found = last_words(output)
    assert len(found) <= 400
    assert found == f"EAL: {'d' * 150}; l2fwd: {'e' * 193}"


def test_a_program_that_runs_is_quoted_only_where_it_complains() -> None:
    assert complaints("Port statistics\nPackets sent: 1\n") == ""
    assert complaints("Port 0\n1|dpdk|EMER|no memory\nPort 1\n") == "1|dpdk|EMER|no memory"
