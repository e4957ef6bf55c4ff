# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a link.

Lifecycle: `Link.open` makes everything that the link needs outside the lab (sockets, interfaces,
namespaces) and removes it when its context ends, in whatever way; leftovers of a killed lab are in
its run directory or are found by their names, and the next `open` removes them. A `Link` itself is
stateless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from linerate.host.cores.cpus import Cores
from linerate.host.host import LOCAL, Host
from linerate.host.netns import Interface
from linerate.links.tables import Tables


@dataclass(frozen=True)
class LinkContext:
    """The directory of a link's sockets, and the frame size (with the 4-byte FCS) of its trials.

    `hugepages`: both ends get their memory from huge pages. `cores`: the CPUs of the ends; None:
    the lab's choice. `receive_first`: kernel threads that receive for the generator, if any, have
    its core before it. `host`: the host on which the link is made. `number`: distinguishes open
    links of one kind, from 0.
    """

    directory: Path
    size: int
    hugepages: bool = False
    cores: Cores | None = None
    receive_first: bool = False
    host: Host = LOCAL
    number: int = 0


def numbered(word: str, number: int) -> str:
    """Return the word with the number appended; for the first of several, the word itself."""
    return f"{word}{number}" if number else word


@dataclass(frozen=True)
class KernelThread:
    """A thread of the kernel that receives for one end of a link, pinned to that end's CPU."""

    FORWARDER: ClassVar = "forwarder-link"
    GENERATOR: ClassVar = "generator-link"

    role: str
    name: str
    pid: int
    cpu: int


@dataclass(frozen=True)
class Wire:
    """An open link, as its two ends see it.

    `vdevs`: arguments of --vdev, one per port of the forwarder; or `pci`: their PCI addresses.
    `eal_options`: further options of EAL. `locations`: OTG port locations, one per port of the
    generator; empty without one. `sender_pci`: the PCI addresses among them. `sender_eal_options`:
    further options of the generator's EAL. `host`, `sender_host`: hosts of the programs at the two
    ends, usually network namespaces. `interfaces`: kernel interfaces whose counters name frames
    lost between the ends. `threads`: kernel threads that work for an end. `sender_has_xdp`: the
    generator puts XDP programs on its interfaces. `tables`: routes and rules for the frames; None:
    the routes of the lab's flows.
    """

    vdevs: tuple[str, ...] = ()
    eal_options: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    sender_pci: tuple[str, ...] = ()
    sender_eal_options: tuple[str, ...] = ()
    host: Host = LOCAL
    sender_host: Host = LOCAL
    interfaces: tuple[Interface, ...] = ()
    threads: tuple[KernelThread, ...] = ()
    sender_has_xdp: bool = False
    tables: Tables | None = None

    @property
    def ports(self) -> int:
        """Number of the forwarder's ports."""
        return len(self.vdevs) + len(self.pci)

    def of(self, end: str) -> tuple[Interface, ...]:
        """Return the kernel's interfaces of that end, in the order of its ports."""
        return tuple(each for each in self.interfaces if each.end == end)

    @property
    def sender(self) -> Wire:
        """The generator's end for EAL's options: everything else goes over OTG."""
        return Wire(pci=self.sender_pci, eal_options=self.sender_eal_options)


class Link(ABC):
    """One way to carry frames."""

    name: str
    ports: int
    # False: the forwarder's ports make and swallow frames themselves; there is no generator.
    has_generator: bool
    description: str
    # The driver of the ports, for a link without a generator.
    driver: str = ""
    # The forwarder's ports are, or may be, interfaces of the kernel.
    interfaces: bool = False
    # The lab makes those of both ends, in namespaces of its own.
    makes_interfaces: bool = False
    # Threads of the kernel receive for both ends, each on its end's CPU (`Wire.threads`).
    receives_by_threads: bool = False
    # The generator's ends are interfaces of the kernel's.
    kernel_generator: bool = False
    # The link is one interface, which the lab makes: any socket that sends there gets the frames
    # back.
    packet_sender: bool = False
    # False: the size of the frames changes nothing on this link.
    size_matters: bool = True
    # The tables that its frames are for; None: those of the lab's flows.
    tables: Tables | None = None

    @property
    def receives_by_softirq(self) -> bool:
        """True if the kernel receives in soft interrupts, whose CPU time the lab cannot control."""
        return self.interfaces and not self.receives_by_threads

    def prepare(self) -> None:  # noqa: B027 - most links need nothing
        """Find or build what the link needs; raises `LabError` with what to do."""

    def plugin(self) -> Path | None:
        """Return the driver to load, after `prepare`; None if DPDK has it."""
        return None

    @abstractmethod
    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        """Make the link, for a block of trials."""
