# SPDX-License-Identifier: BSD-3-Clause
"""Where the experiment gets its devices: the lab's real beds, or others in their place.

A `Lab` opens a bed for a block; on it stand one device after the other, each a forwarder that runs
for one unit. What is measured goes to the caller's `record`, trial by trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from linerate.forwarders import forwarder
from linerate.host import cpus
from linerate.host.builds.plugins import probe_plugin
from linerate.host.places import rust_binary
from linerate.links import Link, LinkContext, Wire, link
from linerate.links.ports import Ports
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Role, Trial
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.traffic.other_generator import OtherGenerator
from linerate.traffic.sender import Sender
from linerate.trial.bed import Bed
from linerate.trial.search.bed_device import BedDevice, Terms
from linerate.trial.search.device import RecordingDevice
from linerate.trial.trial import Bench, Plan, run_trial

Record = Callable[[Trial], None]
# Of the frames that another generator is asked for before it is used; any takes this size.
SAMPLE_SIZE = 512


class Block(Protocol):
    """A bed: link and sender, for the forwarders of one block."""

    def flood(self, arm: Arm, block: int, record: Record) -> None:
        """One self-test trial: what this peer carries of all it can get."""

    def device(
        self, arm: Arm, block: int, max_pps: float, role: Role, record: Record
    ) -> AbstractContextManager[RecordingDevice]:
        """A forwarder that runs until the context ends."""


class Lab(Protocol):
    """Opens beds. `bench`: what all of its trials share."""

    bench: Bench

    def prepare(self, forwarders: Sequence[str], links: Sequence[str]) -> list[str]:
        """Find whatever can be missing before the first trial; returns warnings."""

    def bed(self, cell: Cell, *, flood: bool) -> AbstractContextManager[Block]:
        """Link and sender; `flood`: a sender that does not pace."""


class RealBlock:
    """A `Block` of this machine."""

    def __init__(self, bench: Bench, bed: Bed, terms: Terms, *, probe: bool) -> None:
        self.bench = bench
        self._bed = bed
        self._terms = terms
        self._probe = probe

    def flood(self, arm: Arm, block: int, record: Record) -> None:
        record(run_trial(self.bench, Plan(arm, "flood", block, 0, "self-test"), self._bed))

    def device(
        self, arm: Arm, block: int, max_pps: float, role: Role, record: Record
    ) -> AbstractContextManager[RecordingDevice]:
        return BedDevice(
            self.bench,
            self._bed,
            arm,
            block=block,
            max_pps=max_pps,
            terms=self._terms,
            record=record,
            role=role,
            probe=self._probe and role == "search",
        )

    def __enter__(self) -> RealBlock:
        return self

    def __exit__(self, *_: object) -> None:
        self._bed.close()


class RealLab:
    """A `Lab` of this machine. `other`: sends instead of the lab's own generator.

    `probe`: it is in every forwarder that is searched, the reference peer too, so that all are
    treated alike.
    """

    def __init__(
        self,
        bench: Bench,
        terms: Terms,
        other: OtherGenerator | None = None,
        *,
        probe: bool = False,
    ) -> None:
        self.bench = bench
        self._terms = terms
        self._other = other
        self._probe = probe

    def prepare(self, forwarders: Sequence[str], links: Sequence[str]) -> list[str]:
        for name in dict.fromkeys(forwarders):
            forwarder(name).prepare()
        for name in links:
            found = link(name)
            found.prepare()
            if isinstance(found, Ports) and not self.bench.memory.hugepages:
                found.without_hugepages()
        warnings: list[str] = []
        if self._other is None:
            rust_binary("generator")
        else:
            for name in links:
                warnings += self._other.prepare(self._sample(link(name)))
        if self._probe:
            probe_plugin()
        cores = self.bench.cores
        # Another generator is not on this machine's cores.
        warnings += cpus.ready(replace(cores, shared_core=cores.shared_core and not self._other))
        return warnings

    def _sample(self, found: Link) -> Traffic:
        """What another generator has to understand, in short."""
        locations = found.locations if isinstance(found, Ports) else ()
        senders = self.bench.senders(len(locations))
        return Traffic(locations, SAMPLE_SIZE, 0.1, 1000.0, senders=senders, ip=self.bench.ip)

    def bed(self, cell: Cell, *, flood: bool) -> RealBlock:
        def ours(wire: Wire) -> Sender:
            bench = self.bench
            return Generator(bench.run, bench.cores.control, bench.memory, wire, flood=flood)

        context = LinkContext(
            self.bench.run.path, cell.size, self.bench.memory.hugepages, self.bench.cores
        )
        bed = Bed(link(cell.link), context, self._other.start if self._other else ours)
        return RealBlock(self.bench, bed, self._terms, probe=self._probe)
