# SPDX-License-Identifier: BSD-3-Clause
"""The output of `linerate duel --json`. The JSON Schema is generated from these classes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from linerate.experiments.duel.programs import given
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.verdict import Answer, Side
from linerate.experiments.instructions.record import Explanation
from linerate.forwarders import Forwarder
from linerate.records.types import GivenProgram, Strict
from linerate.traffic.frame_files import contents
from linerate.trial.starts import faults
from linerate.trial.starts.clocks import Per
from linerate.trial.starts.ways import Method
from linerate.trial.starts.window import Window
from linerate.verdict.sequential import OfStarts


class FromBaseline(Strict):
    """The baseline that A came from."""

    file: str = Field(description="the file that --baseline named")
    program: str = Field(description="the SHA-256 of the executable")
    kept_at: str = Field(description="ISO 8601, UTC")


class Build(Strict):
    """One of several builds of A, or of B, of which the fastest took part."""

    program: Literal["A", "B"]
    name: str
    share: float = Field(description="its rate over the chosen one's, before the duel")


class Fault(Strict):
    """The reason why there is no comparison."""

    program: Literal["A", "B"]
    kind: faults.Kind
    message: str


class FrameFile(Strict):
    """Frames that ports received repeatedly."""

    ports: list[int] = Field(description="ports of the program, from 0 on")
    frames: int
    size: int = Field(description="bytes of all its frames, with FCS")


class Carried(Strict):
    """Fate of the frames of a start's generator while the start was measured. The counters are read
    one after the other, so some frames are between two of them.
    """

    offered: int = Field(description="frames that the generator sent")
    refused: int = Field(description="offers for which the link had no room")
    received: int = Field(
        description="packets that the program received; where packets are counted over "
        "cpu-and-napi and it does not poll, those that came to its interfaces"
    )
    sent: int = Field(description="packets that the program sent")


class Round(Strict):
    """The starts of one round."""

    order: list[Literal["A", "B"]] = Field(description="the program of each start, in their order")
    pps: list[float] = Field(description="packets sent per second, for each start")
    alone_pps: list[float] = Field(
        default_factory=list,
        description="standing: the same while all others were stopped, which shows if the "
        "programs compare differently then",
    )
    carried: list[Carried] = Field(
        default_factory=list, description="frames of each start's generator, on links with one"
    )
    steal_ticks: int = Field(description="ticks of the CPU that the hypervisor took, 1/100 s")


class Work(Strict):
    """The result of a program for every frame, before it was measured."""

    received: int = Field(description="packets, on all ports")
    missed: int = Field(description="frames that the program had no time to receive")
    counts: dict[str, int] = Field(
        description="packets sent, by their changes; made: packets that are not from a frame"
    )


class DuelRecord(Strict):
    """A duel, with everything that its answer is based on. Ratios are B over A."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)

    schema_id: Literal["linerate/duel-1"] = Field(default="linerate/duel-1", alias="schema")
    method: Method = Field(
        description="standing: all starts at once on one CPU; turns: one at a time, the others "
        "stopped"
    )
    per: Per = Field(
        description="the unit over which packets are counted. cpu: CPU time of the process; "
        "cpu-and-napi: the same and that of the kernel threads that receive for "
        "it, in which XDP programs run; time; busy: the time in which its lcores "
        "were busy with packets, counted by the probe"
    )
    programs: list[GivenProgram]
    called: list[str] = Field(
        default_factory=list,
        description="the names of A and B in the sentence; if equal, with their difference",
    )
    baseline: FromBaseline | None = Field(
        default=None, description="the baseline of A, if A came from one"
    )
    same_code: bool | None = Field(
        default=None,
        description="whether both run the same code with the same arguments; null: not checked",
    )
    builds: list[Build] = Field(
        default_factory=list,
        description="the builds from which the fastest was chosen, in rounds of their own",
    )
    link: str
    size: int = Field(description="bytes with FCS")
    memory: Literal["hugepages", "no-huge"]
    margin: float
    within_s: float
    starts: int = Field(description="starts of each program in a round")
    of_starts: OfStarts = Field(
        default="median",
        description="how the figures of a program's starts in a round are combined: their "
        "median, or the mean of the faster half, both of logarithms",
    )
    seed: int
    answer: Answer = Field(description="whether B is slower or faster by more than the margin")
    direction: Side | None = Field(
        default=None, description="the direction of the difference, if it is shown"
    )
    ratio: float | None = Field(default=None, description="the median of the rounds' ratios")
    low: float | None = Field(
        default=None, description="the lower end of a confidence sequence at 99 %"
    )
    high: float | None = None
    beside: float | None = Field(
        default=None,
        description="turns: the ratio of standing programs, discarded because each program "
        "alone had another one",
    )
    moves: bool = Field(description="the ratio itself changed with the machine's state")
    control: float | None = Field(default=None, description="A over A, the median of the rounds")
    fault: Fault | None = None
    traffic: list[str] = Field(
        default_factory=list, description="the traffic as on the command line; empty: the lab's own"
    )
    frame_files: list[FrameFile] = Field(
        default_factory=list, description="the frames of that traffic"
    )
    works: list[Work] = Field(
        default_factory=list,
        description="the work of each program on the frames, if it was checked",
    )
    rounds: list[Round]
    took_s: float
    sentence: str
    notes: list[str] = Field(description="notes beside the answer")
    repeat: str = Field(description="the command line that repeats the duel, in the same orders")
    explanation: Explanation | None = Field(
        default=None,
        description="result of --explain: both under callgrind; not part of the answer",
    )

    def as_json(self) -> str:
        """Return the output of `--json`."""
        found = self.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True, indent=2)
        return found + "\n"


def described(files: Sequence[Path], ports: int) -> list[FrameFile]:
    """Return the files for the record: `files` has one for each port, or one for all."""
    return [
        FrameFile(
            ports=[port for port in range(ports) if port % len(files) == number],
            frames=found.frames,
            size=found.size,
        )
        for number, found in enumerate(map(contents, files))
    ]


def schema() -> dict[str, Any]:
    document = DuelRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def _carried(windows: Sequence[Window]) -> list[Carried]:
    found = [(window, window.offered) for window in windows]
    return [
        Carried(
            offered=offered.taken,
            refused=offered.refused,
            received=sum(window.received),
            sent=sum(window.sent),
        )
        for window, offered in found
        if offered
    ]


def record_of(  # noqa: PLR0917 - what it is made of
    duel: Duel,
    words: Sequence[str],
    programs: Sequence[Forwarder],
    link: str,
    asked: Asked,
    told: Sequence[str],
    repeat: str,
    traffic: Sequence[str] = (),
    files: Sequence[FrameFile] = (),
    *,
    hugepages: bool,
    baseline: FromBaseline | None = None,
    builds: Sequence[Build] = (),
    explanation: Explanation | None = None,
    labels: Sequence[str] = (),
) -> DuelRecord:
    """Return the record. `told`: the sentence, and the notes. `repeat`: the command line that
    repeats it. `labels`: the names of A and B in the sentence.
    """
    verdict, fault = duel.verdict, duel.fault
    interval = verdict.interval
    letters: tuple[Literal["A", "B"], ...] = ("A", "B")
    return DuelRecord(
        programs=[given(word, each) for word, each in zip(words, programs, strict=True)],
        called=list(labels),
        baseline=baseline,
        same_code=duel.same_code,
        builds=list(builds),
        method=duel.method,
        per=duel.per,
        beside=duel.given_up.ratio if duel.given_up else None,
        link=link,
        traffic=list(traffic),
        frame_files=list(files),
        works=[
            Work(received=each.received, missed=each.missed, counts=each.counts)
            for each in duel.works
        ],
        size=asked.size,
        memory="hugepages" if hugepages else "no-huge",
        margin=asked.margin,
        within_s=asked.within_s,
        starts=asked.starts,
        of_starts="faster-half",
        seed=asked.seed,
        answer=duel.answer,
        direction=verdict.direction,
        ratio=verdict.ratio,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        moves=verdict.moves,
        control=math.exp(statistics.median(verdict.control)) if verdict.control else None,
        fault=fault
        and Fault(program=letters[fault.arm], kind=fault.kind, message=str(fault.message)),
        rounds=[
            Round(
                order=[letters[window.arm] for window in each.windows],
                pps=[window.pps for window in each.windows],
                alone_pps=[window.pps for window in each.alone],
                carried=_carried(each.windows),
                steal_ticks=each.steal,
            )
            for each in duel.rounds
        ],
        took_s=duel.took_s,
        sentence=told[0],
        notes=list(told[1:]),
        repeat=repeat,
        explanation=explanation,
    )
