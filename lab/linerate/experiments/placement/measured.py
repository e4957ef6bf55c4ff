# SPDX-License-Identifier: BSD-3-Clause
"""Extract from a run's records the loads that each forwarder was offered, and their results.

A `Group` is one program in one setting, with its windows and searches. Runs are never combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linerate.host.machine import Machine
from linerate.links import Ports
from linerate.records.outcome import CpuPart, Frames
from linerate.records.run_file import Run, Session, made_of
from linerate.records.trial import Directions, Test, Trial
from linerate.records.types import Limiter
from linerate.runs.experiment import SearchedRate
from linerate.runs.kept.stored import Stored
from linerate.runs.provenance import conditions
from linerate.runs.registry import find
from linerate.runs.run_summary import Design
from linerate.trial.activity import FORWARDER
from linerate.verdict.delays import supported

# Tests whose windows say nothing about frames at one load: the rate changes, the probe affects
# every frame, or something else than the generator sends. Windows of a throughput search count by
# its result.
_OTHER_TESTS: tuple[Test, ...] = ("throughput", "back-to-back", "recovery", "spans", "ping")
# Self-tests, programs that are looked into, and trials without a forwarder.
_OTHER_ROLES = ("self-test", "probed", "alone")


# The memory, among the conditions of a setting beside those of the machine.
MEMORY = "memory"


@dataclass(frozen=True)
class Setting:
    """Where and how was measured. Figures of two settings are never combined.

    `conditions`: of the machine and its memory. `link`: with its tables, if it has some. `foreign`:
    another generator than the lab's sent.
    """

    conditions: tuple[tuple[str, str], ...]
    link: str
    devices: tuple[str, ...]
    directions: Directions
    ip: int
    beside: str
    foreign: bool

    def on(self, machine: Machine) -> bool:
        """Return True if the setting is of such a machine, with any memory."""
        mine = {name: value for name, value in self.conditions if name != MEMORY}
        return mine == conditions(machine)


@dataclass(frozen=True)
class Program:
    """A forwarder as it was measured: another build or definition is another program. `cores`: CPUs
    that it used; None: not recorded.
    """

    forwarder: str
    cores: int | None
    build: str | None
    definition: str | None


@dataclass(frozen=True)
class Window:
    """One load that a program was offered. `block`: as `Trial.pairing`.

    The load lies between `least_pps` and `most_pps`, which differ in a flood that was limited: the
    link accepted as much as the program left room for, which is not a paced load. `core_share`: CPU
    time of the program, and of the kernel threads that receive for it, over time.
    """

    block: tuple[int, int]
    least_pps: float
    most_pps: float
    loss_ratio: float
    quantiles_us: dict[str, float] | None
    core_share: float | None
    paced: bool


@dataclass(frozen=True)
class Begun:
    """Numbers of begun blocks, by their content."""

    searches: int = 0
    paced: int = 0
    floods: int = 0

    @staticmethod
    def of(trials: Sequence[Trial]) -> Begun:
        def blocks(wanted: Callable[[Trial], bool]) -> int:
            return len({trial.pairing for trial in trials if wanted(trial)})

        return Begun(
            searches=blocks(lambda trial: trial.role == "search"),
            paced=blocks(
                lambda t: t.request.load == "paced" and t.request.test not in _OTHER_TESTS
            ),
            floods=blocks(lambda trial: trial.request.load == "flood"),
        )


@dataclass
class Group:
    """One program in one cell of one run."""

    run: Stored
    setting: Setting
    program: Program
    size: int
    windows: list[Window] = field(default_factory=list)
    searched: list[SearchedRate] = field(default_factory=list)
    # From the run's own summary: if set, its greatest rates are not the program's.
    limited_by: Limiter | None = None
    # The number of begun blocks, including those without a valid window.
    begun: Begun = Begun()


def groups_of(run: Stored) -> list[Group]:
    """Return all programs, sizes and settings of a run; empty if it has no paced or flooded links.

    Raises `RunError` for a run that cannot be read.
    """
    with made_of(run.directory):
        experiment = find(run.run.experiment)
        design: Design = experiment.read_design(run.run.design)
        # Neither the reference peers nor the baseline's second label.
        arms = {arm.label for arm in design.arms if arm.label == arm.forwarder}
        trials: dict[tuple[object, ...], list[Trial]] = {}
        for trial in run.trials:
            if trial.arm in arms and _of_one_load(trial):
                key = (trial.cell.key, trial.cell.beside, trial.arm, *_sent(trial))
                trials.setdefault(key, []).append(trial)
        if not trials:
            return []
        told = experiment.told(run.run, run.trials)
        limits = {((each.link, each.size), each.arm): each.by for each in told.summary.limited_by}
        searched: dict[tuple[object, str], list[SearchedRate]] = {}
        for each in experiment.searched_rates(told):
            searched.setdefault((each.cell, each.arm), []).append(each)
        found = []
        for own in trials.values():
            place = own[0].cell.key, own[0].arm
            windows = [window for trial in own if (window := _window(trial))]
            if windows or place in searched:
                found.append(
                    Group(
                        run=run,
                        setting=_setting(run.run.sessions[0], own[0], design),
                        program=_program(run.run, own),
                        size=own[0].cell.key[1],
                        windows=windows,
                        searched=searched.get(place, []),
                        limited_by=limits.get(place),
                        begun=Begun.of(own),
                    )
                )
        return found


def _of_one_load(trial: Trial) -> bool:
    """Return True for a trial of one load, also of a search: program and setting are those of the
    trial.
    """
    return (
        (trial.has_frames or trial.outcome is None)
        and trial.role not in _OTHER_ROLES
        and trial.request.load in ("paced", "flood")
        and trial.request.protocol in (None, "udp")
    )


def _sent(trial: Trial) -> tuple[Directions, int]:
    """Return directions and IP version: both and IPv4, unless others were requested."""
    return trial.request.directions or "both", trial.request.ip or 4


def _setting(session: Session, trial: Trial, design: Design) -> Setting:
    machine = {**conditions(session.machine), MEMORY: session.memory}
    directions, ip = _sent(trial)
    return Setting(
        conditions=tuple(machine.items()),
        link=trial.cell.name,
        devices=(*design.generator_ports, *design.forwarder_ports)
        if trial.cell.name == Ports.name
        else (),
        directions=directions,
        ip=ip,
        beside=trial.cell.beside,
        foreign=design.foreign,
    )


def _program(run: Run, trials: Sequence[Trial]) -> Program:
    name, session = trials[0].forwarder, run.sessions[0]
    described = session.forwarders.get(name)
    return Program(
        forwarder=name,
        cores=_cores(trials),
        build=session.programs.get(name),
        definition=described.sha256 if described else None,
    )


def _cores(trials: Sequence[Trial]) -> int | None:
    """Return the CPUs of the program and of the kernel threads that receive for it: the most of a
    trial.
    """
    return max(len(_cpus(trial)) for trial in trials) or None


def _cpus(trial: Trial) -> set[int]:
    ran = [each.cpus for each in trial.program.processes if each.role == FORWARDER]
    paid = [each.cpus for each in trial.frames.cpu_time or ()]
    return {cpu for cpus in (*ran, *paid) for cpu in cpus}


def _core_share(frames: Frames) -> float | None:
    """Return the share of a core; without kernel threads of its own, they used no time."""
    known = {each.of for each in frames.cpu_time or ()}
    parts: list[CpuPart] = ["process", "napi"] if "napi" in known else ["process"]
    seconds = frames.cpu_seconds(*parts)
    return None if seconds is None or not frames.duration_s else seconds / frames.duration_s


def _window(trial: Trial) -> Window | None:
    """Return the window; None for an invalid trial, or one without counts."""
    frames, request = trial.frames, trial.request
    if not trial.valid or request.test in _OTHER_TESTS or request.then_pps is not None:
        return None
    paced = request.load == "paced"
    sent = frames.attempted if paced else frames.accepted
    if not sent or not frames.attempted or frames.received is None or not frames.duration_s:
        return None
    asked = request.pps if paced else None
    delays = frames.latency
    return Window(
        block=trial.pairing,
        # A late paced sender has no valid window, so the requested rate was sent.
        least_pps=asked or (0.0 if frames.refused else sent / frames.duration_s),
        most_pps=asked or frames.attempted / frames.duration_s,
        loss_ratio=(sent - frames.received) / sent,
        quantiles_us={
            name: ns / 1e3 for name, ns in supported(delays.quantiles_ns, delays.count).items()
        }
        if delays
        else None,
        core_share=_core_share(frames),
        paced=paced,
    )
