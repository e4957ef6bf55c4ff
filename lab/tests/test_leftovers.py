# SPDX-License-Identifier: BSD-3-Clause
"""What a killed lab made or changed outside its processes is undone by the next lab."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fake_host import inside
from simulated import Simulation, start

from linerate.cli import doctor
from linerate.host import netns
from linerate.host.errors import LabError
from linerate.host.host import LOCAL
from linerate.host.leftovers import inventory, xdp_programs
from linerate.host.leftovers.interfaces import kept, remove_stale, stale
from linerate.host.netns import Namespaces, ip
from linerate.host.process import NAMESPACES
from linerate.links.ports import _interface

ROOT = Path(__file__).resolve().parents[2]
# A pid that no process has: it is larger than the kernel's limit.
NOBODY = 1 << 23

# Labs that wait to be killed.
LAB = """
import os, sys
from linerate.host.process import RunDirectory
{}
    print("ready", flush=True)
    sys.stdin.read()
"""
VETH = LAB.format("""
from linerate.host.netns import Namespaces
with RunDirectory() as run, Namespaces(("x",)):
""")
PORTS = LAB.format("""
from linerate.host.leftovers.interfaces import kept
from linerate.host.netns import ip
with kept(["ours"]):
    ip("link", "set", "ours", "promisc", "on", "mtu", "900")
""")


@pytest.fixture(autouse=True)
def _may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a directory of the test's own, because other labs run meanwhile."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    runtime = Path("/tmp") / f"leftovers-{os.getpid()}"
    runtime.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))


def kill(script: str) -> int:
    """Start a lab and kill it; return its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lab:
        assert lab.stdout
        assert lab.stdout.readline() == "ready\n"
        lab.send_signal(signal.SIGKILL)
        lab.wait(10)
    return lab.pid


@contextmanager
def own_network() -> Iterator[None]:
    """Put this thread and its children into a network namespace with the interface `ours`."""
    with Namespaces(("mine",)) as made, inside(made.host("mine")):
        ip("link", "add", "ours", "type", "veth", "peer", "name", "theirs")
        yield


def state() -> tuple[bool, int]:
    (shown,) = json.loads(ip("-json", "link", "show", "dev", "ours"))
    return "PROMISC" in shown["flags"], shown["mtu"]


def files() -> list[Path]:
    return sorted(Path(os.environ["XDG_RUNTIME_DIR"]).glob("linerate-interfaces-*"))


# -- the inventory -----------------------------------------------------------------------------


def test_a_lab_that_makes_no_namespaces_removes_those_of_a_killed_one(
    tmp_path: Path, simulation: Simulation
) -> None:
    def left(pid: int) -> list[Path]:
        places = (Path("/run/netns"), Path(os.environ["XDG_RUNTIME_DIR"]))
        return [path for place in places for path in place.glob(f"linerate-*{pid}-*")]

    # Other labs on this machine remove namespaces, too.
    pid = next(pid for pid in (kill(VETH) for _ in range(5)) if len(left(pid)) == 2)
    start(tmp_path / "run")
    assert simulation.ran
    assert left(pid) == []


def test_what_was_undone_is_said() -> None:
    pid = kill(VETH)
    (path,) = inventory.remove()["run directories"]
    assert f"-{pid}-" in path
    assert inventory.sentence({"network namespaces": ["a", "b"], "run directories": [path]}) == (
        "undone what labs that were killed had left: "
        f"network namespaces a, b; run directories {path}"
    )


def test_a_kind_that_cannot_be_undone_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> list[str]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("linerate.host.netns.remove_stale", refused)
    monkeypatch.setattr("linerate.host.process.remove_stale", lambda: ["x"])
    kinds = [kind for kind in inventory.KINDS if kind.name.startswith(("network", "run"))]
    monkeypatch.setattr(inventory, "KINDS", kinds[::-1])
    assert inventory.remove() == {"run directories": ["x"]}


def test_the_table_of_the_architecture_has_every_kind() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, _, table = text.partition("### Leftovers\n")
    rows = re.findall(r"^\| ([^|]+?) \|", table.partition("\n#")[0], re.MULTILINE)
    assert {kind.name for kind in inventory.KINDS} <= set(rows)


def test_what_is_left_is_listed_and_stays() -> None:
    with own_network():
        with Namespaces(("alive",)) as alive:
            pid = kill(VETH)
            kill(PORTS)
            found = inventory.left()
            assert alive.name("alive") not in found["network namespaces"]
        (namespace,) = (each for each in found["network namespaces"] if f"-{pid}-" in each)
        # The second lab removed the first one's when it started.
        assert len(found["run directories"]) == 1
        assert found["changed interfaces"] == ["ours"]
        assert inventory.left() == found
        assert (NAMESPACES / namespace).exists()
        assert state() == (True, 900)
        told = {each.name: each for each in doctor.examine() if each.area == "leftovers"}
        assert namespace in told["network namespaces"].detail
        assert told["changed interfaces"].detail == "ours"
        assert told["changed interfaces"].mend == (
            "the next linerate run, duel or instructions undoes it"
        )
        undone = inventory.remove()
        assert undone["changed interfaces"] == ["ours"]
        assert not inventory.left().keys() & {"run directories", "changed interfaces"}


def test_looking_does_not_obey_or_wait_for_what_others_put_there(tmp_path: Path) -> None:
    with own_network():
        with kept(["ours"]):
            (path,) = files()
            told = path.read_text()
        ip("link", "set", "ours", "mtu", "900")
        left = path.with_name(f"linerate-interfaces-{os.getuid()}-{NOBODY}-1-7")
        os.mkfifo(left)
        assert stale() == []
        left.unlink()
        for broken in ("", "[]", told.replace('"mtu"', '"mut"')):
            left.write_text(broken)
            assert stale() == []
        left.write_text(told)
        assert stale() == ["ours"]
        assert left.exists()
        left.unlink()


# -- XDP programs of killed programs -----------------------------------------------------------

# Attaches a program of this name to an interface as libxdp does: by netlink, without a bpf_link.
ATTACHES = """
import ctypes, socket, struct, sys
from xdp_program import _PROG_LOAD, _XDP, _instruction, bpf
text = ctypes.create_string_buffer(_instruction(0xB7, 0, 2) + _instruction(0x95))
licence = ctypes.create_string_buffer(b"GPL")
program = bpf(_PROG_LOAD, struct.pack(
    "<IIQQIIQII16s", _XDP, 2, ctypes.addressof(text), ctypes.addressof(licence), 0, 0, 0, 0, 0,
    sys.argv[1].encode(),
))
RTM_SETLINK, REQUEST_ACK, IFLA_XDP, IFLA_XDP_FD, IFLA_XDP_FLAGS, NESTED = 19, 5, 43, 1, 3, 1 << 15
inside = struct.pack("<HHi", 8, IFLA_XDP_FD, program)
inside += struct.pack("<HHI", 8, IFLA_XDP_FLAGS, int(sys.argv[2]))
body = struct.pack("<BxHiII", 0, 0, socket.if_nametoindex("ours"), 0, 0)
body += struct.pack("<HH", 4 + len(inside), IFLA_XDP | NESTED) + inside
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
netlink.send(struct.pack("<IHHII", 16 + len(body), RTM_SETLINK, REQUEST_ACK, 1, 0) + body)
error = struct.unpack_from("<i", netlink.recv(4096), 16)[0]
assert error == 0, error
print("ready", flush=True)
sys.stdin.read()
"""
GENERIC, IN_THE_DRIVER = 2, 4


@contextmanager
def attached(name: str, flags: int) -> Iterator[None]:
    """An XDP program on `ours` whose process is killed at the end."""
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", ATTACHES, name, str(flags)], env=tests, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("flags", "command"),
    [
        (IN_THE_DRIVER, "ip link set dev ours xdp off"),
        (GENERIC, "ip link set dev ours xdpgeneric off"),
    ],
)
def test_an_xdp_program_that_no_process_has_is_listed_with_what_removes_it(
    flags: int, command: str
) -> None:
    with own_network():
        with attached("xsk_def_prog", flags):
            assert xdp_programs.left() == []
        (found,) = xdp_programs.left()
        assert (found.interface, found.program, found.command) == ("ours", "xsk_def_prog", command)
        (told,) = (each for each in doctor.examine() if each.name == "XDP program on ours")
        assert (told.state, told.mend) == ("warn", f"sudo {command}")
        assert told.detail == f"xsk_def_prog (id {found.number}), which no process seen here has"
        ip(*command.split()[1:])
        assert xdp_programs.left() == []


def test_xdp_programs_of_others_are_nobodys_business() -> None:
    with own_network():
        with attached("firewall", IN_THE_DRIVER):
            pass
        assert xdp_programs.left() == []


def test_nothing_is_said_to_users_who_cannot_see_roots_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with own_network():
        with attached("xsk_def_prog", IN_THE_DRIVER):
            pass
        assert len(xdp_programs.left()) == 1
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert xdp_programs.left() == []


# -- interfaces that are not the lab's ---------------------------------------------------------


def test_interfaces_are_put_back() -> None:
    with own_network():
        before = state()
        with suppress(ZeroDivisionError), kept(["ours", "no-such"]):
            assert len(files()) == 1
            ip("link", "set", "ours", "promisc", "on", "mtu", "900")
            assert state() == (True, 900)
            raise ZeroDivisionError
        assert state() == before == (False, 1500)
        ip("link", "set", "ours", "promisc", "on")
        with kept(["ours"]):
            pass
        # The user wants it so.
        assert state() == (True, 1500)
        assert files() == []


def test_interfaces_are_put_back_by_the_next_lab() -> None:
    with own_network():
        kill(PORTS)
        assert state() == (True, 900)
        assert inventory.remove()["changed interfaces"] == ["ours"]
        assert state() == (False, 1500)
        assert files() == []
        assert "changed interfaces" not in inventory.remove()


def test_interfaces_of_a_lab_that_runs_or_of_another_place_are_left_alone() -> None:
    with own_network():
        with kept(["ours"]):
            ip("link", "set", "ours", "mtu", "900")
            assert remove_stale() == []
            assert state() == (False, 900)
            (path,) = files()
            told = json.loads(path.read_text())
        assert state() == (False, 1500)
        ip("link", "set", "ours", "mtu", "900")
        left = path.with_name(f"linerate-interfaces-{os.getuid()}-{NOBODY}-1-7")
        # Labs of that namespace may need it; nothing survives a reboot.
        for change, stays in (({"namespace": "1"}, True), ({"boot": "x"}, False)):
            left.write_text(json.dumps({**told, **change}))
            assert remove_stale() == []
            assert left.exists() == stays
        # The kernel reuses interface indexes.
        told["interfaces"][0]["index"] += 1000
        left.write_text(json.dumps(told))
        assert remove_stale() == []
        assert state() == (False, 900)


def test_what_others_put_there_is_not_obeyed(tmp_path: Path) -> None:
    with own_network():
        with kept(["ours"]):
            (path,) = files()
            told = path.read_text()
        ip("link", "set", "ours", "mtu", "900")
        left = path.with_name(f"linerate-interfaces-{os.getuid()}-{NOBODY}-1-7")
        planted = tmp_path / "planted"
        planted.write_text(told)
        left.symlink_to(planted)
        assert remove_stale() == []
        left.unlink()
        os.mkfifo(left)
        assert remove_stale() == []
        left.unlink()
        if os.geteuid() == 0:
            left.write_text(told)
            os.chown(left, 65534, 65534)
            assert remove_stale() == []
            left.unlink()
        for broken in ("", told[:40], "[]", '{"boot": 1}', told.replace('"mtu"', '"mut"')):
            left.write_text(broken)
            assert remove_stale() == []
            assert not left.exists()
        for name in ("x", "1-x-2", "-", f"{NOBODY}"):
            path.with_name(f"linerate-interfaces-{os.getuid()}-{name}").write_text(told)
        assert remove_stale() == []
        assert state() == (False, 900)
        for path in files():
            path.unlink()


def test_who_has_no_ip_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(LOCAL), "which", lambda *_: None)
    with kept(["lo"]):
        assert files() == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("eth0", "eth0"),
        ("af_packet:eth0,qpairs=2", "eth0"),
        ("af_xdp:eth0", "eth0"),
        ("vdev:net_af_packet0,iface=eth0", "eth0"),
        ("vdev:net_af_xdp1,force_copy=1,iface=eth0,start_queue=1", "eth0"),
        ("vdev:net_memif0,socket=/run/s", None),
        ("memif:/run/s", None),
        ("pci:0000:01:00.0", None),
        ("tap:t0", None),
        ("null", None),
    ],
)
def test_locations_at_interfaces(text: str, name: str | None) -> None:
    assert _interface(text) == name
