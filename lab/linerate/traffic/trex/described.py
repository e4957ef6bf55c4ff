# SPDX-License-Identifier: BSD-3-Clause
"""What a profile describes, as `linerate.traffic.trex.profile` hands it over.

Whoever wrote the profile may have written this, too: each value has its type and its bounds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# As many flows as the generator has, and the longest frame without FCS.
MOST_STREAMS = 1024
LONGEST_PACKET = 9212
# Of a VM, and of a variable's list.
MOST_INSTRUCTIONS = 1000
MOST_VALUES = 65_536

_Text = Annotated[str, Field(max_length=1000)]
_Whole = Annotated[int, Field(ge=-(1 << 64), le=1 << 64)]
_Count = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Line = Annotated[int, Field(ge=1)] | None
_Offset = Annotated[int, Field(ge=0, le=65_535)] | _Text
_Fixup = Annotated[int, Field(ge=-65_535, le=65_535)]
_Size = Literal[1, 2, 4, 8]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Instruction(_Record):
    line: _Line


class Variable(_Instruction):
    kind: Literal["variable"]
    name: _Text
    size: _Size
    op: Literal["inc", "dec", "random"]
    min: _Whole
    max: _Whole
    step: _Whole
    values: Annotated[list[_Whole], Field(min_length=1, max_length=MOST_VALUES)] | None
    init: _Whole | None
    next: _Text | None


class RepeatableRandom(_Instruction):
    kind: Literal["repeatable_random"]
    name: _Text
    size: _Size
    limit: _Count
    seed: _Whole | None
    min: _Whole
    max: _Whole


class TupleGenerator(_Instruction):
    kind: Literal["tuple"]
    name: _Text
    ip_min: _Count
    ip_max: _Count
    port_min: Annotated[int, Field(ge=0, le=65_535)]
    port_max: Annotated[int, Field(ge=0, le=65_535)]
    limit: _Count
    flags: _Whole


class Write(_Instruction):
    kind: Literal["write"]
    name: _Text
    offset: _Offset
    fixup: _Fixup
    add: _Whole
    big: bool


class MaskedWrite(_Instruction):
    kind: Literal["write_mask"]
    name: _Text
    offset: _Offset
    fixup: _Fixup
    add: _Whole
    big: bool
    size: Literal[1, 2, 4]
    mask: Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
    shift: Annotated[int, Field(ge=-63, le=63)]


class FixIpv4(_Instruction):
    kind: Literal["fix_ipv4"]
    offset: _Offset


class FixChecksums(_Instruction):
    kind: Literal["fix_checksums"]
    l3: _Offset
    l4: _Offset
    only_ip: bool


class Trim(_Instruction):
    kind: Literal["trim"]
    name: _Text


Instruction = Annotated[
    Variable
    | RepeatableRandom
    | TupleGenerator
    | Write
    | MaskedWrite
    | FixIpv4
    | FixChecksums
    | Trim,
    Field(discriminator="kind"),
]


class Packet(_Record):
    """`bytes` (hex), or the first packet of the file `capture`."""

    bytes: Annotated[str, Field(max_length=2 * LONGEST_PACKET)] | None = None
    capture: _Text | None = None
    own_src: bool
    own_dst: bool
    vm: Annotated[list[Instruction], Field(max_length=MOST_INSTRUCTIONS)]


class Rate(_Record):
    unit: Literal["pps", "bps_L1", "bps_L2", "percentage"]
    value: Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


class Mode(_Record):
    """`gap_us`: between the last packet of a burst and the first of the next."""

    kind: Literal["continuous", "single_burst", "multi_burst"]
    rate: Rate
    packets: Annotated[int, Field(ge=1, le=(1 << 32) - 1)] = 1
    bursts: Annotated[int, Field(ge=1, le=(1 << 32) - 1)] = 1
    gap_us: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = 0.0


class Stream(_Record):
    """One stream; times are microseconds."""

    name: _Text | None
    line: _Line
    packet: Packet
    mode: Mode
    stats: Literal["statistics", "latency"] | None
    enabled: bool
    self_start: bool
    isg_us: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
    next: _Text | None
    loops: _Count
    seed: _Whole | None
    src_of_packet: bool | _Whole | None
    dst_mode: _Whole | None
    dummy: bool
    paused: bool


class Capture(_Record):
    """A capture file's packets. `ipg_us`: between two of them; None: as in the file."""

    capture: _Text
    ipg_us: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None
    speedup: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
    loops: _Count
    refused: list[_Text]


class CaptureStream(_Record):
    name: None
    line: _Line
    replay: Capture


PortStreams = Annotated[list[Stream | CaptureStream], Field(max_length=MOST_STREAMS)]


class Description(_Record):
    """`streams` for each port, or the `error` that kept them from being described."""

    streams: list[PortStreams] | None = None
    error: Annotated[str, Field(max_length=1 << 20)] | None = None
    line: _Line = None
    printed: str = ""
    missing: list[_Text] = Field(default_factory=list)
