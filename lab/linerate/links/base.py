# SPDX-License-Identifier: BSD-3-Clause
"""What the lab asks of a link.

Lifecycle: `Link.open` makes what the link needs outside the lab (sockets, interfaces, namespaces)
and removes it when its context ends, however it ends; what a killed lab left behind lies in its run
directory or is found by its name, and goes when the next one opens. A `Link` itself is stateless.
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
    """Where a link's sockets go, and the frame size (with the 4-byte FCS) of its trials.

    `hugepages`: both ends get their memory from huge pages. `cores`: where the ends run; None:
    where the lab would choose. `receive_first`: the kernel's threads that receive for the
    generator, where there are some, have its core before it. `host`: where the link is made.
    `number`: of links of one kind that are open at once, from 0.
    """

    directory: Path
    size: int
    hugepages: bool = False
    cores: Cores | None = None
    receive_first: bool = False
    host: Host = LOCAL
    number: int = 0


def numbered(word: str, number: int) -> str:
    """The word itself for the first of several."""
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
    """An open link, as its two ends know it.

    `vdevs`: arguments of --vdev, one per port of the forwarder; or `pci`: their PCI addresses.
    `eal_options`: what EAL needs beside them. `locations`: OTG port locations, one per port of the
    generator; none without one. `sender_pci`: the PCI addresses among them. `sender_eal_options`:
    what the generator's EAL needs beside them. `host`, `sender_host`: where the programs of the two
    ends run, as a rule in network namespaces. `interfaces`: those of the kernel whose counters name
    frames that are lost between the ends. `threads`: of the kernel, that work for an end.
    `sender_has_xdp`: the generator puts XDP programs on its interfaces. `tables`: what the frames
    are to be routed and filtered by; None: by the routes of the lab's flows.
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
        """How many the forwarder has."""
        return len(self.vdevs) + len(self.pci)

    def of(self, end: str) -> tuple[Interface, ...]:
        """The kernel's interfaces of that end, in the order of its ports."""
        return tuple(each for each in self.interfaces if each.end == end)

    @property
    def sender(self) -> Wire:
        """What EAL is to know at the generator's end: the rest comes over OTG."""
        return Wire(pci=self.sender_pci, eal_options=self.sender_eal_options)


class Link(ABC):
    """One way to carry frames."""

    name: str
    ports: int
    # False: the forwarder's ports make and swallow frames themselves; there is no generator.
    has_generator: bool
    description: str
    # Whose ports those are; of a link without a generator.
    driver: str = ""
    # The forwarder's ports are, or may be, interfaces of the kernel.
    interfaces: bool = False
    # The lab makes those of both ends, in namespaces of its own.
    makes_interfaces: bool = False
    # Threads of the kernel receive for both ends, each on its end's CPU (`Wire.threads`).
    receives_by_threads: bool = False
    # The generator's ends are interfaces of the kernel's.
    kernel_generator: bool = False
    # That is one interface, which the lab makes: what is sent there by any socket comes back to it.
    packet_sender: bool = False
    # False: the size of the frames changes nothing on this link.
    size_matters: bool = True
    # What its frames are for, unless they are of the lab's flows.
    tables: Tables | None = None

    @property
    def receives_by_softirq(self) -> bool:
        """Whether the kernel receives in its own time, for which the lab can ask nothing."""
        return self.interfaces and not self.receives_by_threads

    def prepare(self) -> None:  # noqa: B027 - most links need nothing
        """Find or build what the link needs; raises `LabError` with what mends it."""

    def plugin(self) -> Path | None:
        """The driver to load, after `prepare`; None: DPDK has it."""
        return None

    @abstractmethod
    def open(self, context: LinkContext) -> AbstractContextManager[Wire]:
        """Make the link, for a block of trials."""
