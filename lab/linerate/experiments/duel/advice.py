# SPDX-License-Identifier: BSD-3-Clause
"""Advice for programs that do not start, from their output, and for programs that cannot be
compared, by the links that they work on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from linerate.forwarders import Forwarder
from linerate.forwarders.template import Template
from linerate.links import LINKS, Link
from linerate.trial.starts.faults import FaultError

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
        "memory is short: let it make fewer mbufs (testpmd: --total-num-mbufs=16384, Open vSwitch: "
        "other_config:per-port-memory=true), or set memory_mib in a TOML file",
    ),
    (
        r"creating tap|TUNSETIFF|could not (open|create) network device|failed to open datapath"
        r"|device or resource busy",
        "starts run beside each other: a program that makes interfaces of the kernel needs "
        'network = "own" in a TOML file, so that each start has a network namespace of its own',
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
    """Return advice for a program that did not start and printed this, or None."""
    return next((what for words, what in _ADVICE if re.search(words, message, re.I)), None)


def advice_on(fault: FaultError, link: Link, programs: Sequence[Forwarder]) -> list[str]:
    """Return advice that depends on the link, and on how the programs were started."""
    if fault.kind == "unsaturated":
        return [_other_link(link, programs)]
    if fault.kind in ("start", "ended"):
        return [
            f"{name} is a file here, and programs start in a new, empty directory: write "
            f"{Path(name).absolute()}"
            for name in relative_files(programs[fault.arm])
        ]
    return []


def _other_link(link: Link, programs: Sequence[Forwarder]) -> str:
    """Name a link on which the generator is not the limit, among those that both programs work
    on.
    """
    fit = [
        each
        for each in LINKS.values()
        if each.ports == link.ports and not any(program.misfit(each) for program in programs)
    ]
    without = next((each.name for each in fit if not each.has_generator), None)
    if without:
        return f"--link {without} has no generator"
    faster = f"{link.name}-af-xdp"
    if any(each.name == faster for each in fit):
        return f"--link {faster} has a faster generator"
    return (
        "no link that both work on has a faster generator; a program that sleeps while nothing "
        "comes needs none on veth"
    )


def relative_files(program: Forwarder) -> list[str]:
    """Return the arguments of a command line in quotes that are existing files with relative
    paths.
    """
    definition = program.definition
    if program.file or definition.directory or not definition.command:
        return []
    words = Template(definition.command).words[1:]
    texts = ["".join(part for part, _ in word) for word in words if not any(n for _, n in word)]
    names = [text.rpartition("=")[2] if text.startswith("-") else text for text in texts]
    return [name for name in names if name and not name.startswith("/") and Path(name).is_file()]
