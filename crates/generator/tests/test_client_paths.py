# SPDX-License-Identifier: BSD-3-Clause
"""What a client of the API may name: it may be another user than the one who runs the generator.

Files and interfaces survive, programs are not loaded, no memory is shared with strangers, and
sockets lie where the generator's user wants them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import snappi
from harness import BIN, CPUS, MEMORY, TIMEOUT_S, Generator, environment, generator
from netns import NEAR, ip
from traffic import errors

pytest_plugins = ["rig"]

# Each with the key that its error names.
DEVICES = [
    ("net_vhost0,iface={}", "iface"),
    ("eth_vhost0,iface={}", "iface"),
    ("net_vhost0,queues=1,iface={}", "queues"),
    ("net_virtio_user0,path={},server=1", "path"),
    ("net_memif0,socket={},socket-abstract=no,role=server", "socket"),
    ("net_memif0,socket=abstract", "socket"),
    ("net_af_xdp1,iface=lo,xdp_prog={}", "xdp_prog"),
    ("net_af_xdp1,iface=lo,use_cni=1,dp_path={}", "use_cni"),
    ("net_af_xdp1,iface=lo,use_pinned_map=1", "use_pinned_map"),
    ("net_tap0,iface=../{}", "iface=../"),
    ("net_tap0,iface=new,remote=lo", "remote"),
    ("net_af_packet0,iface=lo,framecnt=512", "framecnt"),
    ("net_af_packet0,iface=lo,qpairs=17", "qpairs=17"),
    ("net_af_xdp0,iface=lo,queue_count=17", "queue_count=17"),
]
# Of drivers that connect or listen somewhere without any argument, or have no use then.
WITHOUT_ARGUMENTS = [
    "net_memif0",
    "net_memif_of_nobody",
    "net_vhost0",
    "eth_vhost0",
    "net_virtio_user0",
]
LISTENING = ["memif:{}", "memif:{},role=server", "vhost:{}", "virtio_user:{},role=server"]
CONNECTING = ["memif:{},role=client", "vhost:{},role=client", "virtio_user:{}"]


def at(location: str) -> Any:
    config = snappi.Config()
    config.ports.port(name="p", location=location)
    return config


def refused(running: Generator, location: str) -> str:
    """The error of a configuration with a port there."""
    (error,) = errors(lambda: running.api.set_config(at(location)))
    assert error.startswith("ports[0].location: "), error
    return error


def kept(directory: Path, name: str = "kept") -> Path:
    file = directory / name
    file.write_text("not to be lost")
    return file


def is_kept(file: Path) -> bool:
    return file.is_file() and file.read_text() == "not to be lost"


@pytest.mark.parametrize(("device", "key"), DEVICES)
def test_a_device_of_a_client_has_no_path(
    running: Generator, tmp_path: Path, device: str, key: str
) -> None:
    file = kept(tmp_path)
    error = refused(running, f"vdev:{device.format(file)}")
    assert f'"{key}' in error
    # No option allows a value of the wrong type.
    assert ("--allow-any-vdev" in error) != ("has to be" in error)
    assert is_kept(file)
    assert list(tmp_path.iterdir()) == [file]
    # Nothing has tried to open it.
    assert str(file) not in running.log.read_text()


@pytest.mark.parametrize("device", WITHOUT_ARGUMENTS)
def test_a_client_has_no_device_with_a_socket_made(running: Generator, device: str) -> None:
    """net_memif would connect to `@/run/memif.sock`, and any user who listens read our memory."""
    before = running.log.read_text()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
        stranger.bind("\0/run/memif.sock")
        stranger.listen()
        stranger.setblocking(False)
        error = refused(running, f"vdev:{device}")
        with pytest.raises(BlockingIOError):
            stranger.accept()
    assert f'there is no device "{device}"' in error
    assert "--vdev" in error
    # DPDK has not been asked.
    assert running.log.read_text() == before


def test_a_client_names_a_device_of_the_starters(directory: Path) -> None:
    theirs = directory / "theirs"
    device = f"net_memif0,role=server,socket={theirs},socket-abstract=no"
    eal = ("-l", str(CPUS[0]), "--file-prefix", f"t{os.getpid()}", *MEMORY, "--vdev", device)
    with generator(directory, eal=eal) as running:
        for other in ("net_memif1", "net_memif", "net_memif00"):
            assert f'there is no device "{other}"' in refused(running, f"vdev:{other}")
        running.api.set_config(at("vdev:net_memif0"))
        assert theirs.is_socket()
        running.api.set_config(at("vdev:net_memif0"))
        # The port is closed, and its device with it.
        running.api.set_config(snappi.Config())
        assert 'there is no device "net_memif0"' in refused(running, "vdev:net_memif0")
        assert not theirs.exists()


def test_a_socket_is_not_mistaken_for_a_device_of_the_starters(directory: Path) -> None:
    """The generator calls its own devices net_memif0 and so on, too."""
    theirs, socket_of_ours = directory / "theirs", directory / "ours"
    device = f"net_memif0,role=server,socket={theirs},socket-abstract=no"
    eal = ("-l", str(CPUS[0]), "--file-prefix", f"t{os.getpid()}", *MEMORY, "--vdev", device)
    with generator(directory, eal=eal) as running:
        running.api.set_config(at(f"memif:{socket_of_ours}"))
        assert socket_of_ours.is_socket()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_reads_no_memory_of_roots(directory: Path) -> None:
    """As an attacker would: another user listens, and posts the configuration."""
    script = """
import encodings.idna, http.client, json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
    stranger.bind("\\0/run/memif.sock")
    stranger.listen()
    stranger.settimeout(1)
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=15)
    ports = [{"name": "p", "location": "vdev:net_memif0"}]
    connection.request("POST", "/config", json.dumps({"ports": ports}))
    print(connection.getresponse().status, end=" ")
    try:
        stranger.accept()
        print("connected")
    except TimeoutError:
        print("nobody")
"""
    with generator(directory) as running:
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, str(running.http_port)],
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    assert done.stdout.split() == ["400", "nobody"]


def test_a_tap_takes_no_interface_that_is_there(directory: Path, veth: None) -> None:
    ip("-n", NEAR, "tuntap", "add", "dev", "kept", "mode", "tap", "multi_queue")
    with generator(directory, "--netns", NEAR) as running:
        for interface in ("kept", "va"):
            error = refused(running, f"vdev:net_tap1,iface={interface}")
            assert f'there is a network interface "{interface}" already' in error
        assert "iface=NAME" in refused(running, "vdev:net_tap1")
        running.api.set_config(at("vdev:net_tap1,iface=new"))
        assert "new" in ip("-n", NEAR, "link", "show")
        running.api.set_config(snappi.Config())
        assert "kept" in ip("-n", NEAR, "link", "show")


def test_harmless_arguments_of_devices_are_allowed(running: Generator) -> None:
    for device in ("net_null0,size=60,no-rx=1", "net_ring0", "net_af_packet0,iface=lo,qpairs=1"):
        if device.startswith("net_af_packet") and os.geteuid() != 0:
            continue
        running.api.set_config(at(f"vdev:{device}"))


@pytest.mark.parametrize("location", LISTENING + CONNECTING)
def test_a_socket_elsewhere_is_refused(directory: Path, location: str) -> None:
    """By any name: also through `..`, a directory below, or a symbolic link."""
    sockets, outside = directory / "sockets", directory / "outside"
    for each in (sockets, outside, sockets / "below"):
        each.mkdir()
    (sockets / "way").symlink_to(outside)
    (directory / "other").symlink_to(sockets)
    file = kept(outside)
    (sockets / "link").symlink_to(file)
    (sockets / "dangling").symlink_to(outside / "new")
    with generator(directory, sockets=sockets) as running:
        for path in (
            file,
            outside / "new",
            f"{sockets}/../{outside.name}/kept",
            f"{sockets}/../../..{outside}/new",
            sockets / "below" / "new",
            f"{sockets}/below/../new",
            sockets / "way" / "new",
            sockets / "way" / "kept",
            directory / "other" / "new",
            directory / "new",
            f"{sockets}/.",
            f"{sockets}/..",
        ):
            error = refused(running, location.format(path))
            assert f'socket "{path}"' in error
            assert "--socket-directory" in error
            assert str(sockets) in error
        for name in ("link", "dangling"):
            assert "is a symbolic link" in refused(running, location.format(sockets / name))
        assert "absolute path" in refused(running, location.format("new"))
    assert is_kept(file)
    assert list(outside.iterdir()) == [file]
    assert sorted(path.name for path in sockets.iterdir()) == ["below", "dangling", "link", "way"]


def test_what_is_no_socket_stays_where_a_socket_may_be(directory: Path) -> None:
    file = kept(directory)
    with generator(directory) as running:
        for location in LISTENING:
            assert "exists" in refused(running, location.format(file))
            assert is_kept(file)
        for location in CONNECTING:
            if location.startswith("vhost"):
                # It tries until there is a socket.
                running.api.set_config(at(location.format(file)))
                running.api.set_config(snappi.Config())
            else:
                assert "nobody listens" in refused(running, location.format(file))
            assert is_kept(file)


def test_the_generators_own_directory_takes_sockets(directory: Path) -> None:
    sockets = directory / "sockets"
    sockets.mkdir()
    with generator(directory, sockets=sockets) as running:
        for socket in (running.telemetry.parent / "s", sockets / "s"):
            for kind in ("memif", "vhost"):
                running.api.set_config(at(f"{kind}:{socket}"))
                assert socket.is_socket()
                running.api.set_config(snappi.Config())
                assert not socket.exists()
        for role in ("", ",role=client"):
            for kind in ("memif", "vhost", "virtio_user"):
                error = refused(running, f"{kind}:{running.telemetry}{role}")
                assert "a socket of DPDK's" in error
        assert running.telemetry.is_socket()
        running.api.set_config(at(f"memif:{running.telemetry.parent}/s"))
    assert "Failed to remove" not in running.log.read_text()


def test_any_device_removes_no_file_either(directory: Path) -> None:
    file = kept(directory)
    with generator(directory, "--allow-any-vdev") as running:
        for device in (
            f"net_vhost0,iface={file}",
            f"eth_vhost0,client=0,iface={file}",
            f"net_vhost0,iface={directory}/./{file.name}",
            f"vdev:net_vhost0,iface={file}",
            f"net_virtio_user0,path={file},server=1",
            f"net_memif0,role=server,socket={file},socket-abstract=no",
        ):
            assert f"{file.name}" in refused(running, f"vdev:{device}")
            assert is_kept(file), device
        free = directory / "free"
        running.api.set_config(at(f"vdev:net_vhost0,iface={free}"))
        assert free.is_socket()


LISTEN = ("--otg-listen", "127.0.0.1:0")


def ended(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A generator that ends by itself."""
    return subprocess.run(
        [str(BIN / "generator"), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment(directory),
    )


@pytest.mark.parametrize(
    "location",
    ["vdev:net_vhost0,iface={}", "vdev:net_virtio_user0,path={},server=1", *LISTENING],
)
def test_the_command_line_removes_no_file(directory: Path, location: str) -> None:
    """Its locations may be anywhere, for who starts the program is trusted."""
    file = kept(directory)
    done = ended(directory, "--port", location.format(file), "--duration", "10frames")
    assert done.returncode == 1
    assert f'socket "{file}" exists' in done.stderr, done.stderr
    assert is_kept(file)


def test_a_socket_directory_has_to_exist(directory: Path) -> None:
    done = ended(directory, *LISTEN, "--socket-directory", "/no/such")
    assert done.returncode == 1
    assert "--socket-directory /no/such: No such file" in done.stderr, done.stderr


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_socket_directory_is_not_for_everybody(directory: Path, mode: int) -> None:
    """Anybody could make a socket there, and a client's end would read our memory."""
    sockets = directory / "sockets"
    sockets.mkdir()
    sockets.chmod(mode)
    assert_refused_at_start(directory, sockets, f"its mode is {mode:04o}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
def test_a_socket_directory_is_ours(directory: Path) -> None:
    sockets = directory / "sockets"
    sockets.mkdir(mode=0o700)
    os.chown(sockets, 65534, 65534)
    assert_refused_at_start(directory, sockets, "it belongs to user 65534")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_nobody_else_owns_a_directory_above(directory: Path, mode: int) -> None:
    """Its owner could rename ours, and put another, or a symbolic link, in its place."""
    other = 65534
    if Path("/").stat().st_uid == other:
        pytest.skip("in this user namespace the directories of root and others look alike")
    above = directory / "above"
    sockets = above / "sockets"
    sockets.mkdir(parents=True, mode=0o700)
    above.chmod(mode)
    os.chown(above, other, other)
    why = f"user {other} can rename it, because {above.resolve()} belongs to that user"
    assert_refused_at_start(directory, sockets, why)


def assert_refused_at_start(directory: Path, sockets: Path, why: str) -> None:
    done = ended(directory, *LISTEN, "--socket-directory", str(sockets))
    assert done.returncode == 1
    assert f"--socket-directory {sockets}: {why}" in done.stderr, done.stderr
    assert "mkdir -m 700" in done.stderr


def test_a_socket_is_in_use_by_all_its_names(directory: Path) -> None:
    sockets, alias = directory / "sockets", directory / "alias"
    sockets.mkdir()
    alias.symlink_to(sockets)
    with generator(directory, sockets=alias) as running:
        config = at(f"memif:{alias}/s")
        for other in (f"{alias}//s", f"{alias}/./s", f"{sockets}/s"):
            config.ports.port(name="q", location=f"memif:{other},role=client")
            (error,) = errors(lambda: running.api.set_config(config))
            assert error.startswith("ports[1].location: "), error
            assert "both ends of a link cannot be in one generator" in error, error
            config.ports.remove(1)


def warnings(directory: Path, *options: str, before: Sequence[str] = ()) -> list[str]:
    with generator(directory, *options, before=before) as running:
        url, lines = running.url, running.log.read_text().splitlines()
        running.log.unlink()
    found = [line for line in lines if "WARN" in line]
    assert all(url.rpartition("/")[2] in line for line in found)
    # Behind all that EAL says, where it is seen.
    assert not found or found == lines[-1:]
    return found


def test_a_privileged_generator_says_who_can_drive_it(directory: Path) -> None:
    if os.geteuid() != 0:
        assert warnings(directory) == []
        return
    (line,) = warnings(directory)
    assert "root serves" in line
    assert "without a password: every user and every program of this machine" in line
    password = directory / "password"
    password.touch(0o600)
    password.write_text("correct horse battery\n")
    asked = ("--otg-user", "lab", "--otg-password-file", str(password))
    assert warnings(directory, *asked) == []
    # CAP_DAC_OVERRIDE so that it finds the program and its directory wherever they are.
    held = "+net_raw,+dac_override"
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    (line,) = warnings(
        directory, before=(*user, f"--inh-caps=-all,{held}", f"--ambient-caps=-all,{held}")
    )
    assert "a user with CAP_NET_RAW serves" in line
    assert "every user and every program of this machine" in line
