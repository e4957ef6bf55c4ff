# SPDX-License-Identifier: BSD-3-Clause
"""Records of whole runs of experiment `cloud` with known effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from trials import changed, made_trial

from linerate.experiments.cloud.design.design import QUESTION, CloudDesign
from linerate.experiments.cloud.design.levels import NOBODY, WORK_OF, Place
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.design.plan import order
from linerate.experiments.cloud.window import (
    CloudCell,
    CloudTrialCell,
    CloudWindow,
    CoreWindow,
    TenantsAlone,
    TenantWindow,
    beside_of,
    levels_of,
)
from linerate.forwarders import FORWARDERS
from linerate.host.machine import Machine
from linerate.records.cells import AA_SUFFIX, Arm, Cell
from linerate.records.outcome import LatencyFigures
from linerate.records.trial import Process, Trial
from linerate.runs.plans.blocks import arms
from linerate.runs.run_summary import Setup

DPDK, XDP = "c-l2fwd", "xdp-tx"
# The planted effects: by levels, which must all be those of a cell, a summand.
Effects = Mapping[tuple[tuple[str, str], ...], float]
_OWN_PPS = {DPDK: 400e3, XDP: 500e3}
SAME_PPS = {DPDK: 400e3, XDP: 400e3}
_WINDOW_S = 1.0

PART = Part(
    name="all",
    frameworks=(DPDK, XDP),
    kinds=("container",),
    loads=("idle", "cpu", "network"),
    tenants=(2,),
    cpus=("shared",),
    sizes=(64, 1518),
    rates=(0.9,),
)


@dataclass(frozen=True)
class Truth:
    """Summands on the log scale of throughput, latency and work; of loss, of a latent share, of
    which what is above 0 is lost. `spread` is the standard deviation of the noise of all logs, and
    `block_spread` that of what a block has alike; of the latent share `loss_spread` is.

    `again`: what the control's second label adds to each log.
    """

    throughput: Effects = field(default_factory=dict)
    loss: Effects = field(default_factory=dict)
    latency: Effects = field(default_factory=dict)
    work: Effects = field(default_factory=dict)
    spread: float = 0.02
    block_spread: float = 0.1
    loss_spread: float = 0.01
    loss_at: float = 0.0
    again: float = 0.0
    own_pps: Mapping[str, float] = field(default_factory=lambda: _OWN_PPS)


CALM = Truth()


def design(*parts: Part, blocks: int = 10, control: bool = True, seed: int = 1) -> CloudDesign:
    """Return a design of these parts, or of `PART`."""
    chosen = list(parts) or [PART]
    frameworks = list(dict.fromkeys(name for part in chosen for name in part.frameworks))
    sizes = list(dict.fromkeys(size for part in chosen for size in part.sizes))
    taking_part: list[Arm] = [
        arm for arm in arms(frameworks) if control or arm.label == arm.forwarder
    ]
    return CloudDesign(
        question=QUESTION,
        preset="quick",
        preset_note="a test",
        seed=seed,
        window_s=_WINDOW_S,
        cells=[Cell("veth", size, blocks) for size in sizes],
        arms=taking_part,
        parts=chosen,
        blocks=blocks,
        control=control,
    )


def setup(asked: CloudDesign) -> Setup:
    return Setup(
        experiment="cloud",
        question=asked.question,
        preset=asked.preset,
        preset_note=asked.preset_note,
        command="linerate run cloud",
        seed=asked.seed,
        window_s=asked.window_s,
        started_at="2026-01-01T00:00:00+00:00",
        finished_at="2026-01-01T00:10:00+00:00",
        cells=asked.cells,
        arms=asked.arms,
        machine=Machine(
            cpu_count=2, cpus_allowed=[0, 1], cpu_flags_tsc=[], numa_nodes=1, hugepages=[],
            kernel="6", python="3.11",
        ),
        versions={"linerate": "0"},
    )  # fmt: skip


def summand(effects: Effects, place: Place) -> float:
    return sum(
        value
        for levels, value in effects.items()
        if all(place.level(factor) == level for factor, level in levels)
    )


def records(asked: CloudDesign, truth: Truth = CALM, seed: int = 1) -> list[Trial]:
    """Return every window of a run without failures, in order."""
    return list(_records(asked, truth, np.random.default_rng(seed)))


def _records(asked: CloudDesign, truth: Truth, source: np.random.Generator) -> Iterator[Trial]:
    position = 0
    for block, places in enumerate(order(asked)):
        shared = source.normal(0, truth.block_spread)
        for place in places:
            yield trial_of(asked.seed, truth, place, (block, position), shared, source)
            position += 1


def trial_of(  # noqa: PLR0917
    seed: int,
    truth: Truth,
    place: Place,
    at: tuple[int, int],
    shared: float,
    source: np.random.Generator,
) -> Trial:
    """Return the record of a cell at `at`: block and position.

    `shared`: noise common to the block.
    """
    framework = place.framework.removesuffix(AA_SUFFIX)
    nobody = framework == NOBODY
    found = made_trial(
        experiment="cloud",
        seed=seed,
        block=at[0],
        position=at[1],
        role="alone" if nobody else "measure",
        arm=place.framework,
        forwarder=framework,
        described=known.described() if (known := FORWARDERS.get(framework)) else None,
        link="veth",
        size=place.size,
        load="self-driven" if nobody else "paced",
        started_at="2026-01-01T00:00:00+00:00",
    )
    true = Place(framework, place.size, place.cell)
    again = truth.again if place.framework != framework else 0.0
    # Noise of throughput, latency and work.
    noise = source.normal(0, truth.spread, 3) + shared + again
    latent = source.normal(0, truth.loss_spread) + truth.loss_at + again
    found.cell = CloudTrialCell(link="veth", size=place.size, levels=place.cell)
    tenants = _tenants(place, noise[2] + summand(truth.work, true))
    if nobody:
        found.outcome = TenantsAlone(tenants=tenants)
        return found
    window = CloudWindow(tenants=tenants)
    found.outcome = window
    own = truth.own_pps.get(framework, 300e3)
    rate = place.cell.rate * own * float(np.exp(noise[0] + summand(truth.throughput, true)))
    lost = min(max(0.0, latent + summand(truth.loss, true)), 1.0)
    found.frames.duration_s = _WINDOW_S
    found.frames.received = round(rate * 100)
    found.frames.intended = found.frames.attempted = (
        round(found.frames.received / (1 - lost)) if lost < 1 else 10**6
    )
    found.frames.received = found.frames.received if lost < 1 else 0
    found.frames.lost_at_ingress = (found.frames.intended - found.frames.received) // 2
    found.frames.accepted = found.frames.attempted - found.frames.lost_at_ingress
    found.frames.duration_s = 100 * _WINDOW_S
    median = 20e3 * float(np.exp(noise[1] + summand(truth.latency, true)))
    found.frames.latency = LatencyFigures(
        count=10_000,
        minimum_ns=median / 2,
        mean_ns=median,
        maximum_ns=9 * median,
        quantiles_ns={"0.5": median, "0.9": 2 * median, "0.99": 3 * median, "0.999": 8 * median},
    )
    found.program.processes = [
        Process(
            role="forwarder", argv=["l2fwd"], cpus=[1], voluntary_switches=100,
            involuntary_switches=300,
        )
    ]  # fmt: skip
    found.request.maximum_pps = own
    # The core's times are read a little before and after the frames.
    window.forwarder_cpu_s = 52.5
    window.core = CoreWindow(cpu=1, seconds=105, busy_s=99, softirq_s=10.5, steal_s=1.05)
    return found


def _tenants(place: Place, log: float) -> list[TenantWindow]:
    cell = place.cell
    work = round(1e7 * float(np.exp(log)))
    done = dict.fromkeys(WORK_OF.get(cell.load, ()), work)
    return [
        TenantWindow(name=f"t{number}", seconds=10, cpu_s=21, **done)
        for number in range(cell.tenants)
    ]


def split(trials: list[Trial], block: int) -> list[Trial]:
    """Return the records of a run that was interrupted in the middle of a block and resumed."""
    mine = [trial.position for trial in trials if trial.block == block]
    middle = mine[len(mine) // 2]
    return [changed(trial, session=2 if trial.position >= middle else 1) for trial in trials]


def levels(trial: Trial) -> CloudCell:
    """Levels of the cell."""
    found = levels_of(trial)
    assert found
    return found


def work_beside(trial: Trial) -> CloudWindow | TenantsAlone:
    """Its tenants and core."""
    found = beside_of(trial)
    assert found
    return found


def window(trial: Trial) -> CloudWindow:
    """Its window, with a forwarder."""
    assert isinstance(trial.outcome, CloudWindow)
    return trial.outcome


def void(trial: Trial, why: str = "the sender was late") -> Trial:
    found = trial.model_copy(deep=True)
    found.reject("late", why)
    return found


def with_part(**levels: object) -> Part:
    return replace(PART, **levels)  # type: ignore[arg-type]
