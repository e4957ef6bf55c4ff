# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's command line for a guest: a virtual CPU, bounded memory, at most a disk and an interface.

The console is QEMU's own standard input and output. Nothing has a default: no display, no network
card, no monitor, no configuration files. Pure functions; memory is in MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.cloud.tenants.vm.vm_network import Tap, VhostUser

PROGRAM = "qemu-system-x86_64"
KVM, TCG = "kvm", "tcg"
# Not microvm: its only clock to calibrate the TSC is the PIT, which fails in a guest that waits for
# others on its core, and then the guest has no clock ticks.
_BOARD = "q35,usb=off,sata=off,smbus=off"
# Translated code; by default it may take a gigabyte beside the guest's memory.
_TCG_BUFFER_MIB = 64
# The guest's QEMU may not start programs, change users, or change its own scheduling or limits.
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
# A panic ends the guest, and with -no-reboot QEMU. The kernel's own frames (IPv6) are none of an
# experiment's. Names of interfaces and addresses in memory are the same each time.
_KERNEL_WORDS = (
    "console=ttyS0", "quiet", "loglevel=1", "panic=-1", "reboot=t", "ipv6.disable=1", "nokaslr",
    "random.trust_cpu=on",
)  # fmt: skip


@dataclass(frozen=True)
class Disk:
    """A disk. `path`: of a raw image. `direct`: past the host's page cache."""

    path: str
    direct: bool


@dataclass(frozen=True)
class Machine:
    """A guest's machine. `words`: parameters of the guest's first program, by name."""

    kernel: Path
    initramfs: Path
    accelerator: str
    memory_mib: int
    words: Mapping[str, str]
    network: Tap | VhostUser | None = None
    disk: Disk | None = None


def argv(machine: Machine) -> tuple[str, ...]:
    """Return the whole command line."""
    memory = f"{machine.memory_mib}M"
    shared = isinstance(machine.network, VhostUser)
    board = _BOARD + (",memory-backend=memory" if shared else "")
    words = [*_KERNEL_WORDS, *(f"linerate.{name}={value}" for name, value in machine.words.items())]
    return (
        PROGRAM, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-sandbox", _SANDBOX,
        "-machine", board, *_processor(machine.accelerator), "-smp", "1", "-m", memory,
        # The program at the other end of a vhost-user socket reads and writes the guest's memory.
        *(("-object", f"memory-backend-memfd,id=memory,size={memory},share=on") if shared else ()),
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-kernel", str(machine.kernel), "-initrd", str(machine.initramfs),
        "-append", " ".join(words),
        *_interface(machine.network), *_disk(machine.disk),
    )  # fmt: skip


def _processor(accelerator: str) -> tuple[str, ...]:
    if accelerator == KVM:
        return ("-accel", "kvm", "-cpu", "host")
    return ("-accel", f"tcg,thread=multi,tb-size={_TCG_BUFFER_MIB}", "-cpu", "max")


def _interface(network: Tap | VhostUser | None) -> tuple[str, ...]:
    if network is None:
        return ()
    device = f"virtio-net-pci,netdev=link,mac={network.mac},romfile="
    if isinstance(network, Tap):
        # The interface is the lab's, in the namespace that QEMU is started in.
        end = f"tap,id=link,ifname={network.name},script=no,downscript=no,vhost=off"
        return ("-netdev", end, "-device", device)
    return (
        "-chardev", f"socket,id=vhost,path={_quoted(str(network.socket))}",
        "-netdev", "vhost-user,id=link,chardev=vhost", "-device", device,
    )  # fmt: skip


def _disk(disk: Disk | None) -> tuple[str, ...]:
    if disk is None:
        return ()
    cache = f"cache.direct={'on' if disk.direct else 'off'}"
    # No other process can open a file without a name, so it needs no lock.
    image = f"driver=file,node-name=image,filename={_quoted(disk.path)},locking=off,aio=threads"
    return (
        "-blockdev", f"{image},{cache}",
        "-blockdev", f"driver=raw,node-name=disk,file=image,{cache}",
        "-device", "virtio-blk-pci,drive=disk",
    )  # fmt: skip


def _quoted(value: str) -> str:
    """Quote a value for QEMU's lists of options, where a comma is written twice."""
    return value.replace(",", ",,")
