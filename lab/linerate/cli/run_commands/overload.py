# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run overload`."""

from __future__ import annotations

from typing import Annotated

import typer

from linerate.cli.run_commands.options import (
    FailIf,
    ForwarderPorts,
    GeneratorPorts,
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
from linerate.host.errors import UsageError
from linerate.host.exit_status import ExitStatus


def overload(
    context: typer.Context,
    preset: Annotated[
        str, typer.Option(help="demo, quick (20 blocks), screen (40) or claim (150).")
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="null, null2, nearfree2, nearfree1-ip, nearfree2-ip, memif, memif2, veth, veth1, "
            "veth-af-xdp, veth1-af-xdp, tap, tap1, ports; a list, or "
            "repeated. "
            "Default: null,memif."
        ),
    ] = None,
    generator_port: GeneratorPorts = None,
    forwarder_port: ForwarderPorts = None,
    sizes: Annotated[
        list[str] | None, typer.Option(help="Frame sizes with FCS, a list. Default: 64.")
    ] = None,
    forwarders: Annotated[
        list[str] | None,
        typer.Option(
            help="A list; the first is the baseline. Default: c-l2fwd,rust-l2fwd,rust-l2fwd-burst. "
            "Others: reflect, testpmd-io, -mac, -macswap, -csum, -5tswap; c-l3fwd-lpm, -em, -acl, "
            "-graph."
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
        bool,
        typer.Option(
            help="See by the probe how programs poll: at lower loads, and in further trials."
        ),
    ] = True,
    generator: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> ExitStatus:
    """Forward as much as it can: which l2fwd does more, at what cost per packet?"""
    if generator is not None:
        raise UsageError(
            "--generator: overload floods the forwarder, and OTG has no word for sending as fast "
            "as a port takes frames: only the lab's own generator can",
            "linerate run rfc2544 --generator URL",
        )
    check_machine_options(hugepages, line_rate)
    links = words_of("--link", link)
    frame_sizes = numbers_of("--sizes", sizes)
    names = forwarders_of(forwarders)

    # These import scipy and more: what can be refused without them is refused by now.
    from dataclasses import asdict  # noqa: PLC0415

    from linerate.runs.block_run import Options  # noqa: PLC0415
    from linerate.runs.blocks import preset as find_preset  # noqa: PLC0415

    options = Options(
        preset=find_preset(preset),
        links=links,
        sizes=frame_sizes,
        forwarders=names,
        blocks=blocks,
        seed=seed,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
        probe=probe,
        generator_ports=generator_port or [],
        forwarder_ports=forwarder_port or [],
    )
    return run(context, "overload", asdict(options), resume, out, fail_if)
