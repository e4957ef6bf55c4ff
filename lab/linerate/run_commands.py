# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run EXPERIMENT`: the options of each experiment, and what they come to."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from linerate.errors import OutputError, UsageError, look_up

run_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run an experiment.")

# Options that mean the same in every experiment.
GeneratorPorts = Annotated[
    list[str] | None,
    typer.Option(
        "--generator-port",
        metavar="LOCATION",
        help="With --link ports: the generator's port, an OTG location; once or twice.",
    ),
]
ForwarderPorts = Annotated[
    list[str] | None,
    typer.Option(
        "--forwarder-port",
        metavar="LOCATION",
        help="With --link ports: the port that faces it: pci:ADDRESS, vdev:ARGUMENTS, an "
        "interface, af_xdp:INTERFACE or tap:NAME.",
    ),
]
Out = Annotated[
    Path | None, typer.Option(help="Directory for the run. Default: out/EXPERIMENT-TIME.")
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Go on with the run in this directory, which was interrupted, with its options.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the order in which things are measured.")]
LineRate = Annotated[
    float | None,
    typer.Option(help="Frames per second that are 100 %, instead of the self-test's."),
]
Hugepages = Annotated[str, typer.Option(help="auto, yes or no.")]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Don't end the run when many in a row fail.")
]


def _words(option: str, values: list[str] | None) -> list[str]:
    """The words of an option that may be repeated or be a comma-separated list.

    Nothing is guessed: an empty word is no wish for the default, and a word that is named twice is
    more likely a slip than a wish to be heard once.
    """
    words = [word.strip() for value in values or [] for word in value.split(",")]
    if "" in words:
        given = ",".join(values or [])
        raise UsageError(f"{option} '{given}': has an empty word", "leave it out for the default")
    _once(option, words)
    return words


def _sizes(option: str, values: list[str] | None) -> list[int]:
    words = _words(option, values)
    for word in words:
        # Not int(), which takes signs, underscores and other scripts' digits too.
        if not re.fullmatch("[0-9]{1,9}", word):
            raise UsageError(
                f"{option} {word}: not a whole number", f"for instance {option} 64,1518"
            )
    sizes = [int(word) for word in words]
    _once(option, sizes)
    return sizes


def _once(option: str, words: Sequence[str | int]) -> None:
    for place, word in enumerate(words):
        if word in words[:place]:
            raise UsageError(f"{option} {word}: is named twice", "name each once")


def _check_machine_options(hugepages: str, line_rate: float | None) -> None:
    if hugepages not in ("auto", "yes", "no"):
        raise UsageError(f"--hugepages {hugepages}: auto, yes or no")
    if line_rate is not None and not 0 < line_rate < math.inf:
        raise UsageError(f"--line-rate {line_rate:g}: must be a number above 0, frames per second")


def wide_console() -> Console:
    """A terminal's own width; elsewhere wide enough for every table."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return Console(width=None if sys.stdout.isatty() else 110)


def _given(context: typer.Context) -> list[str]:
    """The options that stand on the command line, by their names there."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name or ""))
        and source.name == "COMMANDLINE"
    ]


def _run(
    context: typer.Context,
    name: str,
    options: dict[str, Any],
    resume: Path | None,
    out: Path | None,
) -> None:
    """Begin a run of this experiment with these options, or go on with one."""
    from linerate import session  # noqa: PLC0415 - as all commands
    from linerate.experiments import find  # noqa: PLC0415
    from linerate.links import use_ports  # noqa: PLC0415

    command = shlex.join(["linerate", *sys.argv[1:]])
    if resume:
        values = find(name).given(options)
        given = {option: values.get(option) for option in _given(context) if option != "--resume"}
        session.resume(name, resume, given, wide_console(), command)
        return
    use_ports(
        options["links"],
        options["generator_ports"],
        options["forwarder_ports"],
        foreign=bool(options.get("generator")),
    )
    when = datetime.now().strftime("%Y%m%d-%H%M%S")
    session.start(name, options, out or Path("out") / f"{name}-{when}", wide_console(), command)


@run_app.command()
def overload(
    context: typer.Context,
    preset: Annotated[
        str, typer.Option(help="demo, quick (20 blocks), screen (40) or claim (150).")
    ] = "quick",
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="null, null2, nearfree2, nearfree2-ip, memif, memif2, veth, veth1, "
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
) -> None:
    """Forward as much as it can: which l2fwd does more, at what cost per packet?"""
    if generator is not None:
        raise UsageError(
            "--generator: overload floods the forwarder, and OTG has no word for sending as fast "
            "as a port takes frames: only the lab's own generator can",
            "linerate run rfc2544 --generator URL",
        )
    _check_machine_options(hugepages, line_rate)
    links = _words("--link", link)
    frame_sizes = _sizes("--sizes", sizes)
    names = _words("--forwarders", forwarders)

    # These import scipy and more: what can be refused without them is refused by now.
    from dataclasses import asdict  # noqa: PLC0415

    from linerate.block_run import Options  # noqa: PLC0415
    from linerate.design import preset as find_preset  # noqa: PLC0415

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
    _run(context, "overload", asdict(options), resume, out)


@run_app.command()
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
) -> None:
    """Take different paths to packets on one wire: what does each carry, at what cost?"""
    _check_machine_options(hugepages, line_rate)
    links = _words("--link", link)
    frame_sizes = _sizes("--sizes", sizes)
    names = _words("--forwarders", forwarders)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.paths.experiment import DEFAULT_LINKS, Options  # noqa: PLC0415
    from linerate.paths.presets import available  # noqa: PLC0415
    from linerate.paths.presets import preset as find_preset  # noqa: PLC0415

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
    _run(context, "paths", asdict(options), resume, out)


@run_app.command()
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
) -> None:
    """Search for what each forwarder carries without loss, and see how it does there."""
    _check_machine_options(hugepages, line_rate)
    links = _words("--link", link)
    names = _words("--forwarders", forwarders)
    asked_tests = _words("--tests", tests)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.otg import IPS, Ip  # noqa: PLC0415
    from linerate.other_generator import named  # noqa: PLC0415
    from linerate.records import DIRECTIONS  # noqa: PLC0415
    from linerate.rfc2544 import presets  # noqa: PLC0415
    from linerate.rfc2544.experiment import Options  # noqa: PLC0415

    version: Ip = look_up(IPS, str(ip), "--ip", "version")
    ways = look_up(DIRECTIONS, directions, "--directions", "choice") if directions else None
    other = named(generator, generator_ca, generator_password_file, insecure=generator_insecure)
    options = Options(
        preset=presets.preset(preset),
        tests=presets.tests_of(asked_tests),
        links=links,
        sizes=presets.named_sizes(",".join(sizes or []), version) or _sizes("--sizes", sizes),
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
    _run(context, "rfc2544", asdict(options), resume, out)


@run_app.command()
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
    seed: Seed = 1,
    line_rate: LineRate = None,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
) -> None:
    """How long a frame takes: inside each forwarder, and there and back, at idle and under load."""
    _check_machine_options(hugepages, line_rate)
    links = _words("--link", link)
    frame_sizes = _sizes("--sizes", sizes)
    names = _words("--forwarders", forwarders)
    kinds = _words("--frames", frames)

    from dataclasses import asdict  # noqa: PLC0415 - as all commands

    from linerate.latency import plan  # noqa: PLC0415
    from linerate.latency.design import Options  # noqa: PLC0415

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
    _run(context, "latency", asdict(options), resume, out)


@run_app.command()
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
    seed: Seed = 1,
    hugepages: Hugepages = "auto",
    keep_going: KeepGoing = False,
) -> None:
    """Pass objects through graphs: what does a node cost in C, in Rust, fused, and in one loop?"""
    _check_machine_options(hugepages, None)
    asked_cells = _words("--cells", cells)
    asked_arms = _words("--arms", arms)

    from dataclasses import asdict, replace  # noqa: PLC0415 - as all commands

    from linerate.graph.design import OPTIONS, Options, check, planned  # noqa: PLC0415
    from linerate.graph.experiment import look  # noqa: PLC0415
    from linerate.graph.presets import preset as find_preset  # noqa: PLC0415

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
        _run(context, "graph", asdict(options), resume, out)
        return
    offered, left_out = look(options)
    options = replace(options, plan=planned(options, offered), left_out=left_out)
    _run(context, "graph", OPTIONS.dump_python(options, mode="json"), resume, out)
