# SPDX-License-Identifier: BSD-3-Clause
"""The machine and programs of a session, and whether those of two sessions are the same.

Trials of one run may come from several sessions only if machine, memory and programs are the same:
an arm is one program on one machine, and its ratio to the baseline is one figure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from linerate import __version__
from linerate.forwarders import FORWARDERS, Definition, add, forwarder
from linerate.host import foreign, machine
from linerate.host.builds.plugins import PROBE
from linerate.host.errors import RunError
from linerate.host.machine import Machine
from linerate.host.places import rust_binary
from linerate.records.run_file import Described, Session

# A ratio of two programs is another figure where one of these differs ...
_HARDWARE = ("cpu_model", "hypervisor", "numa_nodes", "l3_cache")
_DECIDING = (*_HARDWARE, "dpdk_version")
_PAGES = {"hugepages": "huge pages", "no-huge": "small pages"}
# ... and may be where one of these does.
_TELLING = ("cpu_count", "cpus_allowed", "kernel", "governor", "clock_source", "distribution")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of the lab and of everything its figures depend on."""
    found = {"linerate": __version__, "dpdk": machine.dpdk_version() or "unknown"}
    for name in ("snappi", "scipy", "numpy", "altair", "vl-convert-python"):
        found[name] = metadata.version(name)
    return found


def programs(
    forwarders: Iterable[str], *, generator: bool, probe: bool, others: Iterable[str] = ()
) -> dict[str, str]:
    """Return the SHA-256 of the files of these forwarders, and of the lab's own programs; after
    `prepare`.
    """
    found: dict[str, Path] = {}
    for name in dict.fromkeys(forwarders):
        if path := forwarder(name).program():
            found[name] = path
    for wanted, name in (
        (generator, "generator"),
        (probe, PROBE),
        *((True, name) for name in others),
    ):
        if wanted:
            found[name] = rust_binary(name)
    return digests(found)


def described(names: Iterable[str]) -> dict[str, Described]:
    """Return the definitions of those names that are forwarders."""
    return {
        name: Described(
            definition=known.definition.as_data(),
            sha256=known.definition.digest,
            file=str(known.file) if known.file else None,
        )
        for name in dict.fromkeys(names)
        if (known := FORWARDERS.get(name))
    }


def recall(session: Session) -> None:
    """Register the forwarders that a session read from files, as they were then.

    Forwarders that this process knows already stay: `refuse_to_resume` says if they differ.
    """
    for name, each in session.forwarders.items():
        if each.file and name not in FORWARDERS:
            add([Definition.model_validate(each.definition)], each.file, Path(each.file))


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of the readable files, by their names in the lab."""
    return {name: digest for name, path in files.items() if (digest := _digest(path))}


def _digest(path: Path) -> str | None:
    try:
        with foreign.opened(path, foreign.MOST_PROGRAM) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def changed_programs(one: Session, other: Session) -> list[str]:
    """Return the names of programs that both had and that are not the same file."""
    return sorted(
        name for name, digest in one.programs.items() if other.programs.get(name, digest) != digest
    )


def changed_definitions(one: Session, other: Session) -> list[str]:
    """Return the names of the forwarders that both had with different definitions."""
    return sorted(
        name
        for name, mine in one.forwarders.items()
        if name in other.forwarders and other.forwarders[name].sha256 != mine.sha256
    )


def deciding(one: Session, other: Session) -> list[str]:
    """Return the differences in machine and memory that make the measurements incomparable, in
    words.
    """
    return [*_facts(one.machine, other.machine, _DECIDING), *_pages(one, other)]


def _pages(one: Session, other: Session) -> list[str]:
    if one.memory == other.memory:
        return []
    return [f"memory: {_PAGES[one.memory]} and {_PAGES[other.memory]}"]


def apart(one: Session, other: Session, *, dpdk_may_differ: bool = False) -> str | None:
    """Return how the two measured different things, as the end of a sentence; None if they did
    not.
    """
    names = _HARDWARE if dpdk_may_differ else _DECIDING
    found = [*_facts(one.machine, other.machine, names), *_pages(one, other)]
    if not found:
        return None
    differing = "; ".join(found)
    if _facts(one.machine, other.machine, _HARDWARE):
        return f"ran on different machines: {differing}"
    return f"ran on one machine that was set up in two ways: {differing}"


# Absolute figures, unlike ratios, are others where one of these differs as well.
_ABSOLUTE = ("cpu_count", "kernel", "governor")


def conditions(machine: Machine) -> dict[str, str]:
    """Return the facts that must be the same in two runs for absolute figures to answer one
    question. Two machines of one kind cannot be distinguished.
    """
    return {
        name: str(getattr(machine, name) or "unknown").casefold()
        for name in (*_DECIDING, *_ABSOLUTE)
    }


def telling(one: Session, other: Session) -> list[str]:
    """Return the other differences that a reader should know, in words."""
    found = _facts(one.machine, other.machine, _TELLING)
    if one.cpus != other.cpus:
        found.append(f"CPUs: {_cpus(one)} and {_cpus(other)}")
    pages = [_reserved(each.machine) for each in (one, other)]
    if pages[0] != pages[1]:
        found.append(f"reserved huge pages: {' and '.join(pages)}")
    mine, others = one.versions.get("linerate"), other.versions.get("linerate")
    if mine != others:
        found.append(f"linerate: {mine} and {others}")
    return found


def _reserved(machine: Machine) -> str:
    """Return the number and size of huge pages; the number of free ones changes all the time."""
    pools = [f"{pool.total} x {pool.size_kib} KiB" for pool in machine.hugepages if pool.total]
    return ", ".join(pools) or "none"


def _cpus(session: Session) -> str:
    return ", ".join(f"{role} {cpu}" for role, cpu in session.cpus.items())


def _facts(one: Machine, other: Machine, names: tuple[str, ...]) -> list[str]:
    return [
        f"{name.replace('_', ' ')}: {getattr(one, name)} and {getattr(other, name)}"
        for name in names
        if not _same(getattr(one, name), getattr(other, name))
    ]


def _same(one: object, other: object) -> bool:
    """Return True if two facts are the same, ignoring different spellings of a name, such as KVM
    and kvm.
    """
    if isinstance(one, str) and isinstance(other, str):
        return one.casefold() == other.casefold()
    return one == other


def refuse_to_resume(first: Session, this: Session) -> None:
    """Raise `RunError` unless this session would measure the same as the run's first one."""
    rebuilt = changed_programs(first, this)
    if rebuilt:
        raise RunError(
            f"{', '.join(rebuilt)}: not the program that the run began with; half of an arm would "
            "be one program and half another",
            "start a new run, or bring back the build that the run began with",
        )
    redefined = changed_definitions(first, this)
    if redefined:
        raise RunError(
            f"{', '.join(redefined)}: the definition has changed since the run began; half of an "
            "arm would be started in one way and half in another",
            "start a new run, or bring back the definition in the run's run.json",
        )
    differing = deciding(first, this)
    if differing:
        raise RunError(
            f"the machine or its set-up has changed since the run began: {'; '.join(differing)}",
            "start a new run here; linerate compare compares two runs",
        )
