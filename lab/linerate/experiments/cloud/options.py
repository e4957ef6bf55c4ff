# SPDX-License-Identifier: BSD-3-Clause
"""The options of `linerate run cloud`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from linerate.experiments.cloud.design.parts import Part, TenantShape
from linerate.host.errors import UsageError
from linerate.records.cloud_summary import NotRun
from linerate.runs import options as common
from linerate.runs.options import (
    BLOCKS,
    FORWARDERS,
    FOUND_AT_START,
    LINE_RATE,
    LINK,
    PRESET,
    SIZES,
    Extra,
    Preset,
    words_of,
)

if TYPE_CHECKING:
    from linerate.experiments.cloud.design.design_file import Read


def _design(option: str, value: str) -> Read:
    from linerate.experiments.cloud.design import design_file  # noqa: PLC0415 - a slow import

    return design_file.read(value)


def _one_link(option: str, values: list[str] | None) -> list[str]:
    found = words_of(option, values)
    if len(found) > 1:
        raise UsageError(f"{option} {','.join(found)}: a run has one link", "name one")
    return found


@dataclass(kw_only=True)
class Options(common.Budget, common.Options):
    """The options of the command line and the design's file.

    `not_held`: levels that this machine does not support. `minutes`: budget of a session; None:
    none.
    """

    summary: ClassVar = "How do forwarders and tenants slow each other down?"
    extras: ClassVar = (
        Extra("--plan", "Say what would be run, and for how long; run nothing."),
        Extra("--print-design", "Print the design, as a start for one of your own."),
    )
    unused: ClassVar = ("generator_ports", "forwarder_ports")
    can_fail: ClassVar = False
    own: ClassVar = {
        "links": LINK.but(
            help="A link, such as veth, which fits every forwarder.",
            default_help="the design's",
            parse=_one_link,
        ),
        "sizes": SIZES.but(default_help="the design's", compare="same"),
        "forwarders": FORWARDERS.but(
            help="A list of forwarders; the first is the reference.",
            default_help="the design's",
            compare="same",
        ),
        "blocks": BLOCKS.but(help="Blocks.", default_help="the design's"),
        "line_rate": LINE_RATE.but(
            help="Frames per second that are 100 % of every forwarder, instead of the NDR that is "
            "searched for each."
        ),
    }

    preset: Annotated[
        Preset,
        PRESET.but(
            name="--design",
            help="demo, quick, crossed, study, or a file (TOML) with a design of your own.",
            parse=_design,
            merge="same",
            compare="same",
        ),
    ]
    # The kernel's threads that work for neighbours do not have it: at 100 they would stand still.
    cpu_weight: Annotated[int, FOUND_AT_START] = 32
    parts: Annotated[list[Part], FOUND_AT_START] = field(default_factory=list)
    tenant: Annotated[TenantShape, FOUND_AT_START] = field(default_factory=TenantShape)
    control: Annotated[bool, FOUND_AT_START] = True
    left_out: Annotated[list[str], FOUND_AT_START] = field(default_factory=list)
    not_held: Annotated[list[NotRun], FOUND_AT_START] = field(default_factory=list)
