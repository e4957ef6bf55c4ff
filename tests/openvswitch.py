# SPDX-License-Identifier: BSD-3-Clause
"""Runs Open vSwitch with DPDK for tests. It installs nothing, and does not touch one that runs.

    python tests/openvswitch.py     unpacks it, as CI's set-up does

Debian's packages are unpacked below `build/`. Database, sockets and logs are in the run directory.
The switch runs in a network namespace, because its bridges are interfaces of the kernel as well,
which would stay behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from forwarding_programs import TIMEOUT_S, Program

from linerate.host.builds.make import locked
from linerate.host.builds.plugins import probe_plugin
from linerate.host.places import build_directory
from linerate.host.process import Child, Command, RunDirectory
from linerate.telemetry.client import connect, socket_path

PACKAGES = ("openvswitch-switch-dpdk", "openvswitch-switch", "openvswitch-common")
DAEMON = "usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"


def output(*argv: str | Path, **options: object) -> str:
    """Return what a short command prints; raises if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise subprocess.SubprocessError(f"{argv[0]}: {done.stderr.strip()[-600:]}")
    return str(done.stdout)


def environment(root: Path) -> dict[str, str]:
    libraries = ":".join(str(path) for path in root.glob("usr/lib/*-linux-gnu*"))
    return {
        "PATH": f"{root}/usr/bin:{root}/usr/sbin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": ":".join(filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")])),
        "OVS_PKGDATADIR": f"{root}/usr/share/openvswitch",
    }


def works(root: Path) -> bool:
    try:
        printed = output(root / DAEMON, "--version", env={**os.environ, **environment(root)})
    except (OSError, subprocess.SubprocessError):
        return False
    return "DPDK" in printed


def place() -> Path:
    return build_directory() / "openvswitch"


def unpacked() -> Path:
    """Return where the packages are unpacked; skip the test if they are not."""
    if not works(place()):
        pytest.skip("Open vSwitch is not unpacked: .venv/bin/python tests/openvswitch.py does it")
    return place()


def unpack() -> None:
    """Download and unpack the packages if they are missing, by the package lists as they are."""
    root = place()
    with locked(root.parent, "Open vSwitch"):
        if works(root):
            return
        with tempfile.TemporaryDirectory(dir=root.parent, prefix=".openvswitch-") as work:
            _unpack(Path(work))
            shutil.rmtree(root, ignore_errors=True)
            (Path(work) / "root").rename(root)
    if not works(root):
        sys.exit(f"Open vSwitch of the packages does not run with this DPDK: {root / DAEMON}")


def _unpack(work: Path) -> None:
    _download(work)
    (work / "root").mkdir()
    for package in work.glob("*.deb"):
        output("dpkg-deb", "-x", package, work / "root")


def _download(work: Path) -> None:
    # Its user for downloads may not write here.
    options = ["-q", "-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else ["-q"]
    output("apt-get", *options, "download", *PACKAGES, *_missing_libraries(), cwd=work)


def _missing_libraries() -> list[str]:
    """Return the packages of libraries that these packages need, directly or not, and that are not
    installed.
    """
    found: list[str] = []
    todo = list(PACKAGES)
    while todo:
        for line in output("apt-cache", "depends", "-i", todo.pop()).splitlines():
            kind, _, name = line.strip(" |").partition(": ")
            if kind != "Depends" or not name.startswith("lib") or name in found:
                continue
            try:
                state = output("dpkg-query", "-W", "-f", "${db:Status-Status}", name)
            except subprocess.SubprocessError:
                state = ""
            if state != "installed":
                found.append(name)
                todo.append(name)
    return found


class Vswitch:
    """A running Open vSwitch: its own commands, and its process with the probe."""

    def __init__(self, run: RunDirectory, surroundings: dict[str, str]) -> None:
        self._run = run
        self._environment = {**run.environment(), **surroundings}
        self.program: Program

    def vsctl(self, *arguments: str) -> str:
        """Run ovs-vsctl; return when the switch has done it."""
        database = f"--db=unix:{self._run.path}/db"
        return self.command("ovs-vsctl", database, "--timeout=30", *arguments)

    def appctl(self, *arguments: str) -> str:
        return self.command("ovs-appctl", "-t", f"{self._run.path}/ctl", *arguments)

    def command(self, *argv: str) -> str:
        return output(*argv, env=self._environment)


@contextmanager
def vswitch(run: RunDirectory, cpus: Sequence[int], pmd_cpu: int, one_in: int) -> Iterator[Vswitch]:
    """Run a switch without bridges, whose polling thread will be on `pmd_cpu`."""
    root = unpacked()
    surroundings = {
        **environment(root),
        **{f"OVS_{name}": str(run.path) for name in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR")},
        "LINERATE_PROBE_ONE_IN": str(one_in),
        "LINERATE_PROBE_REQUIRED": "1",
    }
    switch = Vswitch(run, surroundings)
    database, server = run.path / "conf.db", run.path / "db"
    switch.command(
        "ovsdb-tool", "create", str(database), f"{surroundings['OVS_PKGDATADIR']}/vswitch.ovsschema"
    )

    def child(role: str, *argv: str | Path) -> Child:
        options = [f"--unixctl={run.path}/{'ctl' if role == 'vswitchd' else 'dbctl'}", "--no-chdir"]
        command = ("unshare", "--net", *map(str, argv), *options)
        return Child(Command(role, command, tuple(cpus), surroundings), run)

    with child("ovsdb", root / "usr/sbin/ovsdb-server", database, f"--remote=punix:{server}") as db:
        db.wait_until(server.exists, TIMEOUT_S, "the database: not")
        prefix = run.new_prefix("ovs")
        switch.vsctl("--no-wait", "init")
        settings = {
            "dpdk-init": "true",
            "dpdk-extra": f'"-d {probe_plugin()} --no-pci --file-prefix {prefix}"',
            "dpdk-socket-mem": "128",
            "per-port-memory": "true",
            "pmd-cpu-mask": f"{1 << pmd_cpu:#x}",
        }
        changes = [f"other_config:{name}={value}" for name, value in settings.items()]
        switch.vsctl("--no-wait", "set", "Open_vSwitch", ".", *changes)
        with (
            child("vswitchd", root / DAEMON, f"unix:{server}") as daemon,
            connect(socket_path(run.path, prefix), 30, daemon.check) as telemetry,
        ):
            switch.program = Program(daemon, telemetry)
            yield switch


if __name__ == "__main__":
    unpack()
