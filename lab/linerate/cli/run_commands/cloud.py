# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run cloud`."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from linerate.cli.run_commands.options import (
    Hugepages,
    KeepGoing,
    Out,
    Resume,
    Seed,
    check_machine_options,
    forwarders_of,
    numbers_of,
    run,
    wide_console,
)
from linerate.host.errors import UsageError


def cloud(
    context: typer.Context,
    design: Annotated[
        str, typer.Option(help="demo, quick, study, or a file (TOML) with a design of your own.")
    ] = "quick",
    link: Annotated[
        str | None, typer.Option(help="Instead of the design's; veth is for every forwarder.")
    ] = None,
    forwarders: Annotated[
        list[str] | None,
        typer.Option(help="Instead of the design's, a list; the first is the reference."),
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Frame sizes with FCS, instead of the design's.")
    ] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks, instead of the design's.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="A budget: what does not fit is listed, and run by --resume."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be run, and for how long; run nothing.")
    ] = False,
    print_design: Annotated[
        bool, typer.Option("--print-design", help="Print the design, to begin one of your own.")
    ] = False,
    out: Out = None,
    resume: Resume = None,
    seed: Seed = 1,
    line_rate: Annotated[
        float | None,
        typer.Option(
            help="Frames per second that are 100 % of every forwarder, instead of the NDR that is "
            "looked for of each."
        ),
    ] = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
) -> None:
    """Put tenants beside forwarders: what becomes of both when they share a core?"""
    check_machine_options(hugepages, line_rate)
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"--minutes {minutes:g}: must be a number above 0")
    if resume and (plan or print_design):
        asked = "--plan" if plan else "--print-design"
        raise UsageError(
            f"{asked} with --resume: a run goes on with the design that it began with",
            "leave one of them out",
        )
    frame_sizes = numbers_of("--sizes", sizes)
    names = forwarders_of(forwarders)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.experiments.cloud.design import design_file, told_plan  # noqa: PLC0415
    from linerate.experiments.cloud.design.asked import options_of  # noqa: PLC0415

    if print_design:
        typer.echo(design_file.text_of(design), nl=False)
        return
    options = options_of(
        design_file.read(design),
        on=link,
        forwarders=names,
        sizes=frame_sizes,
        blocks=blocks,
        seed=seed,
        minutes=minutes,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
    )
    if plan:
        told_plan.show(wide_console(), options)
        return
    run(context, "cloud", asdict(options), resume, out)
