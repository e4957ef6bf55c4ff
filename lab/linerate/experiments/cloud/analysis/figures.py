# SPDX-License-Identifier: BSD-3-Clause
"""The figures of each cell over its blocks, and the rate of each framework alone.

A block gives a cell one value of each figure, or none; a figure without any value is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from linerate.experiments.cloud.analysis.observations import loss, loss_at_ingress
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.analysis.work import COUNTERS, left, work_per_s
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import Place
from linerate.experiments.cloud.window import CloudWindow, CoreWindow, beside_of, levels_of
from linerate.records.cloud_summary import CloudCellFigures, OwnRate
from linerate.records.summary_figures import Quartiles
from linerate.records.trial import Trial
from linerate.runs.plans.quiet import last_cause
from linerate.trial.activity import FORWARDER
from linerate.verdict.arms import median_of, quartiles
from linerate.verdict.delays import latency_us

QUANTILES = ("0.5", "0.9", "0.99", "0.999")
# A cell without tenants, at the same framework, size, CPU and rate; and the setup.
_Without = tuple[str, int, str, float, tuple[int, int]]


# A rate this near to the NDR counts as the NDR.
_SAME = 0.999


def cells(windows: Windows, design: CloudDesign) -> list[CloudCellFigures]:
    """Return the figures of every measured cell, in the order of the design."""
    by_place: dict[Place, list[Trial]] = {place: [] for place in design.places}
    for place, trial in windows.measured:
        by_place.setdefault(place, []).append(trial)
    without = {
        _without(place, trial): trial.frames.received_pps
        for place, trial in windows.measured
        if trial.valid and not place.cell.tenants
    }
    return [_figures(place, each, windows, without) for place, each in by_place.items() if each]


def _without(place: Place, trial: Trial) -> _Without:
    return place.framework, place.size, place.cell.cpu, place.cell.rate, trial.pairing


def _figures(
    place: Place,
    trials: Sequence[Trial],
    windows: Windows,
    without: dict[_Without, float | None],
) -> CloudCellFigures:
    cell = place.cell
    valid = [trial for trial in trials if trial.valid]
    losses = [share for trial in valid if (share := loss(trial)) is not None]

    def left_of(trial: Trial) -> float | None:
        whole = without.get(_without(place, trial))
        return _over(trial.frames.received_pps, whole) if cell.tenants else None

    return CloudCellFigures(
        framework=place.framework,
        kind=cell.kind,
        load=cell.load,
        tenants=cell.tenants,
        cpu=cell.cpu,
        size=place.size,
        rate=cell.rate,
        trials=len(trials),
        invalid=len(trials) - len(valid),
        offered_pps=quartiles(
            _over(trial.frames.intended, trial.frames.duration_s) for trial in valid
        ),
        received_pps=quartiles(trial.frames.received_pps for trial in valid),
        left=quartiles(left_of(trial) for trial in valid),
        loss=quartiles(losses),
        lost_at_ingress=quartiles(loss_at_ingress(trial) for trial in valid),
        loss_free=losses.count(0) / len(losses) if losses else None,
        latency_us=_named(QUANTILES, lambda name: (latency_us(trial, name) for trial in valid)),
        forwarder_cpu=quartiles(_of(t, lambda w: w.forwarder_cpu_s) for t in valid),
        throttled=quartiles(_of(t, lambda w: w.forwarder_throttled_s) for t in valid),
        tenants_cpu=quartiles(_of(trial, _tenants_cpu) for trial in valid),
        steal=quartiles(_core(t, lambda core: core.steal_s) for t in valid),
        softirq=quartiles(_core(t, lambda core: core.softirq_s) for t in valid),
        switches_per_s=quartiles(_switches(trial) for trial in valid),
        cache_misses_per_s=quartiles(_core(t, lambda core: core.cache_misses) for t in valid),
        memory_bytes_per_s=quartiles(_core(t, lambda core: core.memory_bytes) for t in valid),
        work=_named(COUNTERS, lambda name: (work_per_s(trial, name) for trial in valid)),
        work_left=_named(COUNTERS, lambda name: (left(windows, trial, name) for trial in valid)),
    )


def _named(
    names: Iterable[str], values: Callable[[str], Iterable[float | None]]
) -> dict[str, Quartiles]:
    """Return the quartiles of the names that have values."""
    return {name: found for name in names if (found := quartiles(values(name)))}


def _over(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _of(trial: Trial, seconds: Callable[[CloudWindow], float | None]) -> float | None:
    """Return a share of control groups' time. Groups are read together with the core: just before
    and after the frames.
    """
    found = trial.outcome if isinstance(trial.outcome, CloudWindow) else None
    return _over(seconds(found), found.core.seconds) if found and found.core else None


def _core(trial: Trial, count: Callable[[CoreWindow], float | None]) -> float | None:
    found = beside_of(trial)
    core = found.core if found else None
    return _over(count(core), core.seconds) if core else None


def _tenants_cpu(window: CloudWindow) -> float | None:
    """Return the CPU time (s) of all tenants together; None if one of them is unknown."""
    every = [each.cpu_s for each in window.tenants]
    known = [each for each in every if each is not None]
    return sum(known) if known and len(known) == len(every) else None


def _switches(trial: Trial) -> float | None:
    process = next((each for each in trial.program.processes if each.role == FORWARDER), None)
    if process is None or process.voluntary_switches is None:
        return None
    return _over(
        process.voluntary_switches + (process.involuntary_switches or 0), trial.frames.duration_s
    )


# -- what each framework carries alone -----------------------------------------------------------


def own_rates(design: CloudDesign, trials: Sequence[Trial]) -> list[OwnRate]:
    """Return the rates from the records of cells. A resumed run may have searched for them
    again.
    """
    found = []
    labels = [arm.label for arm in design.arms if arm.label == arm.forwarder]
    sizes = {place.framework: dict[int, None]() for place in design.places}
    for place in design.places:
        sizes[place.framework][place.size] = None
    for framework in labels:
        for size in sizes.get(framework, {}):
            mine = [t for t in trials if (t.forwarder, t.cell.key[1]) == (framework, size)]
            found.append(_own_rate(framework, size, mine))
    return found


def _own_rate(framework: str, size: int, trials: Sequence[Trial]) -> OwnRate:
    mine = [t.request for t in trials if t.role == "measure" and levels_of(t)]
    known = {each.maximum_pps for each in mine if each.maximum_pps is not None}
    if not known:
        looked = [trial for trial in trials if trial.role in {"search", "self-test"}]
        note = "not looked for: the run ended before"
        if looked:
            why = last_cause(looked)
            note = "looked for and not found, or no cell was run"
            note += f"; the last window that was void: {why}" if why else ""
        return OwnRate(framework=framework, size=size, note=note)
    ndr = median_of({each.alone_pps for each in mine if each.alone_pps is not None})
    pps = median_of(known)
    notes = [f"the median of {len(known)} sessions' or runs'"] if len(known) > 1 else []
    if ndr is not None and pps is not None and pps < ndr * _SAME:
        notes.append("beside tenants the generator keeps no more than this share of every NDR")
    return OwnRate(framework=framework, size=size, pps=pps, ndr_pps=ndr, note="; ".join(notes))
