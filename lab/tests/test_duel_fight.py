# SPDX-License-Identifier: BSD-3-Clause
"""How the programs of a duel meet, and what becomes of it if that is not fair."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from linerate.experiments.duel import choosing, fight
from linerate.experiments.duel.choosing import choose
from linerate.experiments.duel.programs import program_of, side_of
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.scheduling import Meeting
from linerate.experiments.duel.sentences import notes, round_line, sentence
from linerate.experiments.duel.verdict import log_ratio
from linerate.forwarders import FORWARDERS, Forwarder
from linerate.host.builds import elf
from linerate.host.errors import TelemetryError
from linerate.links import link
from linerate.telemetry.client import Reading
from linerate.trial.running import Ports, Running
from linerate.trial.starts.busy import Busy, BusyTime
from linerate.trial.starts.clocks import Per
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Start
from linerate.trial.starts.window import Had, Offered, Slice, Window
from linerate.trial.window import Polls

NAMES = ["A (old)", "B (new)"]


class Wire:
    """A link on which the second program does `second` times as much as the first one.

    `failing`: it does not start with the probe. `faster`: than the generator. `disagreeing`: how
    much more the second program does alone than beside the first. `alone_in`: the rounds in which
    that was asked.
    """

    disagreeing = 1.0

    def __init__(self, asked: Asked, *, failing: bool, faster: bool, second: float) -> None:
        self.asked = asked
        self.failing, self.faster, self.second = failing, faster, second
        self.source = random.Random(1)
        self.alone_in: list[int] = []
        self.rounds = 0

    @contextmanager
    def started(self, order: Sequence[int]) -> Iterator[Sequence[SimpleNamespace]]:
        if self.failing and self.asked.per == "busy" and 1 in order:
            raise FaultError(1, "start", "cannot load the probe")
        yield [SimpleNamespace(arm=arm, said=f"words of {arm}") for arm in order]

    def measure(self, starts: Sequence[SimpleNamespace]) -> list[Window]:
        self.rounds += 1
        return [self._window(start.arm) for start in starts]

    def alone(self, starts: Sequence[SimpleNamespace]) -> list[Window]:
        """Return the figures of programs alone: as beside each other, or different by
        `disagreeing`.
        """
        self.alone_in.append(self.rounds - 1)
        return [self._window(start.arm, self.disagreeing) for start in starts]

    def _window(self, arm: int, more: float = 1.0) -> Window:
        sent = round(1e6 * (self.second * more if arm else 1) * self.source.gauss(1, 0.003))
        offered = Offered(sent, 0 if self.faster else 1000 * sent)
        return Window(arm, (Slice((sent,), (sent,), 10**9, offered, self.asked.per == "busy"),))


class Wires:
    """Returns what `opened` gives, time after time. `ways`: the clocks over which packets were
    counted.
    """

    def __init__(self, *, failing: bool = False, faster: bool = False, second: float = 0.9) -> None:
        self.failing, self.faster, self.second = failing, faster, second
        self.ways: list[Per] = []

    @contextmanager
    def opened(self, method: str, meeting: Meeting) -> Iterator[Wire]:
        assert method == "turns"
        self.ways.append(meeting.asked.per)
        yield Wire(meeting.asked, failing=self.failing, faster=self.faster, second=self.second)


ASKED = Asked(method="turns", per="busy")


def fought(monkeypatch: pytest.MonkeyPatch, wires: Wires, asked: Asked = ASKED) -> Duel:
    monkeypatch.setattr(fight, "opened", wires.opened)
    monkeypatch.setattr(fight._Fight, "_stolen", lambda self: 0)
    programs = [FORWARDERS["c-l2fwd"], FORWARDERS["rust-l2fwd"]]
    bench = SimpleNamespace(frame_files=())
    return fight.fight(bench, link("memif"), programs, asked)  # type: ignore[arg-type]


def test_by_busy_time_a_program_may_be_faster_than_its_generator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = fought(monkeypatch, Wires(faster=True))
    assert (found.fault, found.answer, found.per) == (None, "slower", "busy")
    assert "times as many packets per busy second" in sentence(found, NAMES, Asked())
    assert "M packets per busy second" in round_line(found)
    assert any("may be faster than its generator" in note for note in notes(found, NAMES))


def test_by_cpu_time_it_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fought(monkeypatch, Wires(faster=True), replace(ASKED, per="cpu"))
    assert found.fault
    assert (found.fault.kind, found.per) == ("unsaturated", "cpu")
    assert found.fault.said == f"words of {found.fault.arm}"


def test_the_same_code_ends_a_duel_unless_figures_alone_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    def same(programs: Sequence[object], starts: Sequence[object]) -> bool:
        looks.append(len(starts))
        return True

    monkeypatch.setattr(fight, "same_code", same)
    found = fought(monkeypatch, Wires(second=1.0))
    assert (found.answer, found.by_code, len(found.rounds)) == ("equal", True, 3)
    # In each round, because one of the two may be rebuilt between two rounds.
    assert looks == [8, 8, 8]
    found = fought(monkeypatch, Wires(second=1.0), replace(ASKED, code=False))
    assert (found.answer, found.same_code, found.by_code) == ("equal", None, False)
    assert len(found.rounds) > 3
    assert looks == [8, 8, 8]
    found = fought(monkeypatch, Wires())
    assert (found.answer, found.same_code) == ("slower", True)


@pytest.mark.parametrize(
    ("disagreeing", "looks"), [(1.0, [0, 1, 2, 3, 6, 9, 12, 15, 18]), (1.03, list(range(20)))]
)
def test_starts_run_alone_at_first_then_in_every_third_round_and_wherever_it_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, disagreeing: float, looks: list[int]
) -> None:
    wire = Wire(ASKED, failing=False, faster=False, second=0.98)
    wire.disagreeing = disagreeing
    meeting = Meeting(None, None, (), ASKED, random.Random(1))  # type: ignore[arg-type]
    fighting = fight._Fight(meeting, lambda duel: None)
    monkeypatch.setattr(fight, "same_code", lambda programs, starts: False)
    monkeypatch.setattr(fight._Fight, "_stolen", lambda self: 0)
    for _ in range(20):
        done = fighting._round(wire, [0, 1] * 4)  # type: ignore[arg-type]
        fighting.found.rounds.append(done)
        if done.alone:
            fighting.found.agreement.add(log_ratio(done.windows), log_ratio(done.alone))
    assert wire.alone_in == looks


@pytest.mark.parametrize("faster", [False, True])
def test_a_program_that_does_not_start_with_the_probe_is_compared_without_it(
    monkeypatch: pytest.MonkeyPatch, faster: bool
) -> None:
    wires = Wires(failing=True, faster=faster)
    found = fought(monkeypatch, wires)
    assert (wires.ways, found.per) == (["busy", "cpu"], "cpu")
    # It is not another method.
    assert found.given_up is None
    if faster:
        assert found.fault
        assert found.fault.kind == "unsaturated"
    else:
        assert (found.fault, found.answer) == (None, "slower")


def test_builds_are_chosen_by_busy_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    side = side_of("c-l2fwd,c-l2fwd-native", "A")
    for failing, per in ((False, "busy"), (True, "cpu")):
        wires = Wires(failing=failing, faster=not failing)
        monkeypatch.setattr(choosing, "opened", wires.opened)
        found = choose(None, link("memif"), side, ASKED, lambda _: None)  # type: ignore[arg-type]
        assert (found.chosen, found.per) == (0, per)
        assert found.shares[1] == pytest.approx(0.9, abs=0.02)


def test_a_generator_that_others_disturb_is_not_faster() -> None:
    """Its refused frames are concentrated in the moments in which it runs."""
    for used, saturated in ((99, True), (60, False)):
        offered = Offered(1000, 10**6, Had(used, 100))
        assert Slice((1000,), (1000,), 100, offered).saturated is saturated


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
    """Telemetry that answers like the probe."""

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


def test_busy_time_is_cpu_time() -> None:
    program, told = FORWARDERS["c-l2fwd"], Told(6_000_000, 2_000_000)
    polls = Polls(program, told, probed=True)  # type: ignore[arg-type]
    busy = BusyTime(polls, told, lambda: None)  # type: ignore[arg-type]
    start = Start(0, Running(Still(), telemetry=told), "busy", busy=busy)  # type: ignore[arg-type]
    found = start.sample().busy
    assert found
    assert (found.ns, found.lcores) == (4_000_000, 1)
    # Beside another program it had the CPU for half of the time, and was busy for a quarter.
    later = Busy(found.ns + 250, 1, found.at_ns + 1000)
    assert later.since(found, 500) == 125
    # Two lcores had their CPUs all the time.
    assert Busy(500, 2, 1000).since(Busy(0, 2, 0), 2000) == 500
    assert Busy(500, 2, 1000).since(Busy(0, 2, 0), 2010) == 500


def test_who_has_no_probe_has_no_busy_time() -> None:
    program, told = program_of("/bin/sh {rx} {tx}", "A"), Told()
    busy = BusyTime(Polls(program, told, probed=True), told, lambda: None)  # type: ignore[arg-type]
    with pytest.raises(TelemetryError, match="no figures of its polls"):
        busy.read()
