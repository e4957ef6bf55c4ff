# SPDX-License-Identifier: BSD-3-Clause
"""The part of summary.json for experiment `cloud`: cells, takeaways, and unmeasured cells."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from linerate.records.summary_figures import Quartiles
from linerate.records.types import Strict

# `none`: no tenants are beside the forwarder.
LoadName = Literal["none", "idle", "cpu", "io", "network", "mixed"]
KindName = Literal["none", "container", "vm"]
# The forwarder's part of its core.
CpuName = Annotated[str, Field(pattern=r"^(shared|own|quota-([1-9][0-9]?|100))$")]

TakeawayVerdict = Literal["held", "not held", "undecided"]


class TakeawayEntry(Strict):
    """A tested statement, and the answer of the data."""

    origin: Literal["study", "tested"] = Field(
        description="study: a conclusion of the published study, stated before; tested: one of all "
        "effects, contrasts and trends that were tested here, corrected together"
    )
    statement: str
    metric: str
    about: list[str] = Field(description="the factors of the statement")
    part: str | None = Field(
        default=None,
        description="the part of the design whose cells were tested, if it has several",
    )
    test: str
    p: float | None = Field(default=None, description="corrected, if many were tested together")
    measure: Literal["ratio", "difference", "partial eta squared"]
    effect: float | None = None
    low: float | None = Field(default=None, description="95 % interval of the effect")
    high: float | None = None
    cliffs_delta: float | None = Field(
        default=None,
        description="P(the first is above the other) less P(below), -1 to 1, of the values "
        "per block; if two are compared",
    )
    compared: str = Field(default="", description="the subjects of the effect, in words")
    detectable: float | None = Field(
        default=None,
        description="the effect that such a run finds in four of five cases, as `measure` says",
    )
    verdict: TakeawayVerdict
    reason: str
    chart: str | None = Field(
        default=None, description="the place of its chart in report.html, such as "
"report.html#throughput-load-size",
    )  # fmt: skip


class OwnRate(Strict):
    """100 % of a forwarder at a frame size: its NDR without tenants, on the whole core; or less, if
    the generator keeps a lower rate beside tenants.
    """

    framework: str
    size: int
    pps: float | None = Field(default=None, description="absent: it was not found")
    ndr_pps: float | None = Field(
        default=None, description="absent: not found, or not searched (--line-rate)"
    )
    note: str = ""


class CloudCellFigures(Strict):
    """One cell of the design, over its blocks. Some figures are sums over all tenants; those say
    so.
    """

    framework: str
    kind: KindName
    load: LoadName
    tenants: int
    cpu: CpuName
    size: int
    rate: float = Field(
        description="the offered load as a share of the forwarder's own rate: `OwnRate`"
    )
    trials: int
    invalid: int
    offered_pps: Quartiles | None = None
    received_pps: Quartiles | None = None
    left: Quartiles | None = Field(
        default=None,
        description="the received rate over that of the same forwarder in the same block at "
        "the same size, rate and CPU without tenants",
    )
    loss: Quartiles | None = Field(
        default=None, description="share of the intended frames that was lost"
    )
    lost_at_ingress: Quartiles | None = Field(
        default=None,
        description="share of the intended frames lost at the link's ingress; part of `loss`",
    )
    loss_free: float | None = Field(default=None, description="share of the runs without any loss")
    latency_us: dict[str, Quartiles] = Field(default_factory=dict, description="by quantile")
    forwarder_cpu: Quartiles | None = Field(default=None, description="seconds of CPU per second")
    throttled: Quartiles | None = Field(
        default=None, description="share of the time in which the forwarder's quota was used up"
    )
    tenants_cpu: Quartiles | None = Field(
        default=None, description="seconds of CPU per second, of all tenants"
    )
    steal: Quartiles | None = Field(
        default=None, description="share of the core's time that the hypervisor took"
    )
    softirq: Quartiles | None = Field(
        default=None, description="share of the core's time in softirqs"
    )
    switches_per_s: Quartiles | None = Field(
        default=None, description="context switches of the forwarder: voluntary and involuntary"
    )
    cache_misses_per_s: Quartiles | None = None
    memory_bytes_per_s: Quartiles | None = None
    work: dict[str, Quartiles] = Field(
        default_factory=dict,
        description="work of all tenants per second: bogo_ops, io_operations, io_bytes, "
        "network_bytes",
    )
    work_left: dict[str, Quartiles] = Field(
        default_factory=dict,
        description="the same over their work in the same block without any forwarder",
    )


class NotRun(Strict):
    """Cells that were requested and not measured, or not in all blocks."""

    what: str
    reason: str
    cells: int
    trials: int = Field(description="over all blocks")
    places: list[str] = Field(default_factory=list, description="the cells, in words")


class CloudAnswers(Strict):
    """Answers beside the takeaways."""

    factors: dict[str, list[str]] = Field(description="levels that were measured, in their order")
    reference: str = Field(description="the framework of the A/A control")
    control: list[TakeawayEntry] = Field(
        default_factory=list, description="the reference against itself, by metric"
    )
    own_rates: list[OwnRate] = Field(default_factory=list)
    cells: list[CloudCellFigures] = Field(default_factory=list)
    not_run: list[NotRun] = Field(default_factory=list)
    estimated_s: float | None = Field(default=None, description="the estimate before the run began")
    took_s: float | None = None
    accelerator: str | None = Field(
        default=None, description="the accelerator of virtual machines, and why, in words"
    )
    isolation: list[str] = Field(
        default_factory=list, description="isolation of the tenants: cgroups, namespaces, disks"
    )
