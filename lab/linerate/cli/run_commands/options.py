# SPDX-License-Identifier: BSD-3-Clause
"""What the options of several experiments have in common, and how a run begins."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from linerate.host.errors import OutputError, UsageError, look_up
from linerate.host.exit_status import ExitStatus

if TYPE_CHECKING:
    from linerate.runs.experiment import Findings

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

FailIf = Annotated[
    str | None,
    typer.Option(
        metavar="slower",
        help="Exit with 1 if a forwarder is slower than the baseline by more than the margin, and "
        "with 3 if that cannot be told.",
    ),
]
# Options that say where a run goes or what its end means: no part of the run.
_NOT_OF_THE_RUN = ("--resume", "--fail-if")


def words_of(option: str, values: list[str] | None) -> list[str]:
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


def forwarders_of(values: list[str] | None) -> list[str]:
    """The names that an option --forwarders gives; a file (.toml) stands for those it defines."""
    from linerate.forwarders import named  # noqa: PLC0415 - as all commands

    names = named(words_of("--forwarders", values))
    _once("--forwarders", names)
    return names


def numbers_of(option: str, values: list[str] | None, example: str = "64,1518") -> list[int]:
    words = words_of(option, values)
    for word in words:
        # Not int(), which takes signs, underscores and other scripts' digits too.
        if not re.fullmatch("[0-9]{1,9}", word):
            raise UsageError(
                f"{option} {word}: not a whole number", f"for instance {option} {example}"
            )
    numbers = [int(word) for word in words]
    _once(option, numbers)
    return numbers


def _once(option: str, words: Sequence[str | int]) -> None:
    for place, word in enumerate(words):
        if word in words[:place]:
            raise UsageError(f"{option} {word}: is named twice", "name each once")


def check_machine_options(hugepages: str, line_rate: float | None) -> None:
    if hugepages not in ("auto", "yes", "no"):
        raise UsageError(f"--hugepages {hugepages}: auto, yes or no")
    if line_rate is not None and not 0 < line_rate < math.inf:
        raise UsageError(f"--line-rate {line_rate:g}: must be a number above 0, frames per second")


# Wider than every table: in a pipe or a file nothing is gained by breaking a figure in two.
WIDE = 200


def wide_console() -> Console:
    """A terminal's own width; elsewhere wide enough for every table."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return Console(width=None if sys.stdout.isatty() else WIDE)


def _given(context: typer.Context) -> list[str]:
    """The options of the run that stand on the command line, by their names there."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name or ""))
        and source.name == "COMMANDLINE"
        and parameter.opts[0] not in _NOT_OF_THE_RUN
    ]


def run(
    context: typer.Context,
    name: str,
    options: dict[str, Any],
    resume: Path | None,
    out: Path | None,
    fail_if: str | None = None,
) -> ExitStatus:
    """Begin a run of this experiment with these options, or go on with one."""
    from linerate.links import use_ports  # noqa: PLC0415
    from linerate.runs import session  # noqa: PLC0415 - as all commands
    from linerate.runs.fail_if import CONDITIONS  # noqa: PLC0415
    from linerate.runs.registry import find  # noqa: PLC0415

    if fail_if is not None:
        look_up(CONDITIONS, fail_if, "--fail-if", "condition")
    command = shlex.join(["linerate", *sys.argv[1:]])
    if resume:
        values = find(name).given(options)
        given = {option: values.get(option) for option in _given(context)}
        found = session.resume(name, resume, given, wide_console(), command)
        return _status(found, fail_if)
    use_ports(
        options["links"],
        options["generator_ports"],
        options["forwarder_ports"],
        foreign=bool(options.get("generator")),
    )
    when = datetime.now().strftime("%Y%m%d-%H%M%S")
    directory = out or Path("out") / f"{name}-{when}"
    return _status(session.start(name, options, directory, wide_console(), command), fail_if)


def _status(found: Findings, fail_if: str | None) -> ExitStatus:
    """Return what the findings answer where something was asked."""
    if fail_if is None:
        return ExitStatus.DONE
    from linerate.runs.fail_if import line_of, status_of  # noqa: PLC0415 - as all commands

    print(line_of(found.summary.comparisons))
    return status_of(found.summary.comparisons)
