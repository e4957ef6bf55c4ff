# SPDX-License-Identifier: BSD-3-Clause
"""The output of `linerate advise --json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from linerate.host.machine import Machine
from linerate.records.summary_figures import Quartiles
from linerate.records.types import Limiter, Strict

# no: it was measured, and does not. undecided: measured at this rate, but too little or unsteadily.
Answer = Literal["yes", "no", "undecided", "not measured"]
# The evidence for a rate: searches for a throughput, fixed loads, or floods.
Source = Literal["searches", "fixed loads", "floods"]


class AskedLatency(Strict):
    """A limit of the question."""

    quantile: str
    us: float


class Asked(Strict):
    """The question."""

    pps: float = Field(description="frames per second over all directions")
    size: int = Field(description="frame size in bytes with the 4-byte FCS")
    loss_ratio: float = Field(description="the permitted share of lost frames")
    latency: list[AskedLatency] = Field(default_factory=list)


class RunRead(Strict):
    """A run whose records were read; other entries refer to it by its `number`."""

    number: int = Field(ge=1)
    directory: str
    id: str
    experiment: str
    command: str
    started_at: str
    trials: int
    complete: bool


class CarriedRate(Strict):
    """One run's answer for a program at the required rate. Each block is one value."""

    run: int
    answer: Answer
    reason: str
    source: Source
    blocks: int = Field(description="blocks that have a value")
    begun: int = Field(description="blocks, including those without a valid window or a result")
    carried: int = Field(description="blocks in which at least the required rate was carried")
    lost: int = Field(
        description="blocks in which the required rate, or a lower one, lost too much"
    )
    reached_pps: Quartiles | None = Field(
        default=None,
        description="the greatest load that a block carried, below the least that lost too much; "
        "0: none",
    )
    at_least: bool = Field(description="in most blocks no load lost too much: the limit is higher")
    limited_by: Limiter | None = Field(
        default=None,
        description="the limiter of searches and floods, from the run's summary: loss there "
        "says nothing about the program",
    )
    missed_pps: float | None = Field(
        default=None, description="the least load that lost too much; the median, if most have one"
    )
    loss_ratio: float | None = Field(
        default=None,
        description="the median loss of floods, as a share of the frames that the link took",
    )
    core_share: Quartiles | None = Field(
        default=None,
        description="near the required rate: CPU time of the program, and of the kernel "
        "threads that receive for it, over time",
    )


class MeasuredDelay(Strict):
    """One run's answer for a program's delays at loads near the required rate."""

    run: int
    quantile: str
    limit_us: float
    answer: Answer
    reason: str
    blocks: int
    within: int = Field(description="blocks in which the delay was within the limit")
    us: Quartiles | None = None
    least_pps: float | None = Field(
        default=None,
        description="the least of the loads near the required rate, or of all others, if "
        "there are none; absent: no delays were measured",
    )
    most_pps: float | None = None


class Placement(Strict):
    """A forwarder on a number of cores, and whether it meets the question."""

    forwarder: str
    cores: int | None = Field(
        default=None, description="number of CPUs that it used; absent: not recorded"
    )
    build: str | None = Field(default=None, description="SHA-256 of its program, if it has one")
    definition: str | None = Field(default=None, description="SHA-256 of its definition")
    answer: Answer
    rates: list[CarriedRate]
    delays: list[MeasuredDelay] = Field(default_factory=list)
    sentence: str


class SettingAnswer(Strict):
    """One machine, link and neighbourhood. Figures of several settings are never combined."""

    link: str
    devices: list[str] = Field(default_factory=list, description="the devices of link ports")
    directions: Literal["one", "both"]
    ip: Literal[4, 6]
    beside: str = Field(default="", description="other users of the core; empty: none")
    foreign: bool = Field(
        default=False, description="whether a generator other than the lab's own sent"
    )
    memory: str
    machine: Machine = Field(description="from the first of the runs")
    here: bool = Field(description="whether this machine is like that one")
    answer: Answer
    cores: int | None = Field(default=None, description="the fewest cores that meet the question")
    placements: list[Placement]
    sentence: str


class Advice(Strict):
    """The output of `linerate advise --json`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_id: Literal["linerate/advice-1"] = Field(default="linerate/advice-1", alias="schema")
    asked: Asked
    answer: Answer = Field(description="yes: in at least one setting")
    settings: list[SettingAnswer]
    not_measured: list[str] = Field(
        description="questions that the records do not answer, in sentences"
    )
    commands: list[str] = Field(description="commands that would measure some of it")
    runs: list[RunRead]
    notes: list[str] = Field(default_factory=list)


def schema() -> dict[str, Any]:
    document = Advice.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
