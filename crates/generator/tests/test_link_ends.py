# SPDX-License-Identifier: BSD-3-Clause
"""The books close when a client, a generator or a peer is killed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import snappi
from farend import forwarder, memif, part
from harness import TIMEOUT_S, Generator, eventually, generator, started
from linked import LINKS, beyond, check_flows, go
from traffic import flow

pytest_plugins = ["rig"]

HALF_A_REQUEST = """
import socket, sys, time
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.sendall(b"POST /config HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 9999\\r\\n\\r\\n{")
print(flush=True)
time.sleep(60)
"""


def test_a_killed_client_changes_nothing(directory: Path) -> None:
    with generator(directory) as running:
        config = snappi.Config()
        config.ports.port(name="p1", location="ring:r")
        flow(config, "f0", "p1", ["p1"])
        running.api.set_config(config)
        running.transmit("start")
        port = running.http_port
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", HALF_A_REQUEST, str(port)], stdout=subprocess.PIPE
            )
            for _ in range(4)
        ]
        for client in clients:
            assert client.stdout is not None
            client.stdout.readline()
            client.kill()
            client.wait(TIMEOUT_S)
            client.stdout.close()
        # One that asks and is gone before the answer, too.
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n")
        before = running.flow()["attempted"]
        eventually(lambda: running.flow()["attempted"] > before + 100)
        assert running.api.get_config().serialize("dict") == config.serialize("dict")
        running.transmit("stop")
        eventually(lambda: running.port()["received"] == running.port()["accepted"])
        check_flows(running, ["f0"], complete=False)


def test_after_a_killed_generator_the_next_one_goes_on(directory: Path) -> None:
    link = LINKS["memif"]
    location = link.location.format(d=directory)
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    flow(config, "f0", "p1", ["p1"], frames=2000)
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(started(directory))
        endless = config.clone()
        endless.flows[0].duration.choice = "continuous"
        victim.api.set_config(endless)
        far = stack.enter_context(forwarder(directory, "reflect", [memif(directory / "s")]))
        far.wait()
        eventually(lambda: victim.link() == "up")
        victim.transmit("start")
        eventually(lambda: victim.flow()["received"] > 200)
        victim.process.kill()
        victim.process.wait(TIMEOUT_S)
        far.kill()
        left = victim.telemetry.parent
        assert left.is_dir()
        assert (directory / "s").is_socket()
        with generator(directory) as next_one:
            assert not left.exists()
            next_one.api.set_config(config)
            far = stack.enter_context(forwarder(directory, "reflect", [memif(directory / "s")]))
            far.wait()
            eventually(lambda: next_one.link() == "up")
            assert go(next_one, far, ["f0"])["accepted"] == 2000
            part(next_one, far)


@pytest.mark.parametrize("options", [[], pytest.param(["--flood"], marks=pytest.mark.second_tier)])
def test_a_killed_peer_is_a_link_that_is_down(directory: Path, options: list[str]) -> None:
    """Over vhost-user, whose driver waits for a poll to end before it lets go of the rings."""
    link = LINKS["vhost"]
    config = snappi.Config()
    config.ports.port(name="p1", location=link.location.format(d=directory))
    flow(config, "f0", "p1", ["p1"])
    with generator(directory, *options) as running:
        running.api.set_config(config)
        for attempt in range(2):
            with forwarder(directory, "reflect", [link.device.format(d=directory)]) as far:
                far.wait()
                eventually(lambda: running.link() == "up")
                if attempt == 0:
                    running.transmit("start")
                before = running.flow()["received"]
                eventually(partial(beyond, running, "received", before + 200))
                far.kill()
            eventually(lambda: running.link() == "down")
            books = running.flow()
            assert books["transmit"] == "started"
            # No frame is taken by a link that is down; every offer is counted.
            eventually(partial(beyond, running, "attempted", books["attempted"] + 100))
            assert running.flow()["accepted"] == books["accepted"]
            assert running.port()["link"] == "down"
        running.transmit("stop")
        port = running.port()
        assert port["attempted"] == port["accepted"] + port["lost_at_ingress"] + port["refused"]
        assert 400 < port["received"] <= port["accepted"]
        assert [port[kind] for kind in ("duplicates", "reordered", "foreign", "stale")] == [0] * 4
        (error,) = starts_with_errors(running)
        assert '"p1"' in error
        assert "down" in error


def starts_with_errors(running: Generator) -> list[str]:
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        running.transmit("start")
    return list(info.value.args[0].errors)


@pytest.mark.second_tier
def test_a_killed_memif_peer_is_a_link_that_is_down_too(directory: Path) -> None:
    """Its driver lets go of rings that are being polled (see `part`): so at rest, between runs."""
    config = snappi.Config()
    config.ports.port(name="p1", location=f"memif:{directory}/s")
    flow(config, "f0", "p1", ["p1"], frames=300)
    with generator(directory) as running:
        running.api.set_config(config)
        for _ in range(2):
            with forwarder(directory, "reflect", [memif(directory / "s")]) as far:
                far.wait()
                eventually(lambda: running.link() == "up")
                port = go(running, far, ["f0"])
                assert port["received"] == 300
                time.sleep(1.2)  # an lcore rests when nothing has moved for a second
                far.kill()
            eventually(lambda: running.link() == "down")
        assert running.port()["received"] == 300
