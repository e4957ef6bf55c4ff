# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options; `linerate.cli.entry` starts them and prints their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linerate import __version__
from linerate.cli.console import wide_console
from linerate.cli.run_command import run_app
from linerate.host.cores.weight import WEIGHT
from linerate.host.errors import UsageError
from linerate.host.exit_status import ExitStatus
from linerate.runs.options import CPU_WEIGHT

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measures packet forwarders on the same link and says which differences are real.",
)
app.add_typer(run_app, name="run")


# The common options of duel and instructions.
_ProgramA = Annotated[
    str,
    typer.Argument(
        metavar="A", help="A forwarder's name, a TOML file, or a command line in quotes."
    ),
]
_DuelLink = Annotated[
    str | None,
    typer.Option(help="null2, frames2, ... Default: null2, or frames2 with --traffic."),
]
_DuelLinks = Annotated[
    str | None,
    typer.Option(
        help="null2, frames2, ... or a list: a duel on each. Default: null2, or frames2 with "
        "--traffic."
    ),
]
_Size = Annotated[int, typer.Option(help="Frame size in bytes with FCS.")]
_Wait = Annotated[str, typer.Option(help="Longest wait for CPUs that other labs use: 60s or 10m.")]
_Lcores = Annotated[
    str, typer.Option(help="Lcores of a command line in quotes: a number, or idle-main.")
]


def _on(link: str | None, traffic: list[str] | None) -> str:
    if link is not None:
        return link
    return "frames2" if traffic else "null2"


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"linerate {__version__}")
        raise typer.Exit()


@app.command()
def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", show_default=False, help="Runs' directories.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="With several: the new directory that they are merged into.")
    ] = None,
) -> None:
    """Make a run's report again, or merge several runs.

    Summary and report are made from the records. For duels (linerate duel --out DIR) it makes their
    page again, with the runs below DIR.
    """
    from linerate.cli import duels_report  # noqa: PLC0415 - as all commands
    from linerate.runs.kept import rebuild  # noqa: PLC0415

    if duels_report.has_duels(directories):
        duels_report.report(directories, out, wide_console())
        return
    rebuild.report(directories, out, wide_console())


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="DIR_A", help="The run to compare with.")],
    after: Annotated[Path, typer.Argument(metavar="DIR_B", help="The run that may be slower.")],
    margin: Annotated[str, typer.Option(help="Permitted slowdown: 2% or 0.02.")] = "2%",
    strict: Annotated[
        bool, typer.Option(help="Exit with 3, not 0, if a comparison is undecided or invalid.")
    ] = True,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> ExitStatus:
    """Check if a forwarder became slower from one run to another.

    Exit status: 0 none did beyond the margin, 1 at least one did, 2 wrong options or runs that
    cannot be compared, 3 undecided or invalid (0 with --no-strict), 4 an error.
    """
    from linerate.cli import compare_screen as screen  # noqa: PLC0415 - as all commands

    return screen.run(
        before, after, margin, strict=strict, json_output=json_output, console=wide_console()
    )


@app.command()
def advise(  # noqa: PLR0917 - what can be asked
    rate: Annotated[
        str, typer.Option(help="Frames per second over all directions: 2Mpps, 500kpps, 2000000.")
    ],
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            show_default=False,
            help="Runs' directories, or directories with runs below them. Default: out.",
        ),
    ] = None,
    size: _Size = 64,
    latency: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERCENTILE:TIME",
            help="A limit for round trips as the sender sees them: p99:50us. May be repeated.",
        ),
    ] = None,
    loss: Annotated[str, typer.Option(help="Permitted loss: 0.5% or 0.005.")] = "0",
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> ExitStatus:
    """Find which forwarder carries a rate, and on how many cores.

    Uses the records of runs (paths, rfc2544, latency, overload, l3fwd, cloud) and nothing else: no
    figure is interpolated, scaled to more cores or applied to another machine.

    linerate advise --rate 2Mpps --size 64 --latency p99:50us out/rfc2544 out/latency

    Exit status: 0 at least one forwarder does in one setting, 1 no measured forwarder does, 2 wrong
    options or directories, 3 the records do not answer it, 4 an error.
    """
    from linerate.cli import advise_command as command  # noqa: PLC0415 - as all commands

    asked = command.asked_of(rate, size, latency or [], loss)
    return command.run(directories or [], asked, wide_console(), json_output=json_output)


@app.command()
def duel(  # noqa: PLR0917 - what can be asked
    a: _ProgramA,
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            show_default=False,
            help="The one that may be slower; with --baseline the only one.",
        ),
    ] = None,
    link: _DuelLinks = None,
    traffic: Annotated[
        list[str] | None,
        typer.Option(
            help="Frames: a capture (.pcap, .pcapng), an OTG configuration (.json, .yaml) or a "
            "flow as the generator takes it. Given twice: one for each of two ports."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(help="With link frames: check first that both send valid and equal packets."),
    ] = True,
    margin: Annotated[str, typer.Option(help="Permitted slowdown.")] = "2%",
    within: Annotated[
        str | None,
        typer.Option(
            show_default=False,
            help="Time limit on each link: 60s or 2m; one round is always made. Default: "
            "60s, with --bisect 5m.",
        ),
    ] = None,
    even_if_same: Annotated[
        bool,
        typer.Option("--even-if-same", help="Keep measuring even if both run the same code."),
    ] = False,
    starts: Annotated[
        int,
        typer.Option(help="Starts of each program in a round, 2 to 16, if they fit into memory."),
    ] = 4,
    size: _Size = 64,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the order. Default: another each time.")
    ] = (None),
    wait: _Wait = "10m",
    hugepages: Annotated[str, typer.Option(help="auto, yes or no.")] = "auto",
    cpu_weight: Annotated[int, typer.Option("--cpu-weight", help=CPU_WEIGHT.help)] = WEIGHT,
    lcores: _Lcores = "1",
    method: Annotated[str, typer.Option(help="auto, standing or turns.")] = "auto",
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare with the program that is kept in FILE."),
    ] = None,
    keep_baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the program in FILE (and FILE.program); measure nothing."
        ),
    ] = None,
    build: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Run this first, in a shell: it makes B.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain the answer: count the instructions of both by valgrind."
        ),
    ] = False,
    bisect: Annotated[
        bool,
        typer.Option(
            "--bisect",
            help="For git bisect run: exit status 0 good, 1 bad, 125 does not build or run, or not "
            "decided; 128 or more ends the bisect.",
        ),
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as JUnit XML.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer as Markdown for a pull request."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the record there, and write a page.")
    ] = None,
    repeat_with: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            hidden=True,
            help="For scripts around this one: the command that reports print to repeat the duel.",
        ),
    ] = None,
    which: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS",
            hidden=True,
            help="For scripts around this one, given twice: names for A and B, such as a commit.",
        ),
    ] = None,
) -> int:
    """Check if program B is slower than program A.

    Starts both several times on one CPU, at once (standing) or in turns of some 60 ms, until the
    question is answered or the time is over. A command line has {eal} where EAL's options go, and
    {portmask} or {ports} for its ports, or {rx} and {tx} for interfaces of the kernel:

    linerate duel './fw-old {eal} -- -p {portmask}' './fw-new {eal} -- -p {portmask}'

    A list of names, such as c-l2fwd,c-l2fwd-clang, is a list of builds; the fastest takes part.

    Exit status: 0 not slower by more than the margin, 1 slower by more, 2 wrong options, 3
    undecided or no comparison, 4 a program does not start, or an error, 5 other labs had the CPUs.
    """
    from linerate.cli import duel_command, duel_options  # noqa: PLC0415 - as all commands

    where = duel_options.Where(
        _on(link, traffic),
        hugepages,
        method,
        lcores,
        tuple(traffic or ()),
        wait,
        cpu_weight,
    )
    around = duel_options.Around(
        baseline, build, bisect=bisect, json=json_output, junit=junit, markdown=markdown,
        explain=explain, out=out, repeat_with=repeat_with, which=tuple(which or ()),
    )  # fmt: skip
    if keep_baseline is not None:
        duel_options.check_keeping(keep_baseline, b, around)
        return duel_command.keep(keep_baseline, a, where, wide_console())
    asked = duel_options.asked_of(
        margin, within, starts, size, seed, bisect=bisect, check=check, code=not even_if_same
    )
    words = (a,) if b is None else (a, b)
    return duel_command.run(words, where, asked, around, wide_console())


@app.command()
def instructions(  # noqa: PLR0917 - what can be asked
    a: _ProgramA,
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The program to compare with.")
    ] = None,
    most: Annotated[
        str | None, typer.Option("--max", help="Permitted increase from A to B, such as +1%.")
    ] = None,
    link: _DuelLink = None,
    traffic: Annotated[list[str] | None, typer.Option(help="Frames, as for linerate duel.")] = None,
    packets: Annotated[int, typer.Option(help="Least number of packets to count over.")] = 500_000,
    size: _Size = 64,
    lcores: _Lcores = "1",
    wait: _Wait = "10m",
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> ExitStatus:
    """Count the instructions that a program executes per packet.

    Valgrind's callgrind counts instructions, branches and cache misses, by function. It counts A
    twice; the difference is the tolerance. A busy machine does not change the counts. Fewer
    instructions are not always less time: linerate duel measures time.

    Exit status: 0 no more than --max allows, or no --max; 1 more; 2 wrong options; 3 the tolerance
    is larger than --max; 4 an error.
    """
    from linerate.cli import instructions_command as command  # noqa: PLC0415 - as all commands

    words = (a,) if b is None else (a, b)
    return command.run(
        words,
        command.asked_of(
            command.Asked(
                _on(link, traffic),
                lcores,
                size,
                packets,
                tuple(traffic or ()),
                wait=wait,
            ),
            most,
            len(words),
        ),
        wide_console(),
        json_output=json_output,
    )


@app.command()
def doctor(
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> ExitStatus:
    """Show what this machine can do, and what is missing."""
    from linerate.cli import doctor as checkup  # noqa: PLC0415 - a slow import

    findings = checkup.examine()
    if json_output:
        print(checkup.as_json(findings))
    else:
        checkup.show(findings, wide_console())
    return ExitStatus.DONE if checkup.can_run(findings) else ExitStatus.CANNOT_RUN


@app.command(
    # The program's own options begin after its name, with or without `--` before it.
    context_settings={"allow_interspersed_args": False},
)
def attach(
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS", show_default=False)],
    one_in: Annotated[
        str | None,
        typer.Option(help="Measure latency in 1 of N received bursts; 0: in none. Default: 64."),
    ] = None,
    probe: Annotated[
        Path | None, typer.Option(help="The probe's file. Default: the one of this build.")
    ] = None,
) -> None:
    """Run a DPDK program with the probe in it.

    The probe measures bursts, busy time and latency, which linerate top shows.
    """
    from linerate.cli import attach as attaching  # noqa: PLC0415 - as all commands

    wanted = None if one_in is None else attaching.parse_one_in(one_in)
    attaching.become(attaching.prepare(command, wanted, probe))


@app.command()
def trex_convert(  # noqa: PLR0917 - what can be asked
    profile: Annotated[
        Path,
        typer.Argument(metavar="PROFILE.py", show_default=False, help="A stateless TRex profile."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Default: standard output."),
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]LOCATION",
            help="A port, with a location of the generator; several may be given. Default: "
            "p0=ring:loop.",
        ),
    ] = None,
    tunables: Annotated[
        str, typer.Option("-t", "--tunables", help="As TRex has them: fsize=64,vm=inc.")
    ] = "",
    multiplier: Annotated[
        str,
        typer.Option("-m", "--multiplier", help="As TRex has it: 2, 10kpps, 1gbps, 1gbpsl1, 50%."),
    ] = "1",
    src_mac: Annotated[
        str, typer.Option(help="Source address of packets that have none of their own.")
    ] = "02:00:00:00:00:01",
    dst_mac: Annotated[
        str, typer.Option(help="Destination address of packets that have none of their own.")
    ] = "02:00:00:00:00:02",
) -> None:
    """Convert a TRex profile to a configuration for the generator.

    The profile is a Python program: it is run without privileges, network or files to write. What
    cannot be converted is refused, with the stream's name and line; what differs is told.
    """
    from linerate.traffic.trex import command  # noqa: PLC0415 - as all commands
    from linerate.traffic.trex.convert import Asked  # noqa: PLC0415

    asked = Asked(profile, port or (), tunables, multiplier, src_mac, dst_mac)
    command.run(asked, output)


@app.command()
def top(
    prefix: Annotated[
        str | None,
        typer.Argument(help="Its file prefix. Default: the only one there is."),
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two screens.")] = 1.0,
    count: Annotated[
        int | None, typer.Option(help="Number of screens. Default: until the program ends.")
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per interval and line.")
    ] = False,
) -> None:
    """Show a running DPDK program, live."""
    if not 0.1 <= interval <= 3600:
        raise UsageError(f"--interval {interval:g}: from 0.1 to 3600 seconds")
    if count is not None and count < 1:
        raise UsageError(f"--count {count}: at least 1")
    from linerate.telemetry.top.discover import find  # noqa: PLC0415 - as all commands
    from linerate.telemetry.top.watch import run  # noqa: PLC0415

    run(find(prefix), interval, count, wide_console(), json_output)
