# SPDX-License-Identifier: BSD-3-Clause
"""Crowds of hostile clients: whoever may drive the generator is answered all the same."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import TIMEOUT_S, Generator, basic, certificate, eventually, generator, resident
from traffic import looped, transmit

pytest_plugins = ["rig"]

CLIENTS = 70


# As another user: so many peers that send wrong passwords, and come again once put out or, with
# "new", without waiting for the answer.
GUESSER = """
import os, select, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
port, count, how, request = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4].encode()
peers = []
while True:
    while len(peers) < count:
        peer = socket.socket()
        try:
            peer.settimeout(1)
            peer.connect(("127.0.0.1", port))
            peer.sendall(request)
        except OSError:
            peer.close()
            break
        peers.append(peer)
    for peer in select.select(peers, [], [], 0.01)[0]:
        try:
            more = peer.recv(1 << 16)
            peer.sendall(request)
        except OSError:
            more = b""
        if not more:
            peer.close()
            peers.remove(peer)
    if how == "new" and peers:
        peers.pop(0).close()
"""


@contextlib.contextmanager
def crowd(port: int, count: int, first: bytes, more: bytes = b"") -> Iterator[None]:
    """So many peers that send `first` and then `more` every 0.2 s, and come again once put out."""
    ended = threading.Event()

    def attack() -> None:
        peers: list[socket.socket] = []
        while not ended.wait(0.2):
            while len(peers) < count:
                with contextlib.suppress(OSError):
                    peers.append(socket.create_connection(("127.0.0.1", port), 1))
                    peers[-1].sendall(first)
            readable, _, _ = select.select(peers, [], [], 0)
            for peer in peers:
                with contextlib.suppress(OSError):
                    peer.send(more, socket.MSG_DONTWAIT)
            for peer in readable:
                peer.close()
                peers.remove(peer)
        for peer in peers:
            peer.close()

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        time.sleep(1)
        yield
    finally:
        ended.set()
        attacker.join()


def answered(ask: Callable[[], int], count: int = 20) -> int:
    """How many of so many requests, each on a connection of its own, are answered by a 200."""
    good = 0
    for _ in range(count):
        with contextlib.suppress(OSError, http.client.HTTPException):
            good += ask() == 200
    return good


def test_silent_peers_keep_nobody_from_the_tls_port(directory: Path) -> None:
    password = directory / "password"
    password.write_text("12345678")
    options = [*certificate(directory), "--otg-user=me", f"--otg-password-file={password}"]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with generator(directory, *options) as running:

        def connect() -> http.client.HTTPSConnection:
            return http.client.HTTPSConnection(
                "127.0.0.1", running.http_port, timeout=5, context=trusting
            )

        def ask(connection: http.client.HTTPSConnection) -> int:
            connection.request("GET", "/config", headers=basic("me", "12345678"))
            response = connection.getresponse()
            response.read()
            return response.status

        known = connect()
        assert ask(known) == 200
        with crowd(running.http_port, CLIENTS, b""):
            assert answered(lambda: ask(connect())) >= 19
            # One that was there before stays, for no stranger has its place.
            assert ask(known) == 200


def test_slow_senders_keep_nobody_from_the_plain_port(ring: Generator) -> None:
    api = ring.api
    api.set_config(looped(["f"]))
    transmit(api, "start")
    head = b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
    with crowd(ring.http_port, 80, head, b" "):
        assert answered(lambda: ring.request("GET", "/config")[0]) >= 19
        # Running traffic can be stopped.
        ring.transmit("stop")
        assert ring.stopped()


def test_memory_goes_back_after_a_storm_of_bodies(ring: Generator) -> None:
    ring.request("POST", "/config", json.dumps({"ports": [], "flows": [{}] * 1000}))
    before = resident(ring)
    body = b" " * (8 << 20)
    head = b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    peers: list[socket.socket] = []
    for _ in range(80):
        peer = socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S)
        peer.settimeout(TIMEOUT_S)
        peers.append(peer)
    most = 0

    def send(peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            peer.sendall(head + body[:-1])

    senders = [threading.Thread(target=send, args=(peer,)) for peer in peers]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        most = max(most, resident(ring) - before)
        time.sleep(0.01)
    for peer in peers:
        peer.close()
    assert most < 128 << 20
    eventually(lambda: resident(ring) - before < 24 << 20, lambda: resident(ring) - before)


def test_bodies_of_many_objects_take_the_memory_of_one(ring: Generator) -> None:
    """They are read one at a time, whatever C's allocator keeps afterwards."""
    text = json.dumps({"flows": [{"a": 1}] * 500_000}).encode()

    def most_of(count: int) -> int:
        posts = [
            threading.Thread(target=ring.request, args=("POST", "/config", text))
            for _ in range(count)
        ]
        for post in posts:
            post.start()
        most = 0
        while any(post.is_alive() for post in posts):
            most = max(most, resident(ring))
            time.sleep(0.01)
        return most

    # Two may be there for a moment: one is freed while the next is read.
    one = most_of(1)
    assert most_of(6) < 1.5 * one


def test_wrong_passwords_are_slowed(directory: Path) -> None:
    password = directory / "password"
    password.write_text("12345678")
    with generator(directory, "--otg-user=me", f"--otg-password-file={password}") as running:
        right, wrong = basic("me", "12345678"), basic("me", "87654321")
        known = http.client.HTTPConnection("127.0.0.1", running.http_port, timeout=TIMEOUT_S)

        def ask() -> int:
            known.request("GET", "/config", headers=right)
            response = known.getresponse()
            response.read()
            return response.status

        assert ask() == 200
        guesses, ended = [0], threading.Event()

        def guess() -> None:
            while not ended.is_set():
                assert running.request("GET", "/config", headers=wrong)[0] == 401
                guesses[0] += 1

        guessers = [threading.Thread(target=guess) for _ in range(10)]
        begin = time.monotonic()
        for guesser in guessers:
            guesser.start()
        time.sleep(3)
        # Whoever is known does not wait with them.
        asked = time.monotonic()
        assert ask() == 200
        assert time.monotonic() - asked < 1
        # Nor does another for long.
        assert running.request("GET", "/config", headers=right)[0] == 200
        ended.set()
        for guesser in guessers:
            guesser.join()
        # 10 a second, and those before they were slowed.
        passed = time.monotonic() - begin
        assert guesses[0] < 10 * passed + 5 + 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("how", ["keep", "new"])
def test_guesses_of_another_user_keep_nobody_out(directory: Path, how: str) -> None:
    """Each user of this machine waits for that user's own wrong passwords only."""
    with generator(directory, trusting=False) as running:
        token = Path(running.files["token"]).read_text().strip()
        right, wrong = basic("otg", token), basic("otg", "x" * 64)
        field = f"Authorization: {wrong['Authorization']}"
        request = f"GET /config HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n"
        command = [sys.executable, "-c", GUESSER, str(running.http_port), "100", how, request]
        with subprocess.Popen(command) as guesser:
            try:
                time.sleep(1.5)
                assert guesser.poll() is None
                assert answered(lambda: running.request("GET", "/config", headers=right)[0]) >= 19
            finally:
                guesser.kill()


@pytest.mark.second_tier
def test_a_crowd_that_says_nothing_is_put_out(ring: Generator) -> None:
    """A handshake of TLS, headers and bodies have deadlines."""
    with socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S) as peer:
        begin = time.monotonic()
        assert peer.recv(1) == b""
        assert time.monotonic() - begin < 14
