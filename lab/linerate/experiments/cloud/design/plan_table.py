# SPDX-License-Identifier: BSD-3-Clause
"""Print what a run would do, without running it."""

from __future__ import annotations

from rich.console import Console

from linerate.experiments.cloud.design import needs
from linerate.experiments.cloud.design.design import design_of
from linerate.experiments.cloud.design.estimate import estimate, told
from linerate.experiments.cloud.design.levels import FACTORS, in_order
from linerate.experiments.cloud.design.plan import alone
from linerate.experiments.cloud.options import Options
from linerate.host.errors import LabError
from linerate.host.text import counted
from linerate.links import link
from linerate.runs.progress import say


def show(console: Console, options: Options) -> None:
    """Print the parts with their levels, cells, time, and what this machine lacks."""
    design = design_of(options)
    say(console, f"design {design.preset}: {design.preset_note}")
    for part in design.parts:
        say(console, f"part {part.name}: {counted(len(part.places), 'cell')}")
        for factor in FACTORS:
            levels = in_order(factor, [place.level(factor) for place in part.places])
            say(console, f"  {factor:<10}{', '.join(levels)}")
    if design.control:
        say(console, f"A/A control: {design.reference} twice in each of its cells")
    combinations = counted(len(alone(design.places)), "combination")
    say(console, f"tenants alone: {combinations} in each block")
    for line in told(estimate(design), design, options.minutes):
        say(console, line)
    for each in design.not_held:
        say(console, f"not run: {each.what} ({counted(each.cells, 'cell')}): {each.reason}")
    for text in options.left_out:
        say(console, f"note: {text}")
    missing = needs.missing(design.places)
    try:
        link(design.cells[0].link).prepare()
    except LabError as error:
        missing.append(error.message)
    for reason in dict.fromkeys(missing):
        say(console, f"missing: {reason}")
