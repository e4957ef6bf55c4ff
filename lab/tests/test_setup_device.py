# SPDX-License-Identifier: BSD-3-Clause
"""The real setup's device: which windows count, which are repeated, and a search's results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from linerate.host.cores.cpus import Cores
from linerate.host.errors import DisturbedError, ProcessError, TrialError
from linerate.host.process import Command, RunDirectory
from linerate.host.sampler import Activity
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.records.cells import Arm
from linerate.records.outcome import LatencyFigures
from linerate.records.trial import Directions, Test, Trial
from linerate.traffic import books
from linerate.traffic.otg import Traffic, flow_name
from linerate.traffic.sender import Sender, Sent, Touched
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search import setup_device
from linerate.trial.search.replay import EndOfRecordsError, MismatchError, Replay
from linerate.trial.search.setup_device import Asked, SetupDevice, Terms
from linerate.trial.search.slices import cut
from linerate.trial.trial import Bench
from linerate.trial.window import Exchange

Script = Callable[[int, Traffic], Sent]


class Puppet(Sender):
    """Counts as a script says."""

    def __init__(self) -> None:
        self.traffic: list[Traffic] = []
        # By window: the disturbed frames of each flow.
        self.disturbed: list[dict[str, Touched]] = []

    def configure(self, traffic: Traffic) -> None:
        self.traffic.append(traffic)

    def links_up(self) -> bool:
        return True

    def sent(self) -> Sent:
        raise AssertionError

    def latency(self) -> LatencyFigures | None:
        return LatencyFigures(
            count=9, minimum_ns=1000, mean_ns=2000, maximum_ns=9000, quantiles_ns={"0.5": 1500}
        )

    def received_by_flow(self) -> dict[str, int]:
        traffic = self.traffic[-1]
        frames = [traffic.frames or 0, *(each.frames for each in traffic.slices)]
        return {flow_name(0, part): count for part, count in enumerate(frames)}

    def disturbed_by_flow(self) -> dict[str, Touched]:
        return self.disturbed.pop(0)

    def close(self) -> None:
        pass


class Looks:
    """Records when the probe was to measure."""

    def __init__(self) -> None:
        self.probed = False
        self.asked: list[bool] = []

    def look(self, wanted: bool) -> None:
        self.asked.append(wanted)
        self.probed = wanted


class Stage:
    """A device with scripted windows; counts how often its forwarder was started."""

    def __init__(
        self, script: Script, *, windows: int = 4, ports: int = 1, one: bool = False
    ) -> None:
        self.records: list[Trial] = []
        self.starts = 0
        self.puppet = Puppet()
        self.polls = Looks()
        self.ran_s = 0.0
        self.waited_s = 0.0
        self.count = 0
        stage = self
        names = tuple(f"here{n}" for n in range(ports))

        class FakeSetup(LinkSetup):
            def ready(self) -> tuple[Wire, Sender]:
                return Wire(vdevs=names, locations=names), stage.puppet

        def run(trial: Trial, seconds: float, *, rest_s: float = 0.0) -> None:
            stage.count += 1
            stage.ran_s += seconds
            sent = script(stage.count, stage.puppet.traffic[-1])
            books.enter(trial, sent, books.Forwarded(sent.received, sent.received))

        class Device(SetupDevice):
            def _start(self) -> None:
                stage.starts += 1
                child = SimpleNamespace(
                    command=Command("forwarder", ("prog",), (1,)),
                    activity=lambda: Activity(
                        0, 0, stage.ran_s, stage.waited_s, {1: (stage.ran_s, stage.waited_s)}
                    ),
                )
                self._exchange = cast(
                    Exchange,
                    SimpleNamespace(
                        running=SimpleNamespace(children=(child,), telemetry=None),
                        sender=stage.puppet,
                        run=run,
                        alive=lambda: None,
                        polls=stage.polls,
                    ),
                )

        directions: Directions = "one" if one else "both"
        bench = Bench(
            run=cast(RunDirectory, SimpleNamespace(owns=lambda _: True)),
            cores=Cores(0, 1, shared_core=False),
            memory=Memory(hugepages=False), experiment="rfc2544", seed=1, window_s=0.3,
            directions=directions,
        )  # fmt: skip
        setup = FakeSetup(
            link("memif" if ports == 1 else "memif2"), LinkContext(Path("/nonexistent"), 64)
        )
        self.device = Device(
            bench, setup, Arm("rust-l2fwd", "rust-l2fwd"), block=3, max_pps=1e6,
            terms=Terms(windows=windows), record=self.records.append,
        )  # fmt: skip


def counted(frames: int, *, received: int | None = None, late: int = 0, ingress: int = 0) -> Sent:
    arrived = frames - ingress if received is None else received
    return Sent(
        accepted=frames - ingress, received=arrived, seconds=0.1, intended=frames,
        attempted=frames, lost_at_ingress=ingress, refused=0, late=late,
    )  # fmt: skip


def test_the_kind_of_frames_is_sent_and_recorded() -> None:
    stage = Stage(lambda _, traffic: counted(round((traffic.pps or 0) * traffic.seconds)))
    with stage.device as device:
        device.send(1e5, 0.1)
        device.protocol = "arp"
        device.send(1e5, 0.1)
    assert [traffic.protocol for traffic in stage.puppet.traffic] == ["udp", "arp"]
    assert [trial.request.protocol for trial in stage.records] == [None, "arp"]


def test_the_forwarder_runs_on_from_trial_to_trial() -> None:
    stage = Stage(lambda _, traffic: counted(round((traffic.pps or 0) * traffic.seconds)))
    with stage.device as device:
        first = device.send(1e5, 0.1)
        second = device.send(2e5, 0.1, latency=True)
    assert (first.intended, first.lost, first.latency) == (10_000, 0, None)
    assert second.latency is not None
    assert second.latency.quantiles == {0.5: pytest.approx(1.5e-6)}
    assert stage.starts == 1
    assert [(t.identity.start, t.identity.slot) for t in stage.records] == [(0, 0), (0, 0)]
    assert [trial.frames.latency is None for trial in stage.records] == [True, False]
    assert [trial.request.load_share for trial in stage.records] == [0.1, 0.2]


def test_loss_at_the_ingress_is_loss() -> None:
    outcome = Stage(lambda _, __: counted(1000, ingress=40)).device.send(1e4, 0.1)
    assert (outcome.intended, outcome.received, outcome.lost) == (1000, 960, 40)


def test_late_windows_are_void_recorded_and_repeated() -> None:
    stage = Stage(lambda count, _: counted(10_000, late=11 if count < 3 else 10))
    outcome = stage.device.send(1e5, 0.1)
    assert outcome.lost == 0
    assert [(t.request.attempt, t.invalid_code) for t in stage.records] == [
        (1, "late"), (2, "late"), (3, None),
    ]  # fmt: skip
    assert stage.starts == 1


def test_loss_is_never_a_reason_to_repeat() -> None:
    stage = Stage(lambda _, __: counted(10_000, received=1))
    assert stage.device.send(1e5, 0.1).lost == 9999
    assert len(stage.records) == 1


def test_a_search_sees_what_was_not_disturbed() -> None:
    stage = Stage(
        lambda _, __: replace(
            counted(10_000, received=9_900, late=400), disturbed=2_000, disturbed_lost=99
        )
    )
    outcome = stage.device.send(1e5, 0.1)
    assert (outcome.intended, outcome.received, outcome.lost) == (8_000, 7_999, 1)
    assert len(stage.records) == 1


def test_after_each_void_window_the_next_one_waits_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(setup_device, "pause", waited.append)
    stage = Stage(lambda count, _: counted(10_000, late=5000 if count < 4 else 0))
    stage.device.terms = Terms(windows=5, patience_s=0.5)
    stage.device.send(1e5, 0.1)
    assert waited == [0.0, 0.5, 1.0, 2.0]
    # The next trial starts again.
    stage.device.send(1e5, 0.1)
    assert waited[4:] == [0.0]


def test_when_no_window_is_quiet_there_is_an_error_and_no_figure() -> None:
    stage = Stage(lambda _, __: counted(10_000, late=5000), windows=4)
    with pytest.raises(DisturbedError, match="4 windows"):
        stage.device.send(1e5, 0.1)
    assert len(stage.records) == 4


def test_a_change_of_rate_is_void_when_most_of_one_rate_was_disturbed() -> None:
    stage = Stage(lambda _, __: counted(20_000))
    stage.device.test = "recovery"
    slices, after = cut(0.1, 1e5, 0.1), 10_000
    names = [flow_name(0, part) for part in range(len(slices) + 1)]
    none = dict.fromkeys(names, Touched(0, 0))
    stage.puppet.disturbed = [
        none | {names[0]: Touched(6000, 0)},
        none | {names[-1]: Touched(999, 9), names[-2]: Touched(5001 - 999, 0)},
        none | {names[0]: Touched(5000, 3)},
    ]
    found = stage.device.change(1e5, 0.1, 1e5, 0.1)
    assert [trial.invalid_code for trial in stage.records] == ["late", "late", None]
    assert "before the change" in (stage.records[0].invalid_why or "")
    assert "after the change" in (stage.records[1].invalid_why or "")
    assert (found.before.intended, found.after.intended) == (5000, after)


def test_bursts_and_changes_of_rate_may_have_fewer_windows() -> None:
    terms = Terms(windows=12, burst_windows=6)
    asked = [Asked(1e5, 1.0), Asked.burst(64, 1e6), Asked(1e5, 1.0, then=(5e4, 1.0))]
    assert [terms.windows_for(each) for each in asked] == [12, 6, 6]
    assert [Terms(windows=3).windows_for(each) for each in asked] == [3, 3, 3]


def test_a_starved_forwarder_voids_the_window() -> None:
    def script(count: int, _: Traffic) -> Sent:
        stage.waited_s += 0.1 if count == 1 else 0.0
        return counted(10_000)

    stage = Stage(script)
    stage.device.send(1e5, 0.1)
    assert [trial.invalid_code for trial in stage.records] == ["starved", None]


def test_a_forwarder_that_ended_is_started_anew_for_the_next_trial() -> None:
    def script(count: int, _: Traffic) -> Sent:
        if count == 1:
            raise ProcessError("forwarder was killed by signal 9")
        return counted(10_000)

    stage = Stage(script)
    with pytest.raises(TrialError, match="killed") as caught:
        stage.device.send(1e5, 0.1)
    assert caught.value.code == "ended"
    assert stage.device.send(1e5, 0.1).lost == 0
    assert stage.starts == 2
    assert [(t.identity.start, t.identity.slot) for t in stage.records] == [(0, 0), (1, 1)]


@pytest.mark.parametrize("probe", [True, False])
def test_the_probe_looks_at_nothing_but_core_use(probe: bool) -> None:
    stage = Stage(lambda _, __: counted(10_000))
    stage.device.probe = probe
    tests: tuple[Test, ...] = ("throughput", "core-use", "latency")
    for test in tests:
        stage.device.test = test
        stage.device.send(1e5, 0.1)
    assert stage.polls.asked == ([False, True, False] if probe else [])
    assert [trial.program.probe for trial in stage.records] == [False, probe, False]


@pytest.mark.parametrize("broken", [False, True])
def test_a_program_that_ends_with_the_probe_is_started_without(
    broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []

    def launch(_: SetupDevice, *__: object, probe: bool) -> None:
        started.append(probe)
        if probe or broken:
            raise ProcessError("EAL: libexample.so: undefined symbol")

    monkeypatch.setattr(SetupDevice, "_launch", launch)
    device = Stage(lambda _, __: counted(1)).device
    device.probe = True
    if broken:
        # The probe was not the cause.
        with pytest.raises(ProcessError):
            SetupDevice._start(device)
    else:
        SetupDevice._start(device)
    assert started == [True, False]
    assert device.probe == broken


def test_bursts_are_counted_frames_at_the_maximum() -> None:
    stage = Stage(lambda _, traffic: counted((traffic.frames or 0) * 2), ports=2)
    outcome = stage.device.burst(500)
    assert outcome.intended == 500
    traffic = stage.puppet.traffic[-1]
    assert (traffic.frames, traffic.pps, traffic.senders) == (250, 5e5, 2)
    assert (stage.records[0].request.load, stage.records[0].request.frames) == ("burst", 500)


def test_one_direction_sends_all_from_the_first_port() -> None:
    stage = Stage(lambda _, __: counted(1000), ports=2, one=True)
    stage.device.send(1e5, 0.01)
    traffic = stage.puppet.traffic[-1]
    assert (traffic.senders, traffic.pps, len(traffic.locations)) == (1, 1e5, 2)
    assert stage.records[0].request.directions == "one"


# -- and the same from its records ----------------------------------------------------------------


def search(device: Any) -> list[object]:
    device.test = "throughput"
    found: list[object] = [device.send(1e5, 0.1, latency=True)]
    for _ in range(2):
        try:
            found.append(device.send(2e5, 0.1))
        except TrialError as error:
            found.append(error.code)
    device.test = "back-to-back"
    found.append(device.burst(64))
    return found


def test_a_replay_gives_the_same_answers() -> None:
    def script(count: int, traffic: Traffic) -> Sent:
        # Trials: one void window; all void; one void, one sound; a burst.
        late = 0 if count in (2, 8, 9) else 9999
        return counted(traffic.frames or 10_000, late=late)

    stage = Stage(script, windows=5)
    live = search(stage.device)
    assert [each if isinstance(each, str) else "" for each in live] == ["", "late", "", ""]
    replay = Replay(stage.records, 1e6)
    assert search(replay) == live
    assert replay.left == 0
    with pytest.raises(EndOfRecordsError):
        replay.burst(64)


def test_a_replay_of_another_procedure_is_found_out() -> None:
    stage = Stage(lambda _, __: counted(10_000))
    stage.device.send(1e5, 0.1)
    with pytest.raises(MismatchError):
        Replay(stage.records, 1e6).send(1.1e5, 0.1)
    with pytest.raises(MismatchError):
        Replay(stage.records, 1e6).burst(100)
    other = Replay(stage.records, 1e6)
    other.test = "loss"
    with pytest.raises(MismatchError):
        other.send(1e5, 0.1)
