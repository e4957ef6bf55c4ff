# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run l3fwd`."""

from __future__ import annotations

from typing import Annotated

import typer

from linerate.cli.run_commands.options import (
    FailIf,
    Hugepages,
    KeepGoing,
    LineRate,
    Out,
    Resume,
    Seed,
    check_machine_options,
    forwarders_of,
    numbers_of,
    run,
    words_of,
)
from linerate.host.exit_status import ExitStatus


def l3fwd(
    context: typer.Context,
    preset: Annotated[
        str,
        typer.Option(
            help="demo (a look, minutes), quick (few levels, 12 blocks) or full (every decade, 30)."
        ),
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="nearfree1-ip, nearfree2-ip: by tables of these sizes; memif, memif2, veth, "
            "veth1, tap, tap1: by the lab's routes, at each frame size. A list, or repeated. "
            "Default: nearfree1-ip,memif."
        ),
    ] = None,
    routes: Annotated[
        list[str] | None,
        typer.Option(help="Routes in the table, a list, 1 to 100000. Default: the preset's."),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            help="Rules past which packets go (with 1,000 routes), a list, to 100000; 0: none. "
            "Default: the preset's."
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Frame sizes with FCS, a list. Default: the preset's.")
    ] = None,
    forwarders: Annotated[
        list[str] | None,
        typer.Option(
            help="A list; in each cell the first that knows its tables is the baseline. Default: "
            "c-l3fwd-graph,c-l3fwd-lpm,c-l3fwd-acl,rust-l3fwd-graph,rust-l3fwd-graph-fused. "
            "Others: the C ones with -native."
        ),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Blocks per cell, instead of the preset's.")
    ] = None,
    out: Out = None,
    resume: Resume = None,
    fail_if: FailIf = None,
    seed: Seed = 1,
    line_rate: LineRate = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
    probe: Annotated[
        bool, typer.Option(help="See by the probe how programs poll, in further trials.")
    ] = True,
) -> ExitStatus:
    """Route by tables of any size, and past rules: what does a packet cost, in C and in Rust?"""
    check_machine_options(hugepages, line_rate)
    links = words_of("--link", link)
    frame_sizes = numbers_of("--sizes", sizes)
    counted_routes = numbers_of("--routes", routes, "1,1000") if routes else None
    counted_rules = numbers_of("--rules", rules, "100,1000") if rules else None
    names = forwarders_of(forwarders)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.experiments.l3fwd.design import Options  # noqa: PLC0415
    from linerate.experiments.l3fwd.design import preset as find_preset  # noqa: PLC0415

    options = Options(
        preset=find_preset(preset),
        links=links,
        routes=counted_routes,
        rules=counted_rules,
        sizes=frame_sizes,
        forwarders=names,
        blocks=blocks,
        seed=seed,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
        probe=probe,
    )
    return run(context, "l3fwd", asdict(options), resume, out, fail_if)
