# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run graph`."""

from __future__ import annotations

from typing import Annotated

import typer

from linerate.cli.run_commands.options import (
    FailIf,
    Hugepages,
    KeepGoing,
    Out,
    Resume,
    Seed,
    check_machine_options,
    run,
    words_of,
)
from linerate.host.exit_status import ExitStatus


def graph(
    context: typer.Context,
    preset: Annotated[
        str, typer.Option(help="demo (a minute), quick (minutes) or full (every cell).")
    ] = "quick",
    cells: Annotated[
        list[str] | None,
        typer.Option(
            help="Cells or patterns, a list, such as 'chain4/*/hash5/nostats/256'. Default: the "
            "preset's."
        ),
    ] = None,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            help="c-graph, rust-graph, fused, one-loop; a list. Default: all. The first that is "
            "there, in this order, is the baseline."
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(help="Starts of the programs, instead of the preset's; half of them choose."),
    ] = None,
    out: Out = None,
    resume: Resume = None,
    fail_if: FailIf = None,
    seed: Seed = 1,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
) -> ExitStatus:
    """Pass objects through graphs: what does a node cost in C, in Rust, fused, and in one loop?"""
    check_machine_options(hugepages, None)
    asked_cells = words_of("--cells", cells)
    asked_arms = words_of("--arms", arms)

    from dataclasses import asdict, replace  # noqa: PLC0415 - as all commands

    from linerate.experiments.graph.design import OPTIONS, Options, check, planned  # noqa: PLC0415
    from linerate.experiments.graph.experiment import look  # noqa: PLC0415
    from linerate.experiments.graph.presets import preset as find_preset  # noqa: PLC0415

    options = Options(
        preset=find_preset(preset),
        cells=asked_cells,
        arms=asked_arms,
        blocks=blocks,
        seed=seed,
        hugepages=hugepages,
        keep_going=keep_going,
    )
    check(options)
    if resume:
        return run(context, "graph", asdict(options), resume, out, fail_if)
    offered, left_out = look(options)
    options = replace(options, plan=planned(options, offered), left_out=left_out)
    return run(context, "graph", OPTIONS.dump_python(options, mode="json"), resume, out, fail_if)
