# SPDX-License-Identifier: BSD-3-Clause
"""A generator that root has started serves whom root lets in, at interfaces that root names."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import snappi
from harness import BIN, CPUS, MEMORY, TIMEOUT_S, Generator, basic, environment, generator
from test_client_paths import refused
from traffic import published

pytest_plugins = ["rig"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only for root it is another")

# As another user: a request over the Unix socket, and a look at the token.
STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(path)
            peer.sendall(b"GET /config HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
            print("answered" if peer.recv(1) else "closed")
    except OSError as error:
        print(type(error).__name__)
    try:
        print(open(path).read())
    except OSError as error:
        print(type(error).__name__)
"""


class Local(http.client.HTTPConnection):
    """A connection over the Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def with_token(running: Generator) -> tuple[str, Any]:
    """The token, and snappi with it in the URL."""
    token = Path(running.files["token"]).read_text().strip()
    place = running.url.removeprefix("http://")
    return token, snappi.api(location=f"http://otg:{token}@{place}")


def test_clients_of_tcp_need_the_token(directory: Path) -> None:
    with generator(directory, trusting=False) as running:
        token, api = with_token(running)
        for headers in ({}, basic("otg", "x" * 64), basic("root", token)):
            status, answer = running.request("GET", "/config", headers=headers)
            assert (status, answer["code"]) == (401, 401)
        assert running.request("GET", "/config", headers=basic("otg", token))[0] == 200
        api.set_config(published())
        assert api.get_config().ports[0].name == "p1"
        assert "without a password" not in running.log.read_text()
    assert not Path(running.files["token"]).exists()
    with generator(directory, "--insecure", trusting=False) as running:
        assert "token" not in running.files
        assert running.request("GET", "/config")[0] == 200
        assert "--insecure" in running.log.read_text()


def test_the_unix_socket_asks_who_is_there(directory: Path) -> None:
    with generator(directory, trusting=False) as running:
        connection = Local(running.files["socket"])
        connection.request("GET", "/config")
        assert connection.getresponse().status == 200
        # If the modes of files were to let it in, the peer's user would not.
        directory.chmod(0o755)
        for path in [Path(running.files["socket"]), *Path(running.files["socket"]).parents]:
            if path == directory:
                break
            path.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-I", "-c", STRANGER, running.files["socket"], running.files["token"]],
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        said = done.stdout.split()
        assert "answered" not in said
        assert said[3] == "PermissionError"


def test_interfaces_are_those_that_root_names(directory: Path) -> None:
    locations = ("lo", "af_packet:lo", "af_xdp:lo", "tap:lo", "vdev:net_af_packet0,iface=lo")
    with generator(directory, "--insecure", "--allow-port=none*", trusting=False) as running:
        for location in locations:
            assert "--allow-port lo" in refused(running, location)
        # What leads to no interface needs nothing.
        running.api.set_config(published())
    with generator(directory, "--insecure", "--allow-port=l?", trusting=False) as running:
        running.api.set_config(published("af_packet:lo"))


def test_a_device_of_eal_is_not_taken_for_another(directory: Path) -> None:
    device = ("--vdev", "net_null0,size=60")
    eal = ("-l", str(CPUS[0]), "--file-prefix", f"t{os.getpid()}", *MEMORY, *device)
    with generator(directory, eal=eal) as running:
        error = refused(running, "vdev:net_null0,size=64")
        assert 'a device "net_null0" of the generator\'s EAL options already' in error
        running.api.set_config(published("vdev:net_null0"))
        running.api.set_config(published("vdev:net_null1,size=60"))
        error = refused(running, "vdev:net_null1,size=64")
        assert 'as "net_null1,size=60"' in error
        # After what could not be opened the name is free.
        running.api.set_config(snappi.Config())
        running.api.set_config(published("vdev:net_null1,size=64"))


def capabilities(running: Generator) -> set[int]:
    """The numbers of the capabilities that any of its threads has, or could take."""
    masks = 0
    for thread in Path(f"/proc/{running.process.pid}/task").iterdir():
        for line in (thread / "status").read_text().splitlines():
            if line.startswith(("CapEff:", "CapPrm:", "CapInh:")):
                masks |= int(line.split()[1], 16)
            elif line.startswith("NoNewPrivs:"):
                assert line.split()[1] == "1", thread.name
    return {number for number in range(64) if masks >> number & 1}


def test_only_what_ports_need_of_root_stays(directory: Path) -> None:
    # CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_BPF; CAP_SYS_ADMIN and CAP_PERFMON for libxdp
    needed, for_libxdp = {12, 13, 14, 39}, {21, 38}
    eal = ("-l", str(CPUS[0]), "--file-prefix", f"t{os.getpid()}", *MEMORY)
    for options in ((), eal):
        with generator(directory, "--insecure", eal=options, trusting=False) as running:
            assert capabilities(running) <= needed
            running.api.set_config(published())
            assert capabilities(running) <= needed
            assert "PCI" not in running.log.read_text()
    with generator(directory) as running:
        running.api.set_config(published("af_packet:lo"))
        assert capabilities(running) <= needed | for_libxdp


def test_no_number_of_queues_holds_up_the_api(directory: Path) -> None:
    """1000 pairs took 24 s, in which nobody was answered."""
    with generator(directory, "--allow-any-vdev") as running:
        error = refused(running, "vdev:net_af_packet0,iface=lo,qpairs=1000")
        assert "qpairs has to be a decimal number from 1 to 16" in error
        running.api.set_config(published("vdev:net_af_packet0,iface=lo"))


def test_what_another_user_has_prepared_is_refused(directory: Path) -> None:
    """A pipe would be waited for, and a directory of another user's can be changed."""
    pipe = directory / "port"
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    os.chown(pipe, 65534, 65534)

    def run() -> tuple[int, str]:
        done = subprocess.run(
            [BIN / "generator", "--otg-listen", "127.0.0.1:0", "--port-file", pipe],
            check=False,
            capture_output=True,
            text=True,
            env=environment(directory),
            timeout=TIMEOUT_S,
        )
        return done.returncode, done.stderr

    code, said = run()
    assert code == 1
    assert f"--port-file {pipe}: a pipe of user 65534's; remove it" in said
    os.chown(directory / "dpdk", 65534, 65534)
    code, said = run()
    assert code == 1
    assert "it belongs to user 65534, who can have this program write to other files" in said
    assert list((directory / "dpdk").iterdir()) == []
