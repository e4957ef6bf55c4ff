# SPDX-License-Identifier: BSD-3-Clause
"""How the programs of a duel meet, and what becomes of it where that is no fair way."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from linerate.experiments.duel import choosing, fight
from linerate.experiments.duel.choosing import choose
from linerate.experiments.duel.programs import program_of, side_of
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.scheduling import Meeting
from linerate.experiments.duel.sentences import notes, round_line, sentence
from linerate.forwarders import FORWARDERS, Forwarder
from linerate.host import elf
from linerate.host.errors import TelemetryError
from linerate.links import link
from linerate.telemetry.client import Reading
from linerate.trial.running import Ports, Running
from linerate.trial.starts.busy import BusyTime
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Per, Start
from linerate.trial.starts.window import Offered, Slice, Window
from linerate.trial.window import Polls

NAMES = ["A (old)", "B (new)"]


class Wire:
    """A link on which the second program is by a tenth slower.

    `faster`: than the generator, from round `after` on. `failing`: with the probe in it, B does not
    start.
    """

    def __init__(self, asked: Asked, faster: int | None, after: int, failing: bool) -> None:
        self.asked = asked
        self.faster, self.after, self.failing = faster, after, failing
        self.source = random.Random(1)
        self.rounds = 0

    @contextmanager
    def started(self, order: Sequence[int]) -> Iterator[Sequence[int]]:
        if self.failing and self.asked.per == "busy" and 1 in order:
            raise FaultError(1, "start", "cannot load the probe")
        yield order

    def measure(self, order: Sequence[int]) -> list[Window]:
        self.rounds += 1
        return [self._window(arm) for arm in order]

    def alone(self, order: Sequence[int]) -> list[Window]:
        del order
        return []

    def _window(self, arm: int) -> Window:
        sent = round(1e6 * (0.9 if arm else 1) * self.source.gauss(1, 0.003))
        limited = arm == self.faster and self.rounds > self.after
        offered = Offered(sent, 0 if limited else 1000 * sent)
        return Window(arm, (Slice((sent,), (sent,), 10**9, offered),))


class Wires:
    """What `opened` gives, time after time. `ways`: by which method, and over what counted."""

    def __init__(self, faster: int | None = None, after: int = 0, *, failing: bool = False) -> None:
        self.faster, self.after, self.failing = faster, after, failing
        self.ways: list[tuple[str, Per]] = []

    @contextmanager
    def opened(self, method: str, meeting: Meeting) -> Iterator[Wire]:
        self.ways.append((method, meeting.asked.per))
        yield Wire(meeting.asked, self.faster, self.after, self.failing)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No CPU is looked at, and every program can have the probe."""
    monkeypatch.setattr(fight._Fight, "_stolen", lambda self: 0)
    for module in (fight, choosing):
        monkeypatch.setattr(module, "countable", lambda programs: True)


def fought(monkeypatch: pytest.MonkeyPatch, wires: Wires) -> Duel:
    monkeypatch.setattr(fight, "opened", wires.opened)
    programs = [FORWARDERS["c-l2fwd"], FORWARDERS["rust-l2fwd"]]
    asked = Asked(method="turns")
    return fight.fight(None, link("memif"), programs, asked)  # type: ignore[arg-type]


def test_programs_at_their_limit_are_compared_by_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wires = Wires()
    found = fought(monkeypatch, wires)
    assert (found.answer, found.per, wires.ways) == ("slower", "cpu", [("turns", "cpu")])


@pytest.mark.parametrize("after", [0, 2])
def test_a_program_faster_than_its_generator_is_compared_by_busy_time(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    wires = Wires(1, after)
    found = fought(monkeypatch, wires)
    assert wires.ways == [("turns", "cpu"), ("turns", "busy")]
    assert (found.fault, found.answer, found.per) == (None, "slower", "busy")
    # No round counts that was made before.
    assert [each.number for each in found.rounds] == list(range(len(found.rounds)))
    assert len(found.rounds) == len(found.verdict.rounds)
    assert "times as many packets per busy second" in sentence(found, NAMES, Asked())
    assert "M packets per busy second" in round_line(found)
    assert any("faster than its generator" in note for note in notes(found, NAMES))
    # It is no other method.
    assert found.given_up is None


def test_without_the_probe_it_stays_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fight, "countable", lambda programs: False)
    wires = Wires(0)
    found = fought(monkeypatch, wires)
    assert found.fault
    assert (found.fault.arm, found.fault.kind, found.per) == (0, "unsaturated", "cpu")
    assert wires.ways == [("turns", "cpu")]


def test_a_program_that_does_not_start_with_the_probe_was_too_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = fought(monkeypatch, Wires(0, failing=True))
    assert found.fault
    assert (found.fault.arm, found.fault.kind) == (0, "unsaturated")
    assert found.other_fault is None


def test_builds_are_chosen_by_busy_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    wires = Wires(0)
    monkeypatch.setattr(choosing, "opened", wires.opened)
    side = side_of("c-l2fwd,c-l2fwd-native", "A")
    found = choose(None, link("memif"), side, Asked(), lambda _: None)  # type: ignore[arg-type]
    assert (found.chosen, found.per) == (0, "busy")
    assert found.shares[1] == pytest.approx(0.9, abs=0.02)


# -- which programs --------------------------------------------------------------------------------


def command(tmp_path: Path, content: bytes, words: str = "") -> Forwarder:
    program = tmp_path / "fw"
    program.write_bytes(content)
    program.chmod(0o755)
    return program_of(f"{words}{program} {{eal}}", "A")


@pytest.mark.parametrize(
    ("content", "takes"),
    [
        (elf.MAGIC + b"loads EAL", True),
        (b"#!/bin/sh\n", True),
        (elf.MAGIC + elf._SAID_BY_EAL, False),
    ],
)
def test_who_takes_the_probe(tmp_path: Path, content: bytes, takes: bool) -> None:
    assert command(tmp_path, content).takes_probe is takes


def test_in_a_container_is_no_probe(tmp_path: Path) -> None:
    engine = tmp_path / "podman"
    engine.write_bytes(b"#!/bin/sh\n")
    engine.chmod(0o755)
    assert not program_of(f"{engine} run fw {{eal}}", "A").takes_probe


def test_a_program_on_interfaces_has_no_probe() -> None:
    assert not program_of("/bin/sh {rx} {tx}", "A").takes_probe


# -- busy time -------------------------------------------------------------------------------------


class Told:
    """Telemetry that says what the probe says."""

    def __init__(self, *busy: int) -> None:
        self.busy = busy

    def commands(self) -> list[str]:
        return ["/linerate/probe/polling", "/linerate/clock"]

    def ask(self, command: str) -> Any:
        if command == "/linerate/clock":
            return {"tsc_hz": 2_000_000_000, "clock_cost_cycles": 20}
        assert command == "/linerate/probe/polling"
        figures: dict[str, Any] = dict.fromkeys(
            ("lcore", "polls", "empty_polls", "packets", "burst_limit", "total_tsc"), 0
        )
        return [
            {"port": 0, "queue": place, **figures, "burst_histogram": [0], "busy_tsc": busy}
            for place, busy in enumerate(self.busy)
        ]

    def peer_pid(self) -> Literal[1]:
        return 1


class Still(Ports):
    def readings(self) -> list[Reading]:
        return [Reading({"ipackets": 7, "opackets": 6}, 0, 0)]

    def up(self) -> bool:
        return True


def test_a_sample_has_the_busy_time_of_all_queues() -> None:
    program, told = FORWARDERS["c-l2fwd"], Told(6_000_000, 2_000_000)
    polls = Polls(program, told, probed=True)  # type: ignore[arg-type]
    busy = BusyTime(polls, told, lambda: None)  # type: ignore[arg-type]
    running = Running(Still(), telemetry=told)  # type: ignore[arg-type]
    start = Start(0, running, "busy", busy=busy)
    assert start.sample().time_ns == 4_000_000


def test_who_has_no_probe_has_no_busy_time() -> None:
    program, told = program_of("/bin/sh {rx} {tx}", "A"), Told()
    busy = BusyTime(Polls(program, told, probed=True), told, lambda: None)  # type: ignore[arg-type]
    with pytest.raises(TelemetryError, match="no figures of its polls"):
        busy.ns()
