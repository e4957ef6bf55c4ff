# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run latency`."""

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
from linerate.host.exit_status import ExitStatus


def latency(
    context: typer.Context,
    preset: Annotated[
        str, typer.Option(help="quick (10^5 frames of each kind and load) or full (10^6).")
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="memif, veth1, memif2, veth, veth-af-xdp, veth1-af-xdp, tap, tap1, ports; "
            "a list, or repeated. Default: "
            "memif,veth1."
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
            help="The first is the baseline; a link leaves out those that it has no interfaces "
            "for. Default: reflect,c-l2fwd,rust-l2fwd-burst,testpmd-io,af-packet-read-write,-mmsg,"
            "-mmap."
        ),
    ] = None,
    frames: Annotated[
        list[str] | None, typer.Option(help="udp, arp (requests); a list. Default: both.")
    ] = None,
    packets: Annotated[
        int | None,
        typer.Option(help="Frames of each kind and load over all blocks, instead of the preset's."),
    ] = None,
    inside: Annotated[
        bool, typer.Option(help="Measure inside the forwarders, too: the first published test.")
    ] = True,
    blocks: Annotated[
        int | None,
        typer.Option(help="Starts of each forwarder. Default: at least 9; full: at least 20."),
    ] = None,
    out: Out = None,
    resume: Resume = None,
    fail_if: FailIf = None,
    seed: Seed = 1,
    line_rate: LineRate = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
) -> ExitStatus:
    """How long a frame takes: inside each forwarder, and there and back, at idle and under load."""
    check_machine_options(hugepages, line_rate)
    links = words_of("--link", link)
    frame_sizes = numbers_of("--sizes", sizes)
    names = forwarders_of(forwarders)
    kinds = words_of("--frames", frames)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.experiments.latency import plan  # noqa: PLC0415
    from linerate.experiments.latency.design import Options  # noqa: PLC0415

    options = Options(
        preset=plan.preset(preset),
        links=links,
        sizes=frame_sizes,
        forwarders=names,
        protocols=plan.protocols_of(kinds),
        packets=packets,
        inside=inside,
        blocks=blocks,
        seed=seed,
        line_rate=line_rate,
        hugepages=hugepages,
        keep_going=keep_going,
        generator_ports=generator_port or [],
        forwarder_ports=forwarder_port or [],
    )
    return run(context, "latency", asdict(options), resume, out, fail_if)
