# SPDX-License-Identifier: BSD-3-Clause
"""The output of `linerate instructions --json`. The JSON Schema is generated from these classes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from linerate.records.types import GivenProgram, Strict

Letter = Literal["A", "B"]
Answer = Literal["more", "not more", "undecided"]


class Figures(Strict):
    """The figures of one run, per packet. Caches and branch prediction are callgrind's
    simulation.
    """

    instructions: float
    program: float = Field(description="instructions of the program itself, with its own libraries")
    dpdk: float = Field(description="instructions of DPDK's libraries, without the driver")
    driver: float = Field(description="instructions of the link's driver")
    system: float = Field(description="instructions of other libraries, such as libc")
    conditional_branches: float
    conditional_mispredicted: float
    indirect_branches: float
    indirect_mispredicted: float
    l1_instruction_misses: float
    l1_data_misses: float = Field(description="misses of reads and writes")


class Function(Strict):
    """Instructions per packet of a function by itself; null: it does not occur."""

    object: str | None = Field(default=None, description="its file; null: the program's own")
    name: str = Field(description="its name, or its address in that file if it has no symbol")
    a: float | None = None
    b: float | None = None


class ClockFunction(Strict):
    """A function whose number of instructions per packet changes with the time per packet."""

    program: Letter
    object: str | None = None
    name: str
    quick: float = Field(description="instructions per packet, caches and branches not simulated")
    slow: float = Field(description="the same while they are")


class Explanation(Strict):
    """Programs under callgrind, one after the other; A twice."""

    packets: int = Field(description="the least number of packets over which was counted")
    a: Figures
    a_again: Figures
    b: Figures | None = None
    tolerance: float = Field(
        description="the difference between the instructions of the two runs of A, as a "
        "share; at least two bursts' worth"
    )
    ratio: float | None = Field(default=None, description="instructions of B over those of A")
    functions: list[Function] = Field(
        description="the functions that changed most from A to B; for one program alone those "
        "with most instructions"
    )
    left_out: int = Field(description="the number of other functions")
    left_out_share: float = Field(description="their share of all changes, or of all instructions")
    clock: list[ClockFunction]
    notes: list[str]


class InstructionsRecord(Strict):
    """The request and its result."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)

    schema_id: Literal["linerate/instructions-1"] = Field(
        default="linerate/instructions-1", alias="schema"
    )
    programs: list[GivenProgram]
    link: str
    size: int = Field(description="bytes with FCS")
    traffic: list[str] = Field(
        default_factory=list, description="the frames as on the command line"
    )
    explanation: Explanation
    max: float | None = Field(
        default=None, description="the permitted increase of B over A, as a share"
    )
    answer: Answer | None = Field(default=None, description="whether B executes more than that")
    sentence: str


def schema() -> dict[str, Any]:
    document = InstructionsRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
