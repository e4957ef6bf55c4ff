# SPDX-License-Identifier: BSD-3-Clause
"""Advice for programs that do not start, by what they print."""

from __future__ import annotations

import re

# A pattern in a program's output when it does not start, and the advice for it. The first match
# counts.
_ADVICE = (
    (
        r"not the driver interface that this was written for|tailq is already registered"
        r"|failed to initialize trace",
        "the driver of this link is a plugin for the installed release of DPDK: a program with "
        "DPDK linked statically, or of another release, cannot load it; --link null2 needs none",
    ),
    (
        r"failed to parse device \W*net_nearfree",
        "the program did not load the driver of this link, which is a plugin: with DPDK linked "
        "statically, or of another release, it cannot; --link null2 needs none",
    ),
    (
        r"failed to parse device",
        "the program's DPDK found no such driver: one that is not installed needs the directory "
        "of its drivers after {eal}, as -d DIRECTORY; a static one must be linked with it",
    ),
    (
        r"no telemetry socket",
        "telemetry is expected below RUNTIME_DIRECTORY, which the lab sets: a program in a "
        "container needs this variable and the directory that it names (podman run -v /tmp:/tmp "
        "-e RUNTIME_DIRECTORY)",
    ),
    (
        r"\bOCI (permission|runtime)|\b(crun|runc):",
        "the container engine did not start the program: try its command line by itself, with "
        "the program's --help",
    ),
    (
        r"no cores defined for forwarding",
        "--lcores idle-main is for programs whose main lcore does not forward",
    ),
    (
        r"not enough (l?cores|workers)|need \S+ l?cores|l?core\S* \d+ is not (enabled|detected)",
        "a duel gives a command line in quotes one lcore: tell the program to use it for all ports "
        "(l2fwd: -q 2, l3fwd: --config {queues}), or give it more with --lcores 2",
    ),
    (
        r"pool.*(no buffer space|failed|cannot)|(cannot|can't|could ?n.t|failed to)"
        r" (allocate|create|init)[^;]*(mem|mbuf|pool)|cannot allocate memory",
        "memory is short: let it make fewer mbufs (testpmd: --total-num-mbufs=16384), or set "
        "memory_mib in a TOML file",
    ),
    (
        r"(cannot|can't|failed to) configure (device|port)",
        "the ports of many links have no hardware offloads and no RSS; a program that insists on "
        "them does not start there; --link frames2 has them",
    ),
    (
        r"exit code 12[67].*(no such file|not found|permission denied)",
        "programs start in a new, empty directory: a script must name its files by absolute paths",
    ),
)


def advice(message: str) -> str | None:
    """Advice for a program that did not start and printed this; None: there is none."""
    return next((what for words, what in _ADVICE if re.search(words, message, re.I)), None)
