# SPDX-License-Identifier: BSD-3-Clause
"""The user's own devices: `--link ports --generator-port LOCATION --forwarder-port LOCATION`.

One or two ports at each end, which the user has connected. A generator's port is any OTG location
that the generator accepts; a forwarder's is a device in EAL's command-line syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linerate.host.errors import UsageError
from linerate.host.host import LOCAL
from linerate.host.leftovers.interfaces import kept
from linerate.links.base import Link, LinkContext, Wire

NAME = "ports"
GENERATOR, FORWARDER = "--generator-port", "--forwarder-port"
MAX_PORTS = 2

_SOCKETS = ("memif", "vhost", "virtio_user")
_GENERATOR_KINDS = (
    "INTERFACE", "af_packet:", "af_xdp:", *(f"{kind}:" for kind in _SOCKETS),
    "tap:", "ring:", "null", "vdev:", "pci:",
)  # fmt: skip
_FORWARDER_KINDS = ("pci:ADDRESS", "vdev:ARGUMENTS", "INTERFACE", "af_packet:", "af_xdp:", "tap:")
_PCI = re.compile(r"(?:([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])")
_VDEV_INTERFACE = re.compile(r"vdev:net_af_(?:packet|xdp)[^,]*,(?:.*,)?iface=([^,]+)")
# These use one memory file that the other process maps.
_ONE_FILE = ("net_vhost", "eth_vhost", "net_virtio_user", "vhost:", "virtio_user:")


@dataclass(frozen=True)
class Device:
    """One port for EAL: a PCI address, or arguments of --vdev."""

    text: str
    pci: str | None = None
    vdev: str | None = None


class Ports(Link):
    """Existing devices; opening makes nothing.

    Only `prepare` and `open` check that they exist, so that old runs can be reported without them.
    """

    name = NAME
    has_generator = True

    def __init__(
        self,
        generator: Sequence[str] = (),
        forwarder: Sequence[str] = (),
        *,
        foreign: bool = False,
    ) -> None:
        """Store the devices. `foreign`: the generator is not the lab's; only it understands its
        locations.
        """
        self.locations = tuple(generator)
        self.forwarder = tuple(forwarder)
        self.foreign = foreign
        self.ports = len(forwarder)
        self.interfaces = all(map(_is_interface, forwarder))
        both = zip(generator, forwarder, strict=False)
        between = ", ".join(f"{ours} and {theirs}" for ours, theirs in both)
        self.description = f"your own devices, generator and forwarder: {between}"

    def check(self, links: Sequence[str]) -> None:
        """Raise `UsageError` unless these devices are given for the links of a run."""
        if self.foreign and list(links) != [NAME]:
            raise UsageError(
                f"--generator needs --link {NAME}: on links that the lab makes, only its own "
                "generator can send",
                f"--link {NAME} with {GENERATOR} LOCATION and {FORWARDER} LOCATION",
            )
        if NAME in links:
            self.prepare()
            return
        for option, given in ((GENERATOR, self.locations), (FORWARDER, self.forwarder)):
            if given:
                raise UsageError(f"{option} {given[0]}: only for --link {NAME}", f"--link {NAME}")

    @property
    def _ours(self) -> tuple[str, ...]:
        """The locations that the lab's own generator opens."""
        return () if self.foreign else self.locations

    @property
    def devices(self) -> tuple[Device, ...]:
        """The forwarder's ports; raises `UsageError` if one does not exist."""
        return tuple(_device(text, place) for place, text in enumerate(self.forwarder))

    def prepare(self) -> None:
        """Check all devices; `UsageError` names the option."""
        if not self.locations and not self.forwarder:
            raise UsageError(
                f"--link {NAME}: no devices",
                f"name as many by {GENERATOR} LOCATION as by {FORWARDER} LOCATION",
            )
        _check_counts(self.locations, self.forwarder)
        for location in self.locations:
            if self.foreign and not location:
                raise _refuse(GENERATOR, location, "names nothing")
            if not self.foreign:
                _check_generator(location)
        _check_all(self.locations, self.devices, foreign=self.foreign)

    def without_hugepages(self) -> None:
        """Refuse to run without huge pages: physical devices need them."""
        ends = [(GENERATOR, text) for text in self._ours]
        ends += [(FORWARDER, text) for text in self.forwarder]
        for option, text in ends:
            if text.startswith("pci:"):
                raise _refuse(
                    option, text, "a physical device needs hugepages",
                    "as root: sysctl vm.nr_hugepages=640 (of 2 MiB), and mount hugetlbfs",
                )  # fmt: skip

    def eal_options(self, *, hugepages: bool) -> tuple[str, ...]:
        texts = (*self._ours, *(device.vdev or "" for device in self.devices))
        shared = any(part in text for text in texts for part in _ONE_FILE)
        return ("--single-file-segments",) if shared and hugepages else ()

    @contextmanager
    def open(self, context: LinkContext) -> Iterator[Wire]:
        shared = self.eal_options(hugepages=context.hugepages)
        texts = (*self._ours, *self.forwarder)
        with kept([name for name in map(_interface, texts) if name]):
            yield Wire(
                vdevs=tuple(device.vdev for device in self.devices if device.vdev),
                pci=tuple(device.pci for device in self.devices if device.pci),
                eal_options=shared,
                locations=self.locations,
                sender_pci=tuple(
                    location.removeprefix("pci:")
                    for location in self._ours
                    if location.startswith("pci:")
                ),
                sender_eal_options=shared,
            )


def _interface(text: str) -> str | None:
    """Return the existing kernel interface of a location, or None."""
    if found := _VDEV_INTERFACE.match(text):
        return found[1]
    kind, _, rest = text.rpartition(":")
    name = rest.split(",")[0]
    return name if kind in ("", "af_packet", "af_xdp") and rest != "null" else None


def _is_interface(text: str) -> bool:
    """Return True if programs other than DPDK's can use the device by name."""
    return ":" not in text or text.startswith(("af_packet:", "vdev:net_af_packet"))


def _check_counts(generator: Sequence[str], forwarder: Sequence[str]) -> None:
    for option, given, other in (
        (GENERATOR, generator, FORWARDER),
        (FORWARDER, forwarder, GENERATOR),
    ):
        if not given:
            raise UsageError(f"{other} without {option}", f"name a port for each {other}")
        if len(given) > MAX_PORTS:
            raise UsageError(
                f"{option} {given[MAX_PORTS]}: the {len(given)}th port",
                f"experiments use one port or {MAX_PORTS}",
            )
    if len(generator) != len(forwarder):
        raise UsageError(
            f"{GENERATOR} is given {len(generator)} times and {FORWARDER} {len(forwarder)} times",
            "give both equally often: the first of one faces the first of the other",
        )


def _refuse(option: str, text: str, why: str, hint: str | None = None) -> UsageError:
    return UsageError(f"{option} {text!r}: {why}", hint)


def _check_generator(location: str) -> None:
    """Check what the lab can; the generator itself checks the rest in the first trial."""
    kind, colon, rest = location.partition(":")
    known = kind if not colon else f"{kind}:"
    if colon and known not in _GENERATOR_KINDS and kind != "null":
        hint = f"choose from: {', '.join(_GENERATOR_KINDS)}"
        raise _refuse(GENERATOR, location, "no such kind of location", hint)
    if not location or (colon and not rest and kind != "null"):
        raise _refuse(GENERATOR, location, "names nothing")
    if kind in _SOCKETS:
        _check_socket(location, rest.split(",")[0])
    elif kind == "pci":
        _pci(GENERATOR, location, rest)
    elif kind in ("af_packet", "af_xdp") or (not colon and kind != "null"):
        _check_interface(GENERATOR, location, (rest or kind).split(",")[0])


def _check_socket(location: str, path: str) -> None:
    if not path.startswith("/"):
        raise _refuse(GENERATOR, location, "the socket's path must be absolute")
    if not Path(path).parent.is_dir():
        raise _refuse(GENERATOR, location, f"there is no directory {Path(path).parent}")


def _check_interface(option: str, text: str, name: str) -> None:
    if name in ("", ".", "..") or "/" in name or not LOCAL.exists(f"/sys/class/net/{name}"):
        raise _refuse(option, text, f"there is no network interface {name!r}", "see: ip link")


def _pci(option: str, text: str, address: str) -> str:
    found = _PCI.fullmatch(address)
    if not found:
        raise _refuse(option, text, "not a PCI address such as pci:0000:01:00.0")
    full = f"{found[1] or '0000'}:{found[2]}".lower()
    if not LOCAL.exists(f"/sys/bus/pci/devices/{full}"):
        raise _refuse(option, text, "there is no such PCI device", "see: lspci -D")
    return full


def _device(text: str, place: int) -> Device:
    """Parse a forwarder's port; `place` makes the names of virtual devices unique."""
    kind, colon, rest = text.partition(":")
    if not colon:
        kind, rest = "af_packet", text
    reader = _DEVICES.get(kind)
    if reader is None:
        hint = f"choose from: {', '.join(_FORWARDER_KINDS)}"
        raise _refuse(FORWARDER, text, "no such kind of location for a forwarder", hint)
    if not rest:
        raise _refuse(FORWARDER, text, "names nothing")
    return reader(text, rest, place)


def _pci_device(text: str, address: str, place: int) -> Device:
    return Device(text, pci=_pci(FORWARDER, text, address))


def _virtual(text: str, arguments: str, place: int) -> Device:
    name = arguments.split(",", maxsplit=1)[0]
    if not re.fullmatch(r"(net|eth)_[A-Za-z0-9_]+", name):
        raise _refuse(
            FORWARDER, text, f"{name!r} is not the name of a network device",
            "for instance vdev:net_memif0,role=client,socket=/run/s,socket-abstract=no",
        )  # fmt: skip
    return Device(text, vdev=arguments)


def _af_packet(text: str, rest: str, place: int) -> Device:
    _check_interface(FORWARDER, text, rest)
    return Device(text, vdev=f"net_af_packet{place},iface={rest}")


def _af_xdp(text: str, rest: str, place: int) -> Device:
    name, _, option = rest.partition(",")
    if option not in ("", "mode=copy"):
        raise _refuse(FORWARDER, text, f"unknown option {option!r}", "the option is mode=copy")
    _check_interface(FORWARDER, text, name)
    copy = ",force_copy=1" if option else ""
    return Device(text, vdev=f"net_af_xdp{place},iface={name}{copy}")


def _tap(text: str, name: str, place: int) -> Device:
    if not re.fullmatch(r"[^\s/,%:]{1,15}", name):
        raise _refuse(FORWARDER, text, f"{name!r} cannot be an interface's name")
    return Device(text, vdev=f"net_tap{place},iface={name}")


_DEVICES: dict[str, Callable[[str, str, int], Device]] = {
    "pci": _pci_device,
    "vdev": _virtual,
    "af_packet": _af_packet,
    "af_xdp": _af_xdp,
    "tap": _tap,
}


def _check_all(locations: Sequence[str], devices: Sequence[Device], *, foreign: bool) -> None:
    """Check conflicts between ports, which no single port shows."""
    if len(set(locations)) < len(locations):
        raise _refuse(GENERATOR, locations[-1], "is named twice", "name each once")
    names = [device.pci or (device.vdev or "").split(",")[0] for device in devices]
    if len(set(names)) < len(names):
        raise _refuse(FORWARDER, devices[-1].text, f"the device {names[-1]} is named twice")
    if len({device.pci is None for device in devices}) > 1:
        raise _refuse(
            FORWARDER, devices[-1].text, "one port is physical and the other is not",
            "EAL would number them in an order of its own: take both of one kind",
        )  # fmt: skip
    ours = {place for place in map(_place, locations) if place and not foreign}
    for device in devices:
        if _place(device.text) in ours:
            raise _refuse(
                FORWARDER, device.text, f"the generator has it already ({GENERATOR})",
                "a link has two ends: name the other one here",
            )  # fmt: skip


def _place(text: str) -> str | None:
    """Return the interface or PCI device that only one end can use."""
    kind, colon, rest = text.partition(":")
    if kind == "pci":
        return rest.lower().removeprefix("0000:")
    if kind in ("af_packet", "af_xdp", "tap"):
        return rest.split(",")[0]
    return None if colon else text
