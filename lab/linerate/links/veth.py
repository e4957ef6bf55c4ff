# SPDX-License-Identifier: BSD-3-Clause
"""veth: pairs of the kernel's virtual interfaces between two network namespaces of the lab's own.

The generator's ends are in one namespace, the forwarder's in the other. A frame that is sent into
one end is received at the other by a kernel thread (NAPI) that the lab pins: frames to the
forwarder are received on the forwarder's core, which so pays for them; frames to the generator on
the generator's, which is also the lab's. Otherwise the sender pays for both.
"""

from __future__ import annotations

import contextlib
import os
import string
import time
from collections.abc import Iterator
from contextlib import contextmanager

from linerate.host import netns
from linerate.host.cores import weight
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LinkError, MachineError
from linerate.host.host import LOCAL, Host, InNamespace
from linerate.host.netns import Interface, Namespaces, ip
from linerate.links.base import KernelThread, Link, LinkContext, Wire, numbered

_GENERATOR, _FORWARDER = "gen", "fwd"
_DIGITS = string.digits + string.ascii_lowercase
_THREADS_TIMEOUT_S = 2.0
# Without the FCS, which these interfaces do not have.
_MTU = 1500


class Veth(Link):
    """One pair for each port."""

    has_generator = True
    interfaces = True
    makes_interfaces = True
    receives_by_threads = True
    kernel_generator = True

    def __init__(self, ports: int, *, af_xdp: bool = False) -> None:
        """Make `ports` pairs. `af_xdp`: the generator uses its ends by AF_XDP, not by packet
        sockets.
        """
        self.ports = ports
        self.packet_sender = ports == 1
        self.name = ("veth" if ports == 2 else f"veth{ports}") + ("-af-xdp" if af_xdp else "")
        self._af_xdp = af_xdp
        self._driver = "af_xdp" if af_xdp else "af_packet"
        self.description = (
            f"{ports} veth pair{'s' if ports > 1 else ''} between two network namespaces: the "
            "kernel's virtual interfaces; the receiver's core does the work"
            + ("; the generator uses AF_XDP, not packet sockets" if af_xdp else "")
        )

    def prepare(self) -> None:
        netns.prepare()
        if not sees_kernel_threads():
            raise MachineError(
                "the kernel's threads, which receive for veths, are hidden by this PID namespace",
                "leave the container, or give it the host's PIDs (--pid=host)",
            )

    @contextmanager
    def open(self, context: LinkContext) -> Iterator[Wire]:
        cores = context.cores or Cores.choose()
        words = {role: numbered(role, context.number) for role in (_GENERATOR, _FORWARDER)}
        with Namespaces(tuple(words.values())) as made:
            hosts = {role: made.host(word) for role, word in words.items()}
            numbers = range(self.ports)
            first = context.number * self.ports
            names = {role: [_name(role, first + number) for number in numbers] for role in words}
            threads: list[KernelThread] = []
            for number in numbers:
                ours, theirs = names[_GENERATOR][number], names[_FORWARDER][number]
                ip(
                    "link", "add", ours, "mtu", str(_MTU), "netns", hosts[_GENERATOR].namespace,
                    "type", "veth",
                    "peer", "name", theirs, "mtu", str(_MTU), "netns", hosts[_FORWARDER].namespace,
                )  # fmt: skip
                for role, word, cpu in (
                    (KernelThread.GENERATOR, _GENERATOR, cores.control),
                    (KernelThread.FORWARDER, _FORWARDER, cores.forwarder),
                ):
                    found = _receive_on(
                        context.host,
                        hosts[word],
                        names[word][number],
                        cpu,
                        first=context.receive_first and role == KernelThread.GENERATOR,
                    )
                    thread = f"napi/{word[0]}{number}"
                    threads += [KernelThread(role, thread, pid, cpu) for pid in found]
            yield Wire(
                vdevs=tuple(f"net_af_packet{n},iface={names[_FORWARDER][n]}" for n in numbers),
                locations=tuple(f"{self._driver}:{name}" for name in names[_GENERATOR]),
                host=hosts[_FORWARDER],
                sender_host=hosts[_GENERATOR],
                threads=tuple(threads),
                sender_has_xdp=self._af_xdp,
                interfaces=tuple(
                    Interface(hosts[word], names[word][n], end)
                    for n in numbers
                    for word, end in (
                        (_GENERATOR, Interface.GENERATOR),
                        (_FORWARDER, Interface.FORWARDER),
                    )
                ),
            )


def _name(word: str, number: int) -> str:
    """Return an interface's name, unique among labs in all namespaces, because threads show only
    the name.

    At most 9 characters, with 6 for the pid: the kernel cuts a thread's name to 15, including the
    prefix `napi/` and the suffix `-`.
    """
    tens, ones = divmod(number, len(_DIGITS))
    return f"{word[0]}{_DIGITS[tens]}{_DIGITS[ones]}{os.getpid():x}"


def _receive_on(
    host: Host, namespace: InNamespace, name: str, cpu: int, *, first: bool
) -> set[int]:
    """Set an interface up, and have its frames received by threads on this CPU; return their pids.

    A veth polls (NAPI) only when it has an XDP program or may merge segments (GRO), and in the
    latter case only for frames of a peer that sends no large segments (TSO): all others are
    received by the sender's softirq. Frames of these experiments are of flows that are never
    merged.

    `first`: the threads get their core as soon as a frame comes, for as long as they need it.
    Otherwise a polling sender holds the core for milliseconds at a time, while its frames wait.
    """
    before = napi_threads(name, host)
    ip("link", "set", name, "up", host=namespace)
    netns.set_gro(namespace, name)
    netns.clear_tso(namespace, name)
    netns.set_value(namespace, f"/sys/class/net/{name}/threaded", "1")
    deadline = time.monotonic() + _THREADS_TIMEOUT_S
    while not (threads := napi_threads(name, host) - before):
        if time.monotonic() >= deadline:
            raise LinkError(
                f"{name}: this kernel has no thread for its frames (/sys/class/net/{name}/threaded)"
            )
        time.sleep(0.005)
    for pid in threads:
        # Without this permission, frames wait; latencies show it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            host.pin(pid, {cpu}, first=first)
        # Otherwise a polling program on their CPU would leave them a hundredth of it.
        weight.adopt(pid)
    return threads


def sees_kernel_threads(host: Host = LOCAL) -> bool:
    """Return True if the kernel's own threads are visible on the host: not in a PID namespace."""
    try:
        return host.read_text("/proc/2/comm") == "kthreadd\n"
    except OSError:
        return False


def napi_threads(name: str, host: Host = LOCAL) -> set[int]:
    """Return the kernel's threads for an interface of that name, in any namespace."""
    found = set()
    for path in host.glob("/proc", "[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if host.read_text(path).startswith(f"napi/{name}-"):
                found.add(int(path.parent.name))
    return found
