# SPDX-License-Identifier: BSD-3-Clause
"""A simulated link of the kernel, for whole runs of experiment `paths`."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from simulated import Simulation, quiet
from trials import made_trial

from linerate.experiments.paths.options import PRESETS, Options
from linerate.experiments.paths.plan import NAME
from linerate.experiments.paths.runs import Found
from linerate.forwarders import FORWARDERS
from linerate.records.outcome import CpuTime, LatencyFigures
from linerate.records.trial import Process, Trial
from linerate.runs import session
from linerate.runs.experiment import Findings
from linerate.trial.link_setup import LinkSetup
from linerate.trial.trial import Bench, Plan

SENDER_PPS = 700e3


@dataclass(frozen=True)
class Way:
    """The properties of a path; `polls`: its process never sleeps."""

    capacity_pps: float
    process_ns: float
    napi_ns: float
    latency_us: float = 20.0
    polls: bool = False


WAYS = {
    "c-l2fwd": Way(350e3, 1000, 1500, 15, polls=True),
    "rust-l2fwd": Way(352e3, 1000, 1500, 15, polls=True),
    "af-packet-read-write": Way(200e3, 3000, 1600, 60),
    "xdp-redirect": Way(140e3, 0, 900, 8),
}


class Wire:
    """Replaces `Simulation.trial`. `lossy`: shares of frames lost at fixed loads, by arm."""

    def __init__(self, ways: dict[str, Way] | None = None) -> None:
        self.ways = {**WAYS, **(ways or {})}
        self.sender_pps = SENDER_PPS
        self.lossy: dict[str, float] = {}
        self.simulation: Simulation | None = None

    def install(self, simulation: Simulation) -> Wire:
        self.simulation = simulation
        simulation.trial = self.trial  # type: ignore[method-assign]
        return self

    def trial(self, bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
        assert self.simulation
        self.simulation.before(plan)
        way = self.ways[plan.arm.forwarder]
        size = setup.context.size
        source = random.Random(f"{size}:{plan.arm}:{plan.block}:{plan.load_share}")
        flood = plan.load == "flood"
        seconds = bench.window_s if flood else 0.1
        offered = self.sender_pps if flood else plan.pps or 0.0
        sent = round(offered * seconds)
        carried = min(sent, round(way.capacity_pps * seconds * source.gauss(1.0, 0.01)))
        carried -= round(sent * self.lossy.get(plan.arm.label, 0.0)) if not flood else 0
        napi_s = way.napi_ns * carried / 1e9
        # They share a core.
        process_s = seconds - napi_s if way.polls else way.process_ns * carried / 1e9
        found = made_trial(
            experiment=bench.experiment, seed=bench.seed, session=bench.session, block=plan.block,
            position=plan.position, role=plan.role, arm=plan.arm.label,
            forwarder=plan.arm.forwarder,
            described=FORWARDERS[plan.arm.forwarder].described(),
            link=setup.link.name, size=size, load=plan.load,
            load_share=plan.load_share, started_at="2026-01-01T00:00:00+00:00",
            duration_s=seconds, attempted=2 * sent if flood else sent, accepted=sent,
            refused=sent if flood else None, lost_at_ingress=0, late=0, intended=sent,
            received=carried, forwarder_rx=carried, forwarder_tx=carried, forwarder_drops=0,
            link_drops={"forwarder port 0 imissed": sent - carried} if sent > carried else {},
            unattributed=0, tsc_hz=2_450_000_000,
            processes=[
                Process(role="forwarder", argv=["prog", "<x>"], cpus=[1]),
                Process(role="generator", argv=["generator"], cpus=[0]),
                Process(role="forwarder-link", argv=["napi/f0"], cpus=[1]),
            ],
            cpu_time=[
                CpuTime(of="process", cpus=[1], seconds=process_s * source.gauss(1.0, 0.005)),
                CpuTime(
                    of="napi", cpus=[1],
                    seconds=napi_s * source.gauss(1.0, 0.005),
                ),
                CpuTime(of="softirq", cpus=[1], seconds=0.01),
            ],
        )  # fmt: skip
        if not flood:
            ns = way.latency_us * 1e3 * source.gauss(1.0, 0.01)
            found.frames.latency = LatencyFigures(
                count=carried, minimum_ns=ns / 2, mean_ns=ns, maximum_ns=20 * ns,
                quantiles_ns={"0.5": ns, "0.9": 2 * ns, "0.99": 4 * ns, "0.999": 10 * ns},
            )  # fmt: skip
        self.simulation.ran.append(found)
        return found


def options(**values: Any) -> dict[str, Any]:
    """Return three paths and the smallest number of blocks with verdicts, unless told otherwise."""
    asked: dict[str, Any] = {
        "forwarders": ["c-l2fwd", "af-packet-read-write", "xdp-redirect"], "blocks": 9,
    }  # fmt: skip
    given = asked | values
    return asdict(Options(preset=PRESETS[given.pop("preset", "quick")], **given))


def start(out: Path, **values: Any) -> Found:
    return _found(session.start(NAME, options(**values), out, quiet(), "linerate run paths"))


def resume(out: Path, console: Console | None = None) -> Found:
    return _found(session.resume(NAME, out, {}, console or quiet(), "linerate --resume"))


def _found(found: Findings) -> Found:
    assert isinstance(found, Found)
    return found
