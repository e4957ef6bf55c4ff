# SPDX-License-Identifier: BSD-3-Clause
"""Made-up summaries of experiment `cloud`, of several shapes, and trials for them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from trials import made_trial

from linerate.experiments.cloud.design.design import places_of
from linerate.experiments.cloud.design.levels import Place, in_order
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.page.places import link_to
from linerate.experiments.cloud.window import (
    CloudCell,
    CloudTrialCell,
    CloudWindow,
    CoreWindow,
    TenantsAlone,
)
from linerate.host.machine import Machine
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import (
    CloudAnswers,
    CloudCellFigures,
    NotRun,
    OwnRate,
    TakeawayEntry,
)
from linerate.records.summary import Summary
from linerate.records.summary_figures import Quartiles
from linerate.records.trial import Process, Trial

FRAMEWORKS = ("c-l2fwd", "rust-l2fwd", "af-xdp", "xdp-tx")
MAIN = Part(
    name="neighbours", frameworks=FRAMEWORKS, kinds=("container",),
    loads=("idle", "cpu", "io", "network"), tenants=(0, 1, 2, 4), cpus=("shared",),
    sizes=(64, 1518), rates=(0.9,),
)  # fmt: skip
RATES = Part(
    name="rates", frameworks=FRAMEWORKS, kinds=("container",), loads=("idle", "network"),
    tenants=(0, 2), cpus=("shared",), sizes=(64,), rates=(0.1, 0.25, 0.5, 0.75, 0.9, 1.2),
)  # fmt: skip
SHARES = Part(
    name="cpu-share", frameworks=FRAMEWORKS, kinds=("container",), loads=("idle", "cpu"),
    tenants=(2,), cpus=("shared", "quota-25", "quota-50"), sizes=(64,), rates=(0.9,),
)  # fmt: skip
KINDS = Part(
    name="kinds", frameworks=FRAMEWORKS, kinds=("container", "vm"),
    loads=("idle", "cpu", "network"), tenants=(1,), cpus=("shared",), sizes=(64,), rates=(0.9,),
)  # fmt: skip
SMALL = Part(
    name="small", frameworks=("xdp-tx",), kinds=("container",), loads=("cpu",), tenants=(0, 1),
    cpus=("shared",), sizes=(64,), rates=(0.9,),
)  # fmt: skip
# `replaced(part, cpus=...)`.
replaced = dataclasses.replace
# The share of the throughput that a tenant with this load takes away.
_TAKES = {"none": 0.0, "idle": 0.01, "cpu": 0.2, "io": 0.08, "network": 0.3, "mixed": 0.25}
_WORK = {
    "cpu": ("bogo_ops",),
    "io": ("io_operations", "io_bytes"),
    "network": ("network_bytes",),
}


def around(median: float, spread: float = 0.02, n: int = 12) -> Quartiles:
    return Quartiles(
        n=n,
        median=median,
        q1=median * (1 - spread),
        q3=median * (1 + spread),
        low=median * (1 - 2 * spread),
        high=median * (1 + 2 * spread),
    )


def figures(place: Place, *, latency: bool = True, blocks: int = 12) -> CloudCellFigures:
    """Figures as neighbours might cause them, with some noise."""
    cell = place.cell
    source = random.Random(repr(place))
    base = {"c-l2fwd": 300e3, "rust-l2fwd": 310e3, "af-xdp": 250e3, "xdp-tx": 480e3}.get(
        place.framework.removesuffix(AA_SUFFIX), 200e3
    )
    takes = _TAKES[cell.load] * (1.3 if place.size == 64 else 0.7) * source.gauss(1, 0.05)
    left = 1 / (1 + takes * cell.tenants)
    if cell.cpu.startswith("quota-"):
        left *= int(cell.cpu[6:]) / 100
    received = base * min(cell.rate, 1.0) * left
    work = {
        kind: around(1e5 * (cell.tenants or 1) * source.gauss(1, 0.1))
        for kind in _WORK.get(cell.load, ())
    }
    return CloudCellFigures(
        framework=place.framework, kind=cell.kind, load=cell.load, tenants=cell.tenants,
        cpu=cell.cpu, size=place.size, rate=cell.rate, trials=blocks, invalid=0,
        offered_pps=around(base * cell.rate, 0.0), received_pps=around(received),
        left=around(left) if cell.tenants else None,
        loss=around(1 - received / base / cell.rate, 0.05),
        lost_at_ingress=around(0.3 * (1 - received / base / cell.rate), 0.05),
        loss_free=0.75 if not cell.tenants else 0.0,
        latency_us={
            "0.5": around(20 + 300 * takes), "0.99": around(80 + 9000 * takes * cell.tenants),
        } if latency else {},
        forwarder_cpu=around(0.95 * left),
        throttled=around(0.4) if cell.cpu.startswith("quota-") else None,
        tenants_cpu=around(0.95 * (1 - left)) if cell.tenants else None,
        steal=around(0.013), softirq=around(0.06 + 0.2 * takes), switches_per_s=around(1234.0),
        cache_misses_per_s=around(2.5e6) if cell.load == "io" else None,
        work=work, work_left={kind: around(0.6 * left) for kind in work},
    )  # fmt: skip


def takeaway(
    statement: str, metric: str, about: Sequence[str], verdict: str = "held", **values: object
) -> TakeawayEntry:
    given: dict[str, object] = {
        "origin": "study", "statement": statement, "metric": metric, "about": list(about),
        "test": "permutation within blocks and cells of the other factors", "p": 0.0005,
        "measure": "ratio", "effect": 0.613, "low": 0.601, "high": 0.634,
        "compared": f"{about[0]} one against another", "detectable": 0.021, "verdict": verdict,
        "reason": "p 0.0005; the effect shown is the largest of 12",
        "chart": link_to(metric, about),
    }  # fmt: skip
    return TakeawayEntry.model_validate(given | values)


def study() -> list[TakeawayEntry]:
    return [
        takeaway("packet size matters for left", "left", ["size"]),
        takeaway("the kind of load matters for left", "left", ["load"]),
        takeaway(
            "network load with small packets is worst in loss", "loss", ["load", "size"], "held",
            measure="difference", effect=0.21, low=0.18, high=0.23, detectable=0.01,
        ),
        takeaway(
            "DPDK and XDP differ in throughput", "throughput", ["framework"], "not held",
            reason="all 12 comparisons lie inside +-2 %", effect=1.004, low=0.997, high=1.009,
        ),
        takeaway(
            "packet size matters for loss", "loss", ["size"], "undecided", p=None, effect=None,
            low=None, high=None, compared="", detectable=None,
            reason="the design has no <size> & co",
        ),
    ]  # fmt: skip


def tested() -> list[TakeawayEntry]:
    found = []
    for metric, about in (
        ("throughput", ["framework", "load"]),
        ("left", ["framework", "load", "size"]),
        ("left", ["load", "tenants"]),
        ("loss", ["tenants"]),
        ("latency_p99_us", ["load", "tenants"]),
        ("latency_p99_us", ["framework", "load"]),
        ("loss", ["cpu", "load"]),
        ("left", ["kind", "load"]),
        ("work_left", ["framework", "load"]),
        ("loss", ["load", "rate"]),
    ):
        words = " and ".join(about)
        found.append(
            takeaway(
                f"{words} {'interact' if len(about) > 1 else 'matters'} for {metric}",
                metric, about,
                "undecided" if metric == "work_left" else "held", origin="tested",
                measure="partial eta squared", effect=0.42, low=0.31, high=0.55, compared="",
                reason="Holm's p over 28 effects is 0.0140",
            )
        )  # fmt: skip
    return found


def summary(
    parts: Sequence[Part],
    *,
    control: bool = True,
    latency: bool = True,
    blocks: int = 12,
    takeaways: Sequence[TakeawayEntry] = (),
    cells: Sequence[CloudCellFigures] | None = None,
    not_run: Sequence[NotRun] = (),
    warnings: Sequence[str] = (),
) -> Summary:
    """Return a summary of all cells of these parts, or of `cells`."""
    reference = parts[0].frameworks[0]
    places = places_of(parts, reference if control else None)
    if cells is None:
        cells = [figures(place, latency=latency, blocks=blocks) for place in places]
    has_vm = any(place.cell.kind == "vm" for place in places)
    return Summary(
        experiment="cloud",
        question="What becomes of each path to packets, and of its neighbours, when tenants load "
        "the core that they share?",
        preset="quick", preset_note="a test", command="linerate run cloud", seed=1, window_s=1.0,
        started_at="2026-11-24T10:00:00+00:00", finished_at="2026-11-24T11:00:00+00:00",
        interrupted=False, trials=len(places) * blocks, invalid_trials=0, invalid_reasons=[],
        comparisons=[], aa=[], books_closed=True, books_checked=len(places) * blocks,
        limited_by=[], cells=[],
        machine=Machine(
            cpu_count=2, cpus_allowed=[0, 1], cpu_flags_tsc=["constant_tsc"], numa_nodes=1,
            kernel="6.1", hugepages=[], python="3.11",
        ),
        versions={"linerate": "0.1.0"}, takeaways=list(takeaways), warnings=list(warnings),
        cloud=CloudAnswers(
            factors={
                factor: in_order(factor, [place.level(factor) for place in places])
                for factor in ("load", "tenants", "size")
            },
            reference=reference,
            control=[
                takeaway(
                    f"{reference} differs from itself in throughput", "throughput", ["framework"],
                    "not held", origin="tested", effect=1.001, low=0.995, high=1.006, p=0.71,
                    compared=f"{reference}{AA_SUFFIX} against {reference}",
                    reason="the interval lies inside +-2 %",
                )
            ] if control else [],
            own_rates=[
                OwnRate(framework=name, size=size, pps=None if name == "af-xdp" else 310_500.0,
                        ndr_pps=None if name == "af-xdp" else 320_500.0,
                        note="the search found no rate" if name == "af-xdp" else "")
                for name in parts[0].frameworks for size in parts[0].sizes
            ],
            cells=list(cells), not_run=list(not_run), estimated_s=3500.0, took_s=3712.0,
            accelerator="TCG: /dev/kvm is not there" if has_vm else None,
            isolation=["each tenant in a control group, network and mount namespaces of its own"],
        ),
    )  # fmt: skip


NOT_RUN = (
    NotRun(
        what="part cpu-share: a core of the forwarder's own beside tenants",
        reason="this machine has two CPUs for the lab, one of them the generator's",
        cells=12,
        trials=0,
    ),
    NotRun(what="block 12", reason="the budget of 60 minutes was over", cells=8, trials=96),
)


def full() -> Summary:
    return summary(
        [MAIN, RATES, SHARES, KINDS],
        takeaways=[*study(), *tested()],
        not_run=NOT_RUN,
        warnings=["others had the <CPU>"],
    )


def tiny() -> Summary:
    """Return one framework and one block, without an interval, latency, control or answer."""
    cells = []
    for place in places_of([SMALL], None):
        found = figures(place, latency=False, blocks=1)
        alone = Quartiles(n=1, median=0.5, q1=0.5, q3=0.5)
        cells.append(found.model_copy(update={"left": alone, "loss": alone}))
    return summary([SMALL], control=False, blocks=1, cells=cells)


def nothing_valid() -> Summary:
    """Return cells without figures, and takeaways about them."""
    cells = [
        CloudCellFigures(
            framework=place.framework, kind=place.cell.kind, load=place.cell.load,
            tenants=place.cell.tenants, cpu=place.cell.cpu, size=place.size, rate=place.cell.rate,
            trials=1, invalid=1,
        )
        for place in places_of([SMALL], None)
    ]  # fmt: skip
    return summary([SMALL], control=False, cells=cells, takeaways=study())


def trials() -> list[Trial]:
    """Return a trial with a forwarder and its tenants, one of the tenants alone, and one of a
    search.
    """
    cell = CloudCell(kind="container", load="network", tenants=2, cpu="shared", rate=0.9)
    core = CoreWindow(cpu=1, seconds=1.0, busy_s=0.9, softirq_s=0.1, steal_s=0.01)
    return [
        made_trial(
            experiment="cloud", seed=1, block=0, position=position, role=role, arm=arm,
            forwarder=arm, link="veth", size=64, load="paced", started_at="",
            processes=[
                *([Process(role="forwarder", argv=["prog", "<x>"], cpus=[1])]
                  if role != "alone" else []),
                Process(role="generator", argv=["generator"], cpus=[0]),
            ],
            **({} if role == "search" else {
                "cell": CloudTrialCell(link="veth", size=64, levels=cell),
                "outcome": (TenantsAlone if role == "alone" else CloudWindow)(core=core),
            }),
        )
        for position, (role, arm) in enumerate(
            (("alone", "nobody"), ("search", "c-l2fwd"), ("measure", "c-l2fwd"))
        )
    ]  # fmt: skip
