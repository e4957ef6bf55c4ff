# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run rfc2544`."""

from __future__ import annotations

from pathlib import Path
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
from linerate.host.errors import look_up
from linerate.host.exit_status import ExitStatus


def rfc2544(
    context: typer.Context,
    preset: Annotated[
        str,
        typer.Option(
            help="quick (minutes a size), csit (half an hour a size) or conforming (RFC 2544's "
            "durations: a day a size)."
        ),
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="memif, memif2, veth, veth1, veth-af-xdp, veth1-af-xdp, tap, tap1, ports; "
            "a list, or repeated. Default: "
            "memif."
        ),
    ] = None,
    generator_port: GeneratorPorts = None,
    forwarder_port: ForwarderPorts = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(help="Frame sizes with FCS, a list; or standard; or published. Default: 64."),
    ] = None,
    forwarders: Annotated[
        list[str] | None,
        typer.Option(help="The first is the baseline. Default: c-l2fwd,rust-l2fwd."),
    ] = None,
    tests: Annotated[
        list[str] | None,
        typer.Option(
            help="throughput (always measured), latency, loss, back-to-back, recovery, core-use. "
            "Default: all."
        ),
    ] = None,
    ip: Annotated[int, typer.Option(help="4 or 6.")] = 4,
    directions: Annotated[
        str | None, typer.Option(help="On a link with two ports: one or both. Default: both.")
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(
            help="Searches of each forwarder. Default: one more than a verdict needs, 9 for one "
            "size, 12 for seven (7 and 10 without latency and core-use)."
        ),
    ] = None,
    out: Out = None,
    resume: Resume = None,
    fail_if: FailIf = None,
    seed: Seed = 1,
    line_rate: LineRate = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
    generator: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Another generator's OTG API, such as https://USER@127.0.0.1:8443. With --link "
            "ports (--generator-port is a location that it understands) and --line-rate.",
        ),
    ] = None,
    generator_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who vouches for its certificate (PEM)."),
    ] = None,
    generator_insecure: Annotated[
        bool, typer.Option("--generator-insecure", help="Don't verify its certificate.")
    ] = False,
    generator_password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The password of its USER, a file's line.")
    ] = None,
) -> ExitStatus:
    """Search for what each forwarder carries without loss, and see how it does there."""
    check_machine_options(hugepages, line_rate)
    links = words_of("--link", link)
    names = forwarders_of(forwarders)
    asked_tests = words_of("--tests", tests)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.experiments.rfc2544 import presets  # noqa: PLC0415
    from linerate.experiments.rfc2544.experiment import Options  # noqa: PLC0415
    from linerate.records.trial import DIRECTIONS  # noqa: PLC0415
    from linerate.traffic.otg import IPS, Ip  # noqa: PLC0415
    from linerate.traffic.other_generator import named  # noqa: PLC0415

    version: Ip = look_up(IPS, str(ip), "--ip", "version")
    ways = look_up(DIRECTIONS, directions, "--directions", "choice") if directions else None
    other = named(generator, generator_ca, generator_password_file, insecure=generator_insecure)
    options = Options(
        preset=presets.preset(preset),
        tests=presets.tests_of(asked_tests),
        links=links,
        sizes=presets.named_sizes(",".join(sizes or []), version) or numbers_of("--sizes", sizes),
        forwarders=names,
        blocks=blocks,
        seed=seed,
        line_rate=line_rate,
        hugepages=hugepages,
        ip=version,
        directions=ways,
        keep_going=keep_going,
        generator_ports=generator_port or [],
        forwarder_ports=forwarder_port or [],
        generator=other,
    )
    return run(context, "rfc2544", asdict(options), resume, out, fail_if)
