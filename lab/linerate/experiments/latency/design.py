# SPDX-License-Identifier: BSD-3-Clause
"""The design of a run of `latency`: cells, arms, and the forwarders that fit each link."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from linerate.experiments.latency import loads
from linerate.experiments.latency.loads import LOADS, Preset
from linerate.experiments.latency.options import (
    DEFAULT_FORWARDERS,
    DEFAULT_LINKS,
    DEFAULT_SIZES,
    PAIRS,
    Measured,
    Options,
)
from linerate.forwarders import forwarder
from linerate.host.errors import UsageError
from linerate.records.cells import Arm, Cell
from linerate.runs.options import Agreement, Pairing, apart_from_blocks, check_sizes
from linerate.runs.plans.blocks import arms, blocks_for, check_blocks, takes
from linerate.runs.run_summary import Design

NAME = "latency"
# The arms of a link that are always there: the baseline and its control.
_BASELINES = 2
QUESTION = "How long does a frame take through each forwarder, inside it and as its sender sees it?"


@dataclass(kw_only=True)
class LatencyDesign(Pairing, Measured, Design):
    """A `Design` with the pairing of forwarders, and this experiment's own parameters."""

    # The preset also has the window.
    window_s: Annotated[float, Field(gt=0), Agreement("window")]
    # The duration of windows.
    measured: Annotated[
        Preset,
        Agreement("--preset", compare="same", compare_by=apart_from_blocks),
    ]


def preset_of(options: Options) -> Preset:
    """Return the preset, with the requested number of packets."""
    if options.packets is None:
        return options.preset
    loads.check_packets(options.packets)
    return replace(options.preset, packets=options.packets)


def cells(options: Options) -> list[Cell]:
    """Return the cells to run, in order; raises `UsageError` for impossible ones."""
    sizes = list(dict.fromkeys(options.sizes or DEFAULT_SIZES))
    check_sizes(sizes)
    if options.line_rate is not None:
        loads.check_line_rate(options.line_rate)
    blocks = max(options.preset.blocks, blocks_for(len(sizes) * len(LOADS)))
    blocks = blocks if options.blocks is None else options.blocks
    check_blocks(blocks)
    names = [
        name
        for name in dict.fromkeys(options.links or DEFAULT_LINKS)
        if options.links or name != PAIRS or len(arms_on(options, name)) > _BASELINES
    ]
    baseline = (options.forwarders or DEFAULT_FORWARDERS)[0]
    for name in names:
        found = options.link(name)
        if not found.has_generator:
            raise UsageError(
                f"--link {name}: has no sender whose frames could come back", "--link memif"
            )
        if misfit := forwarder(baseline).misfit(found):
            raise UsageError(
                f"--forwarders {baseline}: the first is the baseline, and {misfit}",
                "name another one first, or other links",
            )
    return [Cell(name, size, blocks) for name in names for size in sizes]


def arms_on(options: Options, name: str) -> list[Arm]:
    """Return the arms on a link: all that fit it; on the default link with pairs of ports, beside
    the baseline only those that fit no other.
    """
    every = arms(options.forwarders or DEFAULT_FORWARDERS)
    fit = [arm for arm in every if takes(arm.forwarder, options.link(name))]
    if options.links or name != PAIRS:
        return fit
    others = [options.link(each) for each in DEFAULT_LINKS if each != PAIRS]
    return [
        arm
        for arm in fit
        if arm.forwarder == every[0].forwarder
        or not any(takes(arm.forwarder, other) for other in others)
    ]


def design_of(options: Options) -> LatencyDesign:
    """Return the design of these options, with all defaults filled in."""
    measured = preset_of(options)
    return LatencyDesign.of(
        options,
        question=QUESTION,
        preset_note=measured.note
        if options.packets is None
        else f"{options.packets} frames of each kind and load (--packets), fewer where the rate is "
        "too low for that",
        window_s=measured.flood_s,
        cells=cells(options),
        arms=arms(options.forwarders or DEFAULT_FORWARDERS),
        measured=measured,
    )
