# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines as tenants: command line, console, archives and packages; one real boot."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
import re
import signal
import stat
import subprocess
import sys
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import ClassVar

import pytest
from conftest import wait_for

from linerate.experiments.cloud.tenants import disk_image, packages
from linerate.experiments.cloud.tenants.base import Limits, Load, Work
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups
from linerate.experiments.cloud.tenants.disk_image import DiskImage
from linerate.experiments.cloud.tenants.vm import (
    accelerator,
    cpio,
    guest,
    guest_console,
    kernel,
    qemu,
    vm,
    vm_network,
)
from linerate.experiments.cloud.tenants.vm.accelerator import Accelerator
from linerate.experiments.cloud.tenants.vm.guest_console import (
    Console,
    Failed,
    Message,
    Network,
    Off,
    Ready,
    Up,
    Worked,
)
from linerate.experiments.cloud.tenants.vm.qemu import Disk, Machine
from linerate.experiments.cloud.tenants.vm.vm import Shape, VirtualMachine
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge, Tap, VhostUser
from linerate.host import netns
from linerate.host.errors import LinkError, MachineError, MissingError, ProcessError, UsageError
from linerate.host.host import InNamespace
from linerate.host.process import RunDirectory

LAST_CPU = max(os.sched_getaffinity(0))
LINK = IPv4Interface("198.19.255.10/24")


# --- the archive -------------------------------------------------------------------------------


def unpacked(archive: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """Mode, content and device by name, in the format of the kernel's documentation."""
    found: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
    at = 0
    while True:
        header = archive[at : at + 110]
        assert header[:6] == b"070701"
        fields = [int(header[start : start + 8], 16) for start in range(6, 110, 8)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length]
        assert name[-1:] == b"\0"
        start = at + 110 + length + -(110 + length) % 4
        at = start + size + -size % 4
        if name == b"TRAILER!!!\0":
            assert at == len(archive)
            return found
        found[name[:-1].decode()] = (mode, archive[start : start + size], (fields[9], fields[10]))


def test_an_archive_holds_what_was_put_in() -> None:
    entries = [
        cpio.directory("bin"),
        cpio.file("bin/a", b"x", executable=True),
        cpio.file("odd-length", b"12345"),
        cpio.file("empty", b""),
        cpio.symlink("bin/sh", "busybox"),
        cpio.device("console", 5, 1),
    ]
    archive = cpio.archive(entries)
    assert archive == cpio.archive(entries)
    assert unpacked(archive) == {
        "bin": (stat.S_IFDIR | 0o755, b"", (0, 0)),
        "bin/a": (stat.S_IFREG | 0o755, b"x", (0, 0)),
        "odd-length": (stat.S_IFREG | 0o644, b"12345", (0, 0)),
        "empty": (stat.S_IFREG | 0o644, b"", (0, 0)),
        "bin/sh": (stat.S_IFLNK | 0o777, b"busybox", (0, 0)),
        "console": (stat.S_IFCHR | 0o600, b"", (5, 1)),
    }


# --- kernel and packages -----------------------------------------------------------------------


def module(directory: Path, name: str, *needs: str, packed: bool = False) -> Path:
    content = b"\x7fELF\0license=GPL\0depends=" + ",".join(needs).encode() + b"\0name=x\0"
    path = directory / f"{name}.ko{'.xz' if packed else ''}"
    path.write_bytes(lzma.compress(content) if packed else content)
    return path


def test_modules_are_loaded_after_what_they_depend_on(tmp_path: Path) -> None:
    module(tmp_path, "virtio-net", "net_failover", "virtio")
    module(tmp_path, "net_failover", "failover", packed=True)
    module(tmp_path, "failover")
    (tmp_path / "modules.builtin").write_text("kernel/drivers/virtio/virtio.ko\n")
    files, builtin = kernel.module_files(tmp_path)
    order = kernel.load_order(["virtio_net", "virtio"], files, builtin)
    assert list(order) == ["failover", "net_failover", "virtio_net"]
    assert all(content.startswith(b"\x7fELF") for content in order.values())


def test_modules_that_cannot_be_had(tmp_path: Path) -> None:
    files = {"a": module(tmp_path, "a", "b"), "b": module(tmp_path, "b", "a")}
    with pytest.raises(MachineError, match="depends on itself"):
        kernel.load_order(["a"], files)
    with pytest.raises(MachineError, match="no module c"):
        kernel.load_order(["c"], files)
    strange = tmp_path / "d.ko.zst"
    strange.write_bytes(b"")
    with pytest.raises(MachineError, match="compression"):
        kernel.load_order(["d"], {"d": strange})


def test_the_meta_package_stands_for_a_versioned_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = (
        "Package: linux-image-cloud-amd64\nDepends: linux-image-6.1.0-9-cloud-amd64 (= 6.1.27-1)"
    )
    monkeypatch.setattr(kernel, "told", lambda *_: shown)
    assert kernel.candidate() == kernel.Package("linux-image-6.1.0-9-cloud-amd64", "6.1.27-1")
    monkeypatch.setattr(kernel, "told", lambda *_: None)
    assert kernel.candidate() is None


def test_a_kernel_that_is_there_needs_no_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "candidate", lambda: None)
    with pytest.raises(MissingError, match="apt knows no package"):
        kernel.get(tmp_path)
    there = tmp_path / "kernel-linux-image-1-cloud-amd64_1.2-3"
    there.mkdir()
    (there / "modules").write_text("virtio\nvirtio_blk\n")
    found = kernel.get(tmp_path)
    assert (found.package, found.version) == ("linux-image-1-cloud-amd64", "1.2-3")
    assert found.modules == (there / "virtio.ko", there / "virtio_blk.ko")


def test_a_download_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "candidate", lambda: kernel.Package("linux-image-x", "1"))
    monkeypatch.setattr(kernel, "told", lambda *_, **__: None)
    with pytest.raises(MissingError, match="linux-image-x=1 brought nothing"):
        kernel.get(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_files_are_held_against_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"content")
    monkeypatch.setattr(packages, "_owners", lambda paths: dict.fromkeys(paths, "tool:amd64"))
    monkeypatch.setattr(packages, "_SUMS", tmp_path)
    sums = tmp_path / "tool:amd64.md5sums"
    digest = hashlib.md5(b"content", usedforsecurity=False).hexdigest()
    sums.write_text(f"{digest}  {str(program).lstrip('/')}\n")
    assert packages.installed([program]) == [packages.Installed(program, b"content", "tool:amd64")]
    program.write_bytes(b"changed")
    with pytest.raises(MachineError, match="differs from the file of package tool:amd64"):
        packages.installed([program])
    monkeypatch.setattr(packages, "_owners", lambda _: {})
    with pytest.raises(MachineError, match="belongs to no Debian package"):
        packages.installed([program])


def test_files_of_this_machine_have_their_packages(tmp_path: Path) -> None:
    if packages.told("dpkg-query", "--version") is None:
        pytest.skip("no Debian system: dpkg-query is not there")
    shell = Path("/bin/bash")
    paths = packages.with_libraries(shell)
    assert paths[0] == shell
    found = packages.installed(paths)
    assert found[0].package == "bash"
    assert packages.versions(["bash"])["bash"] != "unknown"
    stray = tmp_path / "stray"
    stray.write_bytes(b"")
    with pytest.raises(MachineError, match="belongs to no Debian package"):
        packages.installed([shell, stray])
    with pytest.raises(MissingError, match="not a 64-bit"):
        packages.with_libraries(stray)


def test_an_initramfs_has_files_where_they_are_looked_for(tmp_path: Path) -> None:
    files = [
        packages.Installed(Path("/bin/busybox"), b"b", "busybox-static"),
        packages.Installed(Path("/usr/bin/fio"), b"f", "fio"),
        packages.Installed(Path("/lib64/ld-linux-x86-64.so.2"), b"l", "libc6"),
        packages.Installed(Path("/lib/x86_64-linux-gnu/libc.so.6"), b"c", "libc6"),
        packages.Installed(Path("/usr/lib/x86_64-linux-gnu/ceph/libceph.so.2"), b"d", "librados2"),
    ]
    found = unpacked(cpio.archive(guest.entries(files, [module(tmp_path, "virtio")])))
    assert found["bin/busybox"][1] == b"b"
    assert found["bin/sh"] == (stat.S_IFLNK | 0o777, b"busybox", (0, 0))
    assert found["bin/fio"][:2] == (stat.S_IFREG | 0o755, b"f")
    assert found["lib64/ld-linux-x86-64.so.2"][1] == b"l"
    assert found["lib/libc.so.6"][1] == b"c"
    assert found["lib/libceph.so.2"][1] == b"d"
    assert found["etc/modules"][1] == b"virtio\n"
    assert found["init"][1] == guest.INIT.read_bytes()
    names = list(found)
    for name in names:
        folder = str(Path(name).parent)
        assert folder == "." or names.index(folder) < names.index(name)


def test_the_first_program_is_a_shell_script() -> None:
    subprocess.run(["sh", "-n", guest.INIT], check=True, timeout=10)
    script = guest.INIT.read_text()
    assert not [name for name in guest.APPLETS if not re.search(rf"\b{name}\b", script)]
    assert guest_console.MARK.strip() in script


# --- the console -------------------------------------------------------------------------------


def said(**words: object) -> bytes:
    return f"@linerate {json.dumps(words)}\r\n".encode()


def test_what_a_guest_says_is_understood() -> None:
    heard = b"".join(
        [
            b"[    0.000000] Linux version 6.1\r\n",
            said(say="up"),
            said(say="network", address="198.19.255.10/24", routes="198.19.255.0/24 dev eth0; "),
            said(say="ready", load="mixed"),
            said(say="work", up_s=3.5, bogo_ops=7, io_operations=2, io_bytes=8192, network_bytes=9),
            said(say="work", up_s=4),
            said(say="failed", why="fio: no"),
            said(say="off"),
        ]
    )
    expected: list[Message] = [
        Up(),
        Network("198.19.255.10/24", ("198.19.255.0/24 dev eth0",)),
        Ready(Load.MIXED),
        Worked(3.5, Work(7, 2, 8192, 9)),
        Worked(4.0, Work()),
        Failed("fio: no"),
        Off(),
    ]
    whole, single = Console(), Console()
    assert whole.feed(heard) == expected
    assert [m for at in range(len(heard)) for m in single.feed(heard[at : at + 1])] == expected
    assert whole.garbage == single.garbage == 1
    assert whole.last_words == "[    0.000000] Linux version 6.1"


@pytest.mark.parametrize(
    "line",
    [
        b"@linerate",
        b"@linerate {",
        b"@linerate []",
        b"@linerate null",
        b'@linerate {"say":"dance"}',
        b'@linerate {"say":["up"]}',
        b'@linerate {"say":"work"}',
        b'@linerate {"say":"work","up_s":-1}',
        b'@linerate {"say":"work","up_s":true}',
        b'@linerate {"say":"work","up_s":NaN}',
        b'@linerate {"say":"work","up_s":1e999}',
        b'@linerate {"say":"work","up_s":1,"bogo_ops":-3}',
        b'@linerate {"say":"work","up_s":1,"bogo_ops":1.5}',
        b'@linerate {"say":"work","up_s":1,"bogo_ops":null}',
        b'@linerate {"say":"ready","load":"sleep"}',
        b'@linerate {"say":"network","address":"x"}',
        b"@linerate " + b"[" * 4000,
        b'@linerate {"say":"up"}' + b" " * guest_console.LONGEST_LINE,
        b"\xff\xfe\x00",
    ],
)
def test_what_is_nearly_a_message_is_none(line: bytes) -> None:
    console = Console()
    assert console.feed(line + b"\n") == []
    assert console.garbage == 1
    assert console.feed(said(say="up")) == [Up()]


def test_a_message_behind_a_line_that_the_kernel_began_is_heard() -> None:
    assert Console().feed(b"[  1.0] rando" + said(say="up")) == [Up()]


def test_garbage_without_end_takes_no_memory() -> None:
    source, console = random.Random(1), Console()
    for _ in range(300):
        console.feed(source.randbytes(4096).replace(b"\n", b"."))
    assert len(console._line) <= guest_console.LONGEST_LINE
    assert console.feed(b"\n") == []
    for _ in range(300):
        for message in console.feed(source.randbytes(4096)):
            pytest.fail(f"heard {message}")
    assert console.feed(b"\n" + said(say="off")) == [Off()]


# --- QEMU --------------------------------------------------------------------------------------


def machine(
    network: Tap | VhostUser | None = None, disk: Disk | None = None, name: str = qemu.TCG
) -> Machine:
    words = {"load": "io", "seconds": "60"}
    return Machine(Path("/k"), Path("/i"), name, 256, words, network, disk)


def options(argv: tuple[str, ...], name: str) -> list[str]:
    return [argv[at + 1] for at, word in enumerate(argv) if word == name]


def test_a_guest_has_only_what_it_was_given() -> None:
    argv = qemu.argv(machine())
    assert {"-nodefaults", "-no-user-config", "-no-reboot"} <= set(argv)
    assert options(argv, "-m") == ["256M"]
    assert options(argv, "-smp") == ["1"]
    assert options(argv, "-kernel") == ["/k"]
    assert options(argv, "-device") == options(argv, "-netdev") == options(argv, "-blockdev") == []
    (words,) = options(argv, "-append")
    assert {"linerate.load=io", "linerate.seconds=60", "panic=-1"} <= set(words.split())
    assert "spawn=deny" in options(argv, "-sandbox")[0]


def test_accelerators() -> None:
    assert options(qemu.argv(machine()), "-accel")[0].startswith("tcg,")
    argv = qemu.argv(machine(name=qemu.KVM))
    assert options(argv, "-accel") == ["kvm"]
    assert options(argv, "-cpu") == ["host"]


def test_a_tap_is_the_lab_s_and_runs_no_script() -> None:
    argv = qemu.argv(machine(Tap(InNamespace("ns"), "vm0", "02:00:00:00:00:01")))
    assert options(argv, "-netdev") == ["tap,id=link,ifname=vm0,script=no,downscript=no,vhost=off"]
    assert "mac=02:00:00:00:00:01" in options(argv, "-device")[0]
    assert not options(argv, "-object")


def test_vhost_user_shares_the_guest_s_memory() -> None:
    argv = qemu.argv(machine(VhostUser(Path("/run/a,b"), LINK, "02:00:00:00:00:01")))
    assert options(argv, "-object") == ["memory-backend-memfd,id=memory,size=256M,share=on"]
    assert "memory-backend=memory" in options(argv, "-machine")[0]
    assert "socket,id=vhost,path=/run/a,,b" in options(argv, "-chardev")
    assert options(argv, "-netdev") == ["vhost-user,id=link,chardev=vhost"]


def test_a_disk_goes_past_the_page_cache_where_it_can() -> None:
    for direct, word in ((True, "on"), (False, "off")):
        argv = qemu.argv(machine(disk=Disk("/proc/1/fd/3", direct)))
        image, raw = options(argv, "-blockdev")
        assert f"cache.direct={word}" in image
        assert "filename=/proc/1/fd/3" in image
        assert raw.startswith("driver=raw")
        assert options(argv, "-device") == ["virtio-blk-pci,drive=disk"]


# --- disk and network --------------------------------------------------------------------------


def test_an_image_has_no_name_and_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_image, "_IN_MEMORY", ())
    with DiskImage(8, tmp_path) as image:
        assert list(tmp_path.iterdir()) == []
        assert Path(image.path).stat().st_blocks * 512 < 1 << 20
        with Path(image.path).open("r+b") as opened:
            assert opened.seek(0, os.SEEK_END) == 8 << 20
            opened.write(b"more")
        path = Path(image.path)
    assert not path.exists() or "deleted" not in str(path.readlink())


def test_an_image_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match="No such file"):
        DiskImage(8, tmp_path / "absent")
    monkeypatch.setattr(disk_image, "filesystem", lambda _: "tmpfs")
    with pytest.raises(MachineError, match=r"in memory \(tmpfs\)"):
        DiskImage(8, tmp_path)


def test_the_file_system_of_a_directory() -> None:
    assert disk_image.filesystem(Path("/proc")) == "proc"


def test_guests_have_addresses_of_their_own() -> None:
    on = Bridge(InNamespace("ns"), "br0")
    addresses = {on.guest_address(number) for number in range(vm_network.MOST)}
    assert len(addresses | {on.address}) == vm_network.MOST + 1
    assert all(each.network == on.address.network for each in addresses)
    for number in (-1, vm_network.MOST):
        with pytest.raises(UsageError, match="tenant"):
            on.guest_address(number)
    assert len({vm_network.mac_of(number) for number in range(vm_network.MOST)}) == vm_network.MOST


def ours(lab: int | None = None) -> set[str]:
    """Namespaces of a lab, by its pid; this one's, because other labs may run."""
    return {path.name for path in Path("/run/netns").glob(f"linerate-{lab or os.getpid()}-*")}


def test_a_bridge_and_its_taps_go_with_their_contexts() -> None:
    if reasons := [reason for reason in vm.missing(Load.IDLE) if "capabilit" in reason]:
        pytest.skip("; ".join(reasons))
    before = ours()
    with vm_network.bridge() as made:
        with vm_network.tap(made, 3) as end:
            told = netns.ip("link", "show", "dev", end.name, host=made.host)
            assert "master br0" in told
        with pytest.raises(LinkError):
            netns.ip("link", "show", "dev", end.name, host=made.host)
        assert "default" not in netns.ip("route", host=made.host)
    assert ours() == before


# --- the tenant --------------------------------------------------------------------------------


def test_what_cannot_be_a_tenant_is_refused(tmp_path: Path) -> None:
    shape = Shape((LAST_CPU,))
    with RunDirectory(tmp_path) as run:
        with pytest.raises(UsageError, match="there is no peer at the other end"):
            VirtualMachine(0, Load.NETWORK, shape, run)
        alone = VhostUser(Path("/s"), LINK, vm_network.mac_of(0))
        with pytest.raises(UsageError, match="there is no peer at the other end"):
            VirtualMachine(0, Load.MIXED, shape, run, alone)
        answered = VhostUser(Path("/s"), LINK, "02:00:00:00:00:01", IPv4Address("198.19.255.1"))
        VirtualMachine(0, Load.MIXED, shape, run, answered)
        with pytest.raises(UsageError, match="invalid time limit"):
            VirtualMachine(0, Load.IDLE, Shape((0,), bound_s=0), run)
        with pytest.raises(UsageError, match="invalid disk size 0 MiB"):
            VirtualMachine(0, Load.IO, Shape((0,), disk_mib=0), run)
        with pytest.raises(ProcessError, match="vm0 is not running"):
            VirtualMachine(0, Load.IDLE, shape, run).work()


def test_all_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(vm, "TUN", tmp_path / "tun")
    monkeypatch.setattr(guest, "BUSYBOX", tmp_path / "busybox")
    monkeypatch.setattr(guest, "FIO", tmp_path / "fio")
    reasons = "\n".join(vm.missing(Load.IO))
    for word in ("qemu-system-x86", "busybox-static", "Debian: fio", "dpkg-deb", "ip is", "tun:"):
        assert word in reasons
    assert "stress-ng" not in reasons
    with RunDirectory(tmp_path) as run:
        tenant = VirtualMachine(7, Load.IO, Shape((0,)), run)
        with pytest.raises(MissingError, match="vm7 cannot run: qemu-system-x86_64 is not"):
            tenant.start()


def test_without_kvm_s_device_guests_are_emulated(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        found = accelerator.probe(run, (LAST_CPU,), device=tmp_path / "kvm")
    assert found.name == qemu.TCG
    assert "No such file" in found.reason


# --- real guests -------------------------------------------------------------------------------

MIXED = Shape((LAST_CPU,), disk_mib=16, bound_s=240)


def needs(load: Load) -> None:
    if reasons := [*vm.missing(load), *cgroups.missing()]:
        pytest.skip(f"no virtual machine can run: {'; '.join(reasons)}")


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated even if the machine has KVM: slow guests must work, too."""
    found = Accelerator(qemu.TCG, "asked for by a test")
    monkeypatch.setattr(accelerator._Known, "found", found)


def test_a_guest_that_does_not_answer_says_nothing(tmp_path: Path) -> None:
    """Its earlier answer would be taken for a new one, and its work since then for none."""

    class Guest:
        worked = Worked(3.0, Work(bogo_ops=700))
        answers: ClassVar[list[Worked | None]] = [worked, None]

        def report(self, _: float) -> Worked | None:
            return self.answers.pop(0)

        def stop(self) -> None: ...

    with RunDirectory(tmp_path) as run:
        tenant = VirtualMachine(0, Load.CPU, Shape((LAST_CPU,)), run)
        tenant._guest = Guest()  # type: ignore[assignment]
        assert tenant.work() == Work(bogo_ops=700)
        assert tenant.work() == Work()


@pytest.mark.e2e
@pytest.mark.usefixtures("emulated")
def test_a_guest_works_and_leaves_nothing(tmp_path: Path) -> None:
    needs(Load.MIXED)
    before = ours()
    with RunDirectory(tmp_path) as run, vm_network.bridge() as made, Groups() as groups:
        group = groups.group("vm0", Limits((LAST_CPU,)))
        with VirtualMachine(0, Load.MIXED, MIXED, run, made, group=group) as tenant:
            tenant.start()
            pid = tenant.pid
            assert set(tenant.pids) == set(group.pids())
            assert len(tenant.pids) == 2
            tenant.ready(150)
            assert tenant.network is not None
            assert tenant.network.address == "198.19.255.10/24"
            (route,) = tenant.network.routes
            assert route.startswith("198.19.255.0/24 dev eth0")
            first = tenant.work()
            counters = ("bogo_ops", "io_operations", "io_bytes", "network_bytes")
            assert all(getattr(first, name) is not None for name in counters)

            def has_worked() -> bool:
                now = tenant.work()
                return all((getattr(now, name) or 0) > getattr(first, name) for name in counters)

            wait_for("work of every kind", has_worked, 90)
            # QEMU's CPU time is counted, and so is that of iperf3's server.
            assert (group.usage().cpu_s or 0) > 1
            assert tenant.facts is not None
            assert tenant.facts.accelerator.name == qemu.TCG
            assert tenant.facts.disk_direct
            assert {"stress-ng", "fio", "iperf3", "busybox-static"} <= set(tenant.facts.packages)
            assert tenant._guest is not None
            assert tenant._guest.stop(patience_s=20), "it did not power off"
        assert not Path(f"/proc/{pid}").exists()
        assert "vm0" not in netns.ip("link", "show", host=made.host)
        assert not list(run.path.iterdir())
    assert ours() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.e2e
@pytest.mark.second_tier
@pytest.mark.usefixtures("emulated")
def test_a_guest_ends_when_its_time_is_over(tmp_path: Path) -> None:
    needs(Load.IDLE)
    with RunDirectory(tmp_path) as run:
        tenant = VirtualMachine(1, Load.IDLE, Shape((LAST_CPU,), bound_s=1), run)
        with tenant:
            tenant.start()
            guest_process = tenant._guest
            assert guest_process is not None
            wait_for("its end", lambda: not guest_process.running, 60)
            with pytest.raises(ProcessError, match="vm1 ended with exit code 0"):
                tenant.check()


KILLED = """
import sys
from pathlib import Path
from typing import ClassVar
from linerate.host.process import RunDirectory
from linerate.experiments.cloud.tenants.vm import accelerator, qemu, vm, vm_network
from linerate.experiments.cloud.tenants.base import Load
accelerator._Known.found = accelerator.Accelerator(qemu.TCG, "test")
run = RunDirectory(Path(sys.argv[1]))
with vm_network.bridge() as made:
    shape = vm.Shape((int(sys.argv[2]),), disk_mib=16, bound_s=60)
    tenant = vm.VirtualMachine(0, Load.IO, shape, run, made)
    tenant.start()
    print(tenant.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.e2e
@pytest.mark.second_tier
def test_what_a_killed_lab_leaves_goes_with_the_next_one(tmp_path: Path) -> None:
    needs(Load.IO)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), str(LAST_CPU)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout
        pid = int(lab.stdout.readline())
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    wait_for("QEMU's end", lambda: not Path(f"/proc/{pid}").exists())
    (left,) = ours(lab.pid)
    with RunDirectory(tmp_path) as run, vm_network.bridge():
        assert left not in ours(lab.pid)
        assert [path.name for path in tmp_path.iterdir()] == [run.path.name]
