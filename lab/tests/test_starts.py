# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders that are started together: in turns, or sharing a core."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from trials import made_trial

from linerate.experiments.overload.options import PRESETS, Options
from linerate.experiments.overload.plan import Overload, design_of
from linerate.experiments.overload.summarise import disagreements
from linerate.forwarders import forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LinkError, ProcessError, TrialError
from linerate.host.host import LOCAL
from linerate.host.process import Child, Command, RunDirectory, stands_still
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.records.cells import Arm, Cell
from linerate.records.outcome import Frames
from linerate.records.trial import Role, Trial
from linerate.traffic.sender import Sender
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import Running
from linerate.trial.search.setup_device import SetupDevice
from linerate.trial.starts import standing as starts_standing
from linerate.trial.starts import trials as standing_trials
from linerate.trial.starts import ways
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Sample
from linerate.trial.starts.taking_turns import TakingTurns
from linerate.trial.starts.window import Slice, Window
from linerate.trial.trial import Bench
from linerate.trial.window import Exchange, Polls

# -- turns -----------------------------------------------------------------------------------------


class Device:
    """A device of which only the processes are real: a program and its generator."""

    def __init__(self, run: RunDirectory, obstacle: TrialError | None = None) -> None:
        self._run = run
        self._obstacle = obstacle
        self.children: list[Child] = []
        self.closed = 0
        self.exchange: Any = None
        self.setup = SimpleNamespace(close=self._count)
        self.turn: Any = None

    def begin(self) -> None:
        if self._obstacle:
            raise self._obstacle
        sleeper = Command("sleeper", (sys.executable, "-c", "import time; time.sleep(60)"), CPUS)
        self.children = [LOCAL.start(sleeper, self._run) for _ in range(2)]
        program, generator = self.children
        sender = SimpleNamespace(child=generator, check=lambda: None)
        running = Running(cast(Any, None), program)
        self.exchange = SimpleNamespace(running=running, sender=sender)

    def close(self) -> None:
        self._count()

    def _count(self) -> None:
        self.closed += 1

    @property
    def still(self) -> list[bool]:
        return [stands_still(child.pid) for child in self.children if child.running]


CPUS = (max(os.sched_getaffinity(0)),)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory(tmp_path) as directory:
        yield directory


@contextlib.contextmanager
def taking_turns(devices: Sequence[Device]) -> Iterator[None]:
    turns = TakingTurns()
    try:
        with contextlib.ExitStack() as stack:
            for device in devices:
                stack.enter_context(turns.taking(cast(SetupDevice, device)))
            yield
        assert not any(any(device.still) for device in devices)
    finally:
        for child in [child for device in devices for child in device.children]:
            child.stop()


def test_all_are_started_before_the_first_turn_and_one_runs(run: RunDirectory) -> None:
    devices = [Device(run) for _ in range(3)]
    with taking_turns(devices):
        assert not any(device.children for device in devices)
        for mine in (1, 0, 2, 1):
            with devices[mine].turn():
                assert [device.still for device in devices] == [
                    [place != mine] * 2 for place in range(3)
                ]
            assert all(all(device.still) for device in devices)


def test_one_goes_on_to_end_while_the_others_stand_still(run: RunDirectory) -> None:
    devices, turns, seen = [Device(run) for _ in range(3)], TakingTurns(), []
    try:
        with contextlib.ExitStack() as stack:
            for device in devices:
                # Where the device is closed, which was opened before.
                stack.callback(lambda: seen.append([each.still[0] for each in devices]))
                stack.enter_context(turns.taking(cast(SetupDevice, device)))
            with devices[0].turn():
                pass
        # None has ended here, so the earlier ones run.
        assert seen == [[True, True, False], [True, False, False], [False, False, False]]
    finally:
        for child in [child for device in devices for child in device.children]:
            child.stop()


def test_who_does_not_start_is_no_obstacle_to_the_others(run: RunDirectory) -> None:
    broken = Device(run, LinkError("the link did not come up"))
    devices = [Device(run), broken, Device(run)]
    with taking_turns(devices):
        with devices[2].turn():
            assert devices[2].still == [False, False]
            assert devices[0].still == [True, True]
        # Its link is closed, too, and made again in its own turn.
        assert broken.closed == 2
        with broken.turn():
            pass


def test_an_error_in_a_turn_is_told_and_the_program_stands_still(run: RunDirectory) -> None:
    devices = [Device(run) for _ in range(2)]
    with taking_turns(devices):
        with pytest.raises(TrialError, match="of its own"), devices[0].turn():
            raise TrialError("of its own")
        assert devices[0].still == [True, True]


def test_the_generator_of_a_closed_program_goes_on_in_its_turn(run: RunDirectory) -> None:
    devices = [Device(run) for _ in range(2)]
    with taking_turns(devices):
        with devices[0].turn():
            pass
        # As after a failed trial: the next one restarts the program.
        devices[0].children[0].stop()
        devices[0].exchange = None
        with devices[0].turn():
            assert not stands_still(devices[0].children[1].pid)


def test_a_generator_that_ends_is_not_waited_for_in_vain() -> None:
    """No packet arrives then, however long one waits."""

    def ended() -> None:
        raise ProcessError("generator was killed by signal 9")

    ports = SimpleNamespace(readings=lambda: [], up=lambda: False)
    sender = SimpleNamespace(check=ended, start=lambda: None, links_up=lambda: True)
    running = cast(Running, SimpleNamespace(
        ports=ports, carrying=lambda _: lambda: False, check=lambda: None,
        wait_until=lambda *_: pytest.fail("looks at the forwarder alone"),
    ))  # fmt: skip
    exchange = Exchange(running, cast(Sender, sender), cast(Polls, None))
    for wait in (exchange.await_links, exchange.warm_up):
        with pytest.raises(ProcessError, match="generator was killed"):
            wait()


# -- on one core -----------------------------------------------------------------------------------

ITEMS: list[tuple[Role, Arm]] = [
    ("measure", Arm(name, name)) for name in ("c-l2fwd", "rust-l2fwd", "reflect")
]


@pytest.fixture
def setup(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> LinkSetup:
    class Open(LinkSetup):
        def ready(self) -> tuple[Wire, None]:
            return Wire(vdevs=("net_null0",)), None

    return Open(link("null"), LinkContext(run.path, 64))


@pytest.fixture
def bench(run: RunDirectory) -> Bench:
    cpu = CPUS[0]
    return Bench(
        run=run, cores=Cores(cpu, cpu, shared_core=True), memory=Memory(hugepages=False),
        experiment="overload", seed=1, window_s=0.3,
    )  # fmt: skip


class Core:
    """A core whose starts are computed. `faults`: of a forwarder, as soon as it exists."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.faults: dict[str, tuple[str, str]] = {}
        self.stood: list[list[str]] = []

        @contextlib.contextmanager
        def standing(
            bench: Bench, wire: Wire, programs: Sequence[Any], order: Sequence[int]
        ) -> Iterator[list[Any]]:
            names = [programs[place].name for place in order]
            self.stood.append(names)
            for place, name in enumerate(names):
                if name in self.faults:
                    raise FaultError(place, *self.faults[name])  # type: ignore[arg-type]
            yield [SimpleNamespace(running=Running(cast(Any, None)), arm=arm) for arm in order]

        monkeypatch.setattr(standing_trials, "standing", standing)
        monkeypatch.setattr(standing_trials, "together", self._together)
        monkeypatch.setattr(standing_trials, "by_itself", self._alone)

    @staticmethod
    def _together(starts: Sequence[Any], seconds: float, slices: int) -> list[Window]:
        """The second slice of five was taken by somebody else; the first start is the slowest."""
        assert seconds == pytest.approx(0.3 * len(starts))
        return [
            Window(
                start.arm,
                tuple(
                    Slice((count,), (count,), 60_000_000 * (10 if each == 1 else 1))
                    for each in range(slices)
                ),
            )
            for start in starts
            for count in [1_000_000 * (start.arm + 1)]
        ]

    @staticmethod
    def _alone(starts: Sequence[Any], *_: object) -> list[Window]:
        return [Window(start.arm, (Slice((9,), (9,), 1000),)) for start in starts]


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    return Core(monkeypatch)


def test_each_gets_the_figures_of_its_middle_slice(
    core: Core, bench: Bench, setup: LinkSetup
) -> None:
    found = standing_trials.stand(bench, setup, ITEMS, 4)
    assert core.stood == [["c-l2fwd", "rust-l2fwd", "reflect"]]
    assert [(t.arm, t.block, t.method, t.identity.slot) for t in found] == [
        ("c-l2fwd", 4, "standing", 0),
        ("rust-l2fwd", 4, "standing", 1),
        ("reflect", 4, "standing", 2),
    ]
    assert all(trial.valid and trial.steal_ticks for trial in found)
    assert [t.frames.forwarder_rx for t in found] == [1_000_000, 2_000_000, 3_000_000]
    assert {t.frames.duration_s for t in found} == {0.06}
    slices = found[0].frames.slices
    assert slices is not None
    assert [each.end_ns - each.begin_ns for each in slices] == [6e7, 6e8, 6e7, 6e7, 6e7]
    assert found[0].frames.alone_pps == pytest.approx(9e6)


def test_in_turns_each_has_the_core_to_itself(
    bench: Bench, setup: LinkSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core(monkeypatch)
    asked = []

    def alone(starts: Sequence[Any], _: object, seconds: float, turns: int) -> list[Window]:
        asked.append((seconds, turns))
        slices = [Slice((count,), (count,), 50_000_000) for count in (5, 1, 3, 4, 2)]
        return [Window(start.arm, tuple(slices)) for start in starts]

    def beside(*_: object) -> list[Window]:
        raise AssertionError

    monkeypatch.setattr(standing_trials, "by_itself", alone)
    monkeypatch.setattr(standing_trials, "together", beside)
    found = standing_trials.stand(bench, setup, ITEMS, 4, "turns")
    assert core.stood == [["c-l2fwd", "rust-l2fwd", "reflect"]]
    # A window of 0.3 s.
    assert asked == [(0.06, 5)]
    assert [(t.method, t.valid, t.frames.forwarder_rx) for t in found] == [("turns", True, 3)] * 3
    assert {t.frames.alone_pps for t in found} == {None}


def test_who_is_at_fault_is_named_and_the_others_are_measured(
    core: Core, bench: Bench, setup: LinkSetup
) -> None:
    core.faults["rust-l2fwd"] = ("drops", "it sent on 3 % of the packets that it received")
    found = standing_trials.stand(bench, setup, ITEMS, 0)
    assert [t.invalid_code for t in found] == [None, "kept", None]
    assert found[1].invalid_why == "it sent on 3 % of the packets that it received"
    assert core.stood == [["c-l2fwd", "rust-l2fwd", "reflect"], ["c-l2fwd", "reflect"]]


def test_what_spoils_all_of_them_spoils_all(
    core: Core, bench: Bench, setup: LinkSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object) -> None:
        raise LinkError("the link did not come up")

    monkeypatch.setattr(standing_trials, "together", no_link)
    found = standing_trials.stand(bench, setup, ITEMS, 0)
    assert {t.invalid_why for t in found} == {"the link did not come up"}


class Beginner:
    """A start with these counts (received, sent) at each check; None: it has ended."""

    def __init__(self, *looks: tuple[tuple[int, ...], tuple[int, ...]] | None) -> None:
        self.looks = list(looks)

    def sample(self) -> Sample:
        now = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if now is None:
            raise FaultError(1, "ended", "it ended: no memory")
        return Sample(*now, 0, 0)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only waiting advances."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(starts_standing, "pause", pause)
    monkeypatch.setattr("linerate.trial.starts.standing.time.monotonic", lambda: now[0])
    return now


def test_a_start_has_begun_when_all_ports_receive_and_something_is_sent(
    patience: list[float],
) -> None:
    nothing, ports, flows = ((0, 0), (0, 0)), ((9, 0), (0, 0)), ((9, 9), (0, 9))
    start = Beginner(nothing, ports, ((9, 9), (0, 0)), flows)
    starts_standing._await_packets(cast(Any, start), starts_standing._Patience.of(2))
    assert start.looks == [flows]
    left = starts_standing._Patience.of(2)
    for _ in range(2):
        starts_standing._await_packets(cast(Any, Beginner(nothing)), left)
    # The program may be broken in several ways; its window shows how.
    assert patience[0] == pytest.approx(0.06 + 20 + 5, abs=0.1)


def test_a_program_that_ends_before_it_forwards_does_not_start(patience: list[float]) -> None:
    with pytest.raises(FaultError, match="no memory") as raised:
        starts_standing._await_packets(
            cast(Any, Beginner(((0,), (0,)), None)), starts_standing._Patience.of(1)
        )
    assert (raised.value.arm, raised.value.kind) == (1, "start")


# -- how many fit into memory ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "fit"),
    # What the two took, and a quarter more; nothing is known of a program that took nothing.
    [(1280 - 44, 23), (1280 - 320, 3), (1280, None), (None, None)],
)
def test_starts_fit_into_huge_pages_by_what_one_of_each_takes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, left: int | None, fit: int | None
) -> None:
    """`left`: MiB free while both run; None: one does not start."""
    free = [1280]
    monkeypatch.setattr(ways, "hugepage_memory_mib", lambda: free[-1])

    @contextlib.contextmanager
    def standing(_: Bench, wire: Wire, programs: Sequence[Any], order: Sequence[int]) -> Any:
        assert wire.ports == 2
        assert list(order) == [0, 1]
        if left is None:
            raise FaultError(1, "start", "it ended")
        free.append(left)
        yield []
        free.pop()

    monkeypatch.setattr(ways, "standing", standing)
    programs = [forwarder("c-l2fwd"), forwarder("rust-l2fwd")]
    assert ways.huge_room(bench, link("null2"), 64, programs) == fit
    assert free == [1280]


# -- how a cell is measured ------------------------------------------------------------------------


def method(cell: str, forwarders: list[str], **values: Any) -> str:
    asked = Options(
        preset=PRESETS["quick"], links=[cell], forwarders=forwarders, **{"method": "auto", **values}
    )
    design = design_of(asked)
    return Overload(asked, design.arms, design.cells).method(Cell(cell, 64, 6))


def test_forwarders_share_a_core_where_the_driver_always_has_packets() -> None:
    assert method("null", ["c-l2fwd", "rust-l2fwd"]) == "standing"
    assert method("nearfree2", ["c-l2fwd", "rust-l2fwd"]) == "standing"


def test_they_take_turns_where_a_generator_sends() -> None:
    assert method("memif", ["c-l2fwd", "rust-l2fwd"]) == "turns"
    assert method("veth", ["c-l2fwd", "xdp-tx"]) == "turns"


def test_each_is_started_for_its_window_where_that_was_asked_or_nothing_else_can_be() -> None:
    assert method("memif", ["c-l2fwd"], method="fresh") == "fresh"
    ports = {"generator_ports": ["ring:a"], "forwarder_ports": ["pci:0000:01:00.0"]}
    assert method("ports", ["c-l2fwd"], **ports) == "fresh"


# -- whether they compare as each does alone -------------------------------------------------------


def stood(block: int, arm: str, beside: float, alone: float) -> Trial:
    found = made_trial(
        experiment="overload", seed=1, block=block, position=0, role="measure", arm=arm,
        forwarder=arm, link="null", size=64, load="self-driven", started_at="2026-01-01T00:00:00",
    )  # fmt: skip
    found.method = "standing"
    found.outcome = Frames(duration_s=1.0, forwarder_rx=round(beside), alone_pps=alone)
    return found


def test_a_forwarder_that_compares_otherwise_alone_is_told_of() -> None:
    labels = ["c-l2fwd", "rust-l2fwd", "reflect"]
    trials = []
    for block in range(6):
        noise = 1 + 0.002 * (block % 3)
        trials += [
            stood(block, "c-l2fwd", 1e7, 1e7 * noise),
            stood(block, "rust-l2fwd", 1.1e7, 1.1e7),
            # It spins by the clock while others have the CPU.
            stood(block, "reflect", 0.7e7, 0.9e7),
        ]
    (told,) = disagreements(trials, labels)
    assert told.startswith("null 64 B: reflect does 0.700 times what c-l2fwd does where they")
    assert "0.89" in told
    assert "--method fresh" in told
    assert disagreements([], labels) == []
