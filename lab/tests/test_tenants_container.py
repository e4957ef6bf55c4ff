# SPDX-License-Identifier: BSD-3-Clause
"""Containers as tenants: how they are made, and what is missing if they cannot be."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from linerate.experiments.cloud.tenants import container, loads
from linerate.experiments.cloud.tenants.base import Kind, Limits, Load, Tenant
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups
from linerate.experiments.cloud.tenants.container import Container
from linerate.experiments.cloud.tenants.vm import guest
from linerate.experiments.cloud.tenants.vm.vm import Shape, VirtualMachine
from linerate.host.errors import MachineError, MissingError, ProcessError, UsageError
from linerate.host.process import RunDirectory

LAST_CPU = max(os.sched_getaffinity(0))
ON_IT = Limits((LAST_CPU,))
NOBODY = 65534
COUNTERS = {
    "bogo_ops": Load.CPU, "io_operations": Load.IO, "io_bytes": Load.IO,
    "network_bytes": Load.NETWORK,
}  # fmt: skip


# --- how they are made -------------------------------------------------------------------------


def test_the_first_program_is_a_shell_script() -> None:
    subprocess.run(["bash", "-n", container.FIRST], check=True, timeout=10)


def test_loads_are_those_of_guests() -> None:
    """The same programs with the same options as in the guest's first program."""
    script = " ".join(guest.INIT.read_text().replace("\\\n", " ").split())
    cpu = shlex.join(loads.cpu_argv(Path("/tmp/cpu.yaml")))
    io = shlex.join(loads.io_argv(Path("/dev/vda"), 64, 60))
    network = shlex.join(loads.network_argv(IPv4Address("198.19.255.1"), 5210, 60))
    # An emulated guest gets less done in the same time.
    (operations,) = re.findall(r" --cpu-ops (\d+) ", script)
    assert int(operations) <= loads.SLICE_OPS
    for option in re.findall(r"stress-ng (--cpu .*?) >", script)[0].split(" --"):
        assert option.startswith("cpu-ops") or option.lstrip("-") in cpu
    for option in re.findall(r"fio (--name.*?) >", script)[0].split(" --"):
        name = option.lstrip("-")
        assert name.startswith("runtime") or name.replace("bs=4k", "bs=4096") in io
    for option in re.findall(r"iperf3 (--client.*?) >", script)[0].split(" --"):
        assert option.lstrip("-").split()[0] in network


def test_programs_are_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reasons := container.missing():
        pytest.skip(f"no container can run: {'; '.join(reasons)}")
    packages = loads.checked(Load.MIXED, Path("/usr/bin/bash"))
    assert {"stress-ng", "fio", "iperf3", "bash"} <= set(packages)
    foreign = tmp_path / "fio"
    foreign.write_bytes(Path("/usr/bin/fio").read_bytes())
    monkeypatch.setattr(guest, "FIO", foreign)
    loads.checked.cache_clear()
    with pytest.raises(MachineError, match="belongs to no Debian package"):
        loads.checked(Load.IO)
    loads.checked.cache_clear()


def test_both_kinds_are_tenants(tmp_path: Path) -> None:
    groups = Groups()
    with RunDirectory(tmp_path) as run:
        tenants: list[Tenant] = [
            Container(0, Load.IDLE, ON_IT, run, groups),
            VirtualMachine(1, Load.IDLE, Shape((LAST_CPU,)), run),
        ]
    assert [each.kind for each in tenants] == list(Kind)
    assert [each.name for each in tenants] == ["ct0", "vm1"]


def test_what_cannot_be_a_tenant_is_refused(tmp_path: Path) -> None:
    groups = Groups()
    with RunDirectory(tmp_path) as run:
        with pytest.raises(UsageError, match="there is no peer at the other end"):
            Container(0, Load.NETWORK, ON_IT, run, groups)
        with pytest.raises(UsageError, match="invalid time limit"):
            Container(0, Load.IDLE, ON_IT, run, groups, bound_s=0)
        with pytest.raises(UsageError, match="invalid disk size 0 MiB"):
            Container(0, Load.IO, ON_IT, run, groups, disk_mib=0)
        tenant = Container(0, Load.IDLE, ON_IT, run, groups)
        for ask in (tenant.work, tenant.check, tenant.ready, lambda: tenant.group):
            with pytest.raises(ProcessError, match="ct0 is not running"):
                ask()
        assert tenant.pids == []
        tenant.stop()


def test_all_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(guest, "FIO", tmp_path / "fio")
    monkeypatch.setattr(container, "_UNSHARE", tmp_path / "unshare")
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    reasons = "\n".join(container.missing(Load.IO))
    for word in (f"user {NOBODY}", "Debian: fio", "ip is not", "unshare: namespaces"):
        assert word in reasons
    assert "stress-ng" not in reasons
    with RunDirectory(tmp_path) as run:
        tenant = Container(7, Load.IO, ON_IT, run, Groups())
        with pytest.raises(MissingError, match="ct7 cannot run: control groups are made by root"):
            tenant.start()


ASKED = """
import json, os
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants import container
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(json.dumps([container.missing(), cgroups.missing()]))
"""


def test_who_is_not_root_is_told_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED], check=True, capture_output=True, text=True, timeout=30
    )
    whole, of_groups = json.loads(done.stdout)
    assert set(of_groups) <= set(whole)
    told = "\n".join(whole)
    for word in ("made by root", "CAP_NET_ADMIN", "unshare: namespaces"):
        assert word in told
    found = cgroups.hierarchy()
    for place in found.places if found else ():
        assert f"{place}: no control group can be made there" in told
