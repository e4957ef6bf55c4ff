# SPDX-License-Identifier: BSD-3-Clause
"""The generator as a process: command line, signals, files, TLS, kill -9, idleness."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import snappi
from harness import (
    BIN,
    TIMEOUT_S,
    Generator,
    certificate,
    environment,
    eventually,
    generator,
    started,
)
from traffic import errors, published

pytest_plugins = ["rig"]


def test_any_virtual_device_is_an_option(directory: Path) -> None:
    with generator(directory, "--allow-any-vdev") as running:
        config = snappi.Config()
        config.ports.port(name="p", location="vdev:net_nothing0")
        (error,) = errors(lambda: running.api.set_config(config))
        assert "--allow-any-vdev" not in error
        config.ports[0].location = "vdev:net_ring0,internal=0x10"
        (error,) = errors(lambda: running.api.set_config(config))
        assert "internal=" in error


def test_a_closed_terminal_ends_it_cleanly_unless_nohup_started_it(directory: Path) -> None:
    with generator(directory) as running:
        pass
    for before in ([], ["nohup"]):
        with started(directory, before=before) as other:
            runtime = other.telemetry.parent
            assert runtime != running.telemetry.parent
            other.process.send_signal(signal.SIGHUP)
            if before:
                time.sleep(0.5)
                assert other.process.poll() is None
                other.process.send_signal(signal.SIGTERM)
            assert other.process.wait(TIMEOUT_S) == 0
            assert not runtime.exists()


def test_what_a_killed_one_leaves_is_no_obstacle(directory: Path) -> None:
    config = snappi.Config()
    config.ports.port(name="p", location=f"memif:{directory}/s")
    with started(directory) as first:
        left = first.telemetry.parent
        first.api.set_config(config)
        with generator(directory) as second:
            assert left.exists()
            (error,) = errors(lambda: second.api.set_config(config))
            assert "exists" in error
    assert left.exists()
    assert (directory / "s").is_socket()
    with generator(directory) as third:
        assert not left.exists()
        third.api.set_config(config)
        assert (directory / "s").is_socket()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--otg-listen"),
        (
            ["--otg-listen", "0.0.0.0:0"],
            "--otg-password-file; without them",
        ),
        (["--otg-listen", "127.0.0.1:TAKEN"], "in use"),
        (["--otg-listen", "127.0.0.1:0", "--tls-cert", "x"], "--tls-key"),
        (
            ["--otg-listen", "127.0.0.1:0", "--tls-cert", "/no", "--tls-key", "/no"],
            "--tls-cert /no",
        ),
        (["--otg-listen", "127.0.0.1:0", "--port-file", "/no/such/dir/f"], "--port-file"),
        (["-l", "4095", "--no-pci", "--", "--otg-listen", "127.0.0.1:0"], "-l 4095"),
    ],
)
def test_a_wrong_command_line_is_told(directory: Path, options: list[str], words: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [str(BIN / "generator"), *(option.replace("TAKEN", port) for option in options)]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=environment(directory),
        )
    assert done.returncode != 0
    assert words in done.stderr, done.stderr


def test_with_a_certificate_the_api_is_served_over_https(directory: Path) -> None:
    with generator(directory, *certificate(directory)) as running:
        assert running.url.startswith("https://")
        api = snappi.api(location=running.url, verify=False)
        api.set_config(published())
        assert api.get_config().ports[0].name == "p1"
        with pytest.raises((OSError, http.client.HTTPException)):
            running.request("GET", "/config")  # no plain HTTP at the same address


def test_long_frames_pass_a_memif_link(directory: Path) -> None:
    """It has no MTU; DPDK's driver refuses to be asked for one. Once it has put a frame into
    several buffers it joins frames that begin there later to what follows: they are to be large.
    """
    link = directory / "link"
    ends = [directory / "server", directory / "client"]
    for end in ends:
        end.mkdir()
    options = ("--max-frame", "9216", "--socket-directory", str(directory))
    with generator(ends[0], *options) as server, generator(ends[1], *options) as client:
        config = snappi.Config()
        config.ports.port(name="p1", location=f"memif:{link},role=server")
        server.api.set_config(config)
        config = published(f"memif:{link},role=client")
        flow = config.flows[0]
        flow.size.random.min, flow.size.random.max = 64, 9216
        flow.rate.pps, flow.duration.fixed_packets.packets = 2000, 1500
        client.api.set_config(config)
        client.transmit("start")
        eventually(client.stopped)
        sent = client.ports()["p1"]
        assert 0 < sent.frames_tx * 2048 < sent.bytes_tx
        eventually(lambda: server.ports()["p1"].frames_rx == sent.frames_tx)
        assert server.ports()["p1"].bytes_rx == sent.bytes_tx


def test_the_port_file_comes_and_goes(directory: Path) -> None:
    file = directory / "port"
    with generator(directory, "--port-file", str(file)) as running:
        eventually(file.exists)
        assert int(file.read_text()) == running.http_port
    assert not file.exists()
    # A device, here by way of a link of our own, is not replaced by a file and then removed.
    file.symlink_to("/dev/null")
    with generator(directory, "--port-file", str(file)):
        pass
    assert file.is_symlink()


def test_idle_costs_next_to_nothing(ring: Generator) -> None:
    ring.api.set_config(published())
    time.sleep(0.1)

    def cpu_seconds() -> float:
        fields = Path(f"/proc/{ring.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = cpu_seconds()
    time.sleep(1)
    assert cpu_seconds() - before < 0.2
