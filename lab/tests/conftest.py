# SPDX-License-Identifier: BSD-3-Clause
"""What tests share: waits with a limit, a recorded run, and a telemetry server."""

from __future__ import annotations

import itertools
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trials import made_trial

from linerate.cli import main
from linerate.forwarders import forwarder as known
from linerate.host import netns
from linerate.host.cores import leases
from linerate.host.errors import LabError
from linerate.links import link
from linerate.records.cells import Cell
from linerate.records.outcome import Polling
from linerate.records.trial import Process, Trial
from linerate.runs.plans.blocks import arms, schedule
from linerate.runs.run_summary import Setup

if TYPE_CHECKING:
    from browser import Browser
    from simulated import Simulation
    from test_e2e import Ended


def lease_directory(among: Path) -> Path:
    """Return a new directory; `mktemp` would scan those of all earlier tests."""
    place = among / str(next(_NUMBERS))
    place.mkdir()
    place.chmod(0o1777)
    return place


_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def all_leases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leases")


@pytest.fixture(scope="session", autouse=True)
def leases_are_the_session_s(all_leases: Path) -> Iterator[None]:
    """Also for fixtures that the tests of a module share, because they are made before those of a
    test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "PLACES", (lease_directory(all_leases),))
        yield


@pytest.fixture(autouse=True)
def leases_are_the_test_s(monkeypatch: pytest.MonkeyPatch, all_leases: Path) -> Path:
    """Where the test's own process leases CPUs, so that tests do not wait for labs on the same
    machine.
    """
    place = lease_directory(all_leases)
    monkeypatch.setattr(leases, "PLACES", (place,))
    return place


Done = subprocess.CompletedProcess[str]
Linerate = Callable[..., Done]


@pytest.fixture
def linerate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Linerate]:
    """Run the command within this process, in `tmp_path`, because the imports of a process take
    seconds.

    An exception that `main` does not turn into a message fails the test.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["linerate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(sys.argv, code, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def wait_for(what: str, condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Fail unless `condition` holds within the time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            pytest.fail(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.01)


def need_veth() -> None:
    """Skip if there can be no veths: they need root, and a PID namespace that shows the kernel's
    threads.
    """
    try:
        link("veth").prepare()
        with netns.Namespaces(("probe",)):
            pass
    except LabError as error:
        pytest.skip(str(error))


FORWARDERS = ["c-l2fwd", "rust-l2fwd", "rust-l2fwd-burst"]
CYCLES = {"c-l2fwd": 40.0, "rust-l2fwd": 40.1, "rust-l2fwd-burst": 33.0}


def simulated_trial(
    source: random.Random, forwarder: str, arm: str, cell: Cell, *, block: int, position: int
) -> Trial:
    """Return a trial of a simulated machine at 2.45 GHz with 1 % noise."""
    hz = 2_450_000_000
    cycles = CYCLES.get(forwarder, 38.0) * source.gauss(1.0, 0.01)
    carried = cell.link.startswith("memif")
    rate = hz / (cycles + (120 if carried else 0))
    packets = round(rate * 0.3)
    trial = made_trial(
        experiment="overload",
        seed=1,
        block=block,
        position=position,
        role="measure",
        arm=arm,
        forwarder=forwarder,
        described=known(forwarder).described(),
        link=cell.link,
        size=cell.size,
        load="flood" if carried else "self-driven",
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=0.3,
        tsc_hz=hz,
        forwarder_rx=packets,
        forwarder_tx=packets,
        processes=[Process(role="forwarder", argv=["prog", "-l", "1", "<x>"], cpus=[1])],
    )
    if carried:
        trial.frames.attempted = packets * 2
        trial.frames.refused = packets
        trial.frames.lost_at_ingress = 0
        trial.frames.accepted = trial.frames.received = packets
        trial.frames.forwarder_drops = trial.frames.unattributed = 0
        trial.program.processes.append(Process(role="generator", argv=["generator"], cpus=[0]))
    return trial


def probed(trial: Trial) -> Trial:
    """Return the same trial with the probe's results: polls full of packets."""
    packets = trial.frames.forwarder_rx or 0
    cycles = round(packets * CYCLES.get(trial.forwarder, 38.0))
    trial.frames.polling = [
        Polling(
            lcore=1, port=0, queue=0, polls=packets // 32, empty_polls=0, packets=packets,
            burst_limit=32, burst_histogram=[0] * 32 + [packets // 32],
            busy_tsc=cycles, total_tsc=cycles,
        )
    ]  # fmt: skip
    return trial


def simulated_run(cells: list[Cell], seed: int = 1) -> tuple[Setup, list[Trial]]:
    """Return the trials of a whole run on the simulated machine."""
    chosen = arms(FORWARDERS)
    source = random.Random(seed)
    trials: list[Trial] = []
    for cell in cells:
        for block, shuffled in enumerate(schedule(chosen, cell, seed, 2)):
            for role, arm in shuffled:
                trial = simulated_trial(
                    source, arm.forwarder, arm.label, cell, block=block, position=len(trials)
                )
                trial.identity.role = role
                trials.append(probed(trial) if role == "probed" else trial)
    setup = Setup(
        experiment="overload",
        question="Which is it?",
        preset="quick",
        preset_note="a test",
        command="linerate run overload",
        seed=seed,
        window_s=0.3,
        started_at="2026-01-01T00:00:00+00:00",
        cells=cells,
        arms=chosen,
        tsc_hz=2_450_000_000,
    )
    return setup, trials


def at_lower_load(
    trials: list[Trial], share: float = 0.25, blocks: int = 3, *, control: bool = False
) -> list[Trial]:
    """Return the lower-load trials that belong to these trials: nothing is lost in them.

    `control`: the A/A arm has some as well.
    """
    found = []
    for trial in trials:
        itself = trial.arm.endswith("-again")
        if trial.role == "measure" and trial.block < blocks and (control or not itself):
            copy = probed(trial.model_copy(deep=True))
            copy.identity.role, copy.request.load, copy.request.load_share = (
                "lower-load",
                "paced",
                share,
            )
            copy.frames.attempted, copy.frames.refused = copy.frames.accepted, None
            found.append(copy)
    return found


@dataclass(frozen=True)
class Last:
    """An answer after which the program ends."""

    content: Any


class TelemetryServer:
    """Speaks DPDK telemetry v2 from a table of answers; if an answer is a function, it is called
    for each request.
    """

    def __init__(self, path: Path, answers: dict[str, Any]) -> None:
        self.path = path
        self.answers = answers
        self.greeting = b'{"version": "DPDK 22.11.11", "pid": 1, "max_output_len": 16384}'
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.send(self.greeting)
                while request := connection.recv(1024).decode():
                    answer = self.answers.get(request)
                    if callable(answer):
                        answer = answer()
                    if answer == "hang up":
                        break
                    if answer == "silence":
                        continue
                    if isinstance(answer, bytes):
                        connection.send(answer)
                        continue
                    name = request.split(",")[0]
                    if isinstance(answer, Last):
                        connection.send(json.dumps({name: answer.content}).encode())
                        break
                    connection.send(json.dumps({name: answer}).encode())

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def telemetry_server(tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], TelemetryServer]]:
    servers: list[TelemetryServer] = []

    def start(answers: dict[str, Any]) -> TelemetryServer:
        server = TelemetryServer(tmp_path / f"t{len(servers)}", answers)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A simulated machine under the lab (`simulated`)."""
    from simulated import install

    return install(monkeypatch)


@pytest.fixture(scope="session")
def memif2_run(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A real run of two forwarders on memif2, which tests only read (`test_e2e`)."""
    from test_e2e import memif2_ended

    return memif2_ended(tmp_path_factory.mktemp("memif2"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser without a screen (`browser`)."""
    from browser import started

    yield from started(tmp_path_factory.mktemp("browser"))
