# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run paths`."""

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
    forwarders_of,
    numbers_of,
    run,
    words_of,
)
from linerate.host.exit_status import ExitStatus


def paths(
    context: typer.Context,
    preset: Annotated[
        str, typer.Option(help="quick (one frame size) or full (three sizes, five loads).")
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="veth, veth1, veth-af-xdp or veth1-af-xdp; a list, or repeated. Default: veth."
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Frame sizes with FCS, a list. Default: the preset's.")
    ] = None,
    forwarders: Annotated[
        list[str] | None,
        typer.Option(
            help="A list; the first is the reference. Default: every path that is here, DPDK first."
        ),
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Blocks per cell, instead of the preset's.")
    ] = None,
    out: Out = None,
    resume: Resume = None,
    fail_if: FailIf = None,
    seed: Seed = 1,
    line_rate: Annotated[
        float | None,
        typer.Option(
            help="Frames per second of which the fixed loads are shares, instead of what the "
            "slowest path carries."
        ),
    ] = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
    probe: Annotated[
        bool, typer.Option(help="See by the probe at fixed loads how programs poll.")
    ] = True,
) -> ExitStatus:
    """Take different paths to packets on one wire: what does each carry, at what cost?"""
    check_machine_options(hugepages, line_rate)
    links = words_of("--link", link)
    frame_sizes = numbers_of("--sizes", sizes)
    names = forwarders_of(forwarders)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.experiments.paths.experiment import DEFAULT_LINKS, Options  # noqa: PLC0415
    from linerate.experiments.paths.presets import available  # noqa: PLC0415
    from linerate.experiments.paths.presets import preset as find_preset  # noqa: PLC0415

    chosen = find_preset(preset)
    left_out: list[str] = []
    if not (names or resume):
        names, left_out = available(links or DEFAULT_LINKS)
    options = Options(
        preset=chosen,
        links=links,
        sizes=frame_sizes,
        forwarders=names,
        blocks=blocks,
        seed=seed,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
        probe=probe,
        left_out=left_out,
    )
    return run(context, "paths", asdict(options), resume, out, fail_if)
