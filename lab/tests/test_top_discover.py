# SPDX-License-Identifier: BSD-3-Clause
"""Finding running programs: live, stale and foreign telemetry sockets."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TelemetryServer
from fake_host import Instead

from linerate.host import foreign
from linerate.host.errors import LabError
from linerate.telemetry.client import SOCKET_NAME
from linerate.telemetry.top import discover
from linerate.telemetry.top.discover import (
    Found,
    Program,
    choose,
    directories,
    find,
    look,
    prefix_of,
    program_name,
    sockets,
)

NOWHERE = Instead({"/proc/net/unix": Path("/nonexistent")})


class Machine:
    """A runtime directory with programs that run and programs that have ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[TelemetryServer] = []

    def path(self, prefix: str, suffix: str = "") -> Path:
        place = self.folder / "dpdk" / prefix
        place.mkdir(parents=True, exist_ok=True)
        return place / (SOCKET_NAME + suffix)

    def run(self, prefix: str, suffix: str = "") -> Path:
        server = TelemetryServer(self.path(prefix, suffix), {})
        self.servers.append(server)
        return server.path

    def leave(self, prefix: str) -> Path:
        path = self.path(prefix)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as owner:
            owner.bind(str(path))
        return path

    def look(self) -> Found:
        return look(sockets([self.folder], NOWHERE))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    for server in made.servers:
        server.close()


def test_a_socket_without_a_listener_is_passed_over(machine: Machine) -> None:
    machine.leave("old")
    live = machine.run("new")
    (machine.folder / "dpdk" / "half").mkdir()
    (machine.folder / "dpdk" / "new" / "config").touch()
    found = machine.look()
    assert [program.socket for program in found.programs] == [live]
    program = choose(found, None)
    assert (program.prefix, program.pid) == ("new", os.getpid())
    assert "python" in program.name
    with pytest.raises(LabError, match="no DPDK program with the file prefix old"):
        choose(found, "old")


def test_a_second_program_with_the_same_prefix(machine: Machine) -> None:
    machine.run("rte")
    second = machine.run("rte", ":1")
    found = machine.look()
    assert choose(found, "rte:1").socket == second
    assert choose(found, "rte").socket != second
    with pytest.raises(LabError) as several:
        choose(found, None)
    for word in ("several", "rte (pid", "rte:1 (pid", str(os.getpid()), "linerate top rte"):
        assert word in str(several.value)
    assert several.value.exit_code == 2


def test_the_same_prefix_in_two_directories(machine: Machine, tmp_path: Path) -> None:
    first = machine.run("rte")
    elsewhere = Machine(tmp_path / "b")
    second = elsewhere.run("rte")
    machine.servers += elsewhere.servers
    found = look(sockets([machine.folder, elsewhere.folder], NOWHERE))
    with pytest.raises(LabError, match="not the only one") as several:
        choose(found, "rte")
    assert str(first) in str(several.value)
    assert choose(found, str(second)).socket == second
    assert choose(found, str(second.parent)).socket == second


def test_the_kernels_list_adds_what_lies_elsewhere(machine: Machine, tmp_path: Path) -> None:
    live = machine.run("far")
    flags = {"listens": "00010000", "connected": "00000000"}
    lines = ["Num       RefCount Protocol Flags    Type St Inode Path"]
    for number, (flag, path) in enumerate(
        [
            (flags["listens"], str(live)),
            (flags["connected"], str(live)),
            (flags["listens"], "@abstract"),
            (flags["listens"], ""),
            (flags["listens"], "/run/other.sock"),
            (flags["listens"], f"/elsewhere/{SOCKET_NAME}"),
        ]
    ):
        lines.append(f"{number:016x}: 00000002 00000000 {flag} 0005 01 {number} {path}")
    kernel_list = tmp_path / "unix"
    kernel_list.write_text("\n".join(lines) + "\n")
    host = Instead({"/proc/net/unix": kernel_list})
    assert sockets([], host) == [live]
    assert sockets([machine.folder], host) == [live]


def test_find_by_the_path_of_a_socket(machine: Machine) -> None:
    live = machine.run("near")
    assert find(str(live)).prefix == "near"
    assert find(str(live.parent)).prefix == "near"
    with pytest.raises(LabError, match="no DPDK program"):
        find(str(machine.leave("old")))


def test_another_user_s_program_is_asked_only_by_name(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user can make a socket below /tmp/dpdk, and answer with anything."""
    monkeypatch.setattr(discover, "directories", lambda: [machine.folder])
    monkeypatch.setattr(discover, "_listening", lambda host: [])
    theirs = machine.run("theirs")
    monkeypatch.setattr(foreign, "_trusted_users", lambda: {os.geteuid() + 1})
    with pytest.raises(LabError, match=f"by name\n.*linerate top {theirs}"):
        find(None)
    name = pwd.getpwuid(os.geteuid()).pw_name
    for wanted in ("theirs", str(theirs), str(theirs.parent)):
        assert f", user {name})" in str(find(wanted))


def test_a_program_of_one_s_own_comes_first(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = Machine(tmp_path / "b")
    own, theirs = machine.run("rte"), elsewhere.run("rte")
    machine.servers += elsewhere.servers
    monkeypatch.setattr(discover, "directories", lambda: [elsewhere.folder, machine.folder])
    monkeypatch.setattr(discover, "_listening", lambda host: [])
    monkeypatch.setattr(discover, "_is_foreign", lambda path: path == theirs)
    assert find(None).socket == own
    assert find("rte").socket == own
    assert find(str(theirs)).socket == theirs


def test_so_many_sockets_are_asked_and_no_more(machine: Machine) -> None:
    live = machine.run("x")
    assert len(look([live] * 1000).programs) == 256


def test_programs_that_cannot_be_asked() -> None:
    path = Path("/run/dpdk/rte") / SOCKET_NAME
    for wanted in (None, "rte", str(path)):
        with pytest.raises(LabError, match="belongs to another user"):
            choose(Found((), forbidden=(path,)), wanted)
        with pytest.raises(LabError, match="does not answer"):
            choose(Found((), silent=(path,)), wanted)
    mine = Program("mine", Path("/tmp/dpdk/mine") / SOCKET_NAME, 7, "l2fwd")
    assert choose(Found((mine,), forbidden=(path,)), None) == mine
    with pytest.raises(LabError, match=r"prefix other\n  there is: mine \(pid 7, l2fwd\)"):
        choose(Found((mine,)), "other")
    with pytest.raises(LabError, match="linerate attach"):
        choose(Found(()), None)


def test_where_eal_puts_its_sockets() -> None:
    assert directories({}) == [Path("/var/run"), Path("/tmp")]
    environment = {"XDG_RUNTIME_DIR": "/run/user/7", "RUNTIME_DIRECTORY": "/run/service"}
    assert directories(environment)[:2] == [Path("/run/service"), Path("/run/user/7")]


def test_names() -> None:
    assert prefix_of(Path("/run/dpdk/rte/dpdk_telemetry.v2")) == "rte"
    assert prefix_of(Path("/run/dpdk/rte/dpdk_telemetry.v2:2")) == "rte:2"
    assert program_name(2**31 - 1) == "unknown"
