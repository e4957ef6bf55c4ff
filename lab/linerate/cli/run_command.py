# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run EXPERIMENT`: a command for each experiment, made of the options that it declares.

Only the options are imported until they are checked: the modules that measure are slow to import.
"""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from linerate.cli.console import wide_console
from linerate.host.errors import UsageError, look_up
from linerate.host.exit_status import ExitStatus
from linerate.runs.options import Extra, Options, Parameter, parameters, parse
from linerate.runs.registry import experiments, options_of

if TYPE_CHECKING:
    from linerate.runs.experiment import Findings

# Options for a run's place and its exit status; they are not part of the run.
Out = Annotated[
    Path | None, typer.Option("--out", help="Directory for the run. Default: out/EXPERIMENT-TIME.")
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Go on with the run in this directory, which was interrupted, with its options; with "
        "--blocks N, add blocks to one that has ended.",
    ),
]
FailIf = Annotated[
    str | None,
    typer.Option(
        "--fail-if",
        metavar="slower",
        help="Exit with 1 if a forwarder is slower than the baseline by more than the margin, and "
        "with 3 if that is undecided.",
    ),
]


class _Experiments(TyperGroup):
    """The group of experiments, each imported on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(experiments())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command(cmd_name) if cmd_name in experiments() else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Suggest names for a wrong one: the base class does not know the names."""
        look_up(experiments(), args[0], "run", "experiment")
        return super().resolve_command(ctx, args)


run_app = typer.Typer(
    cls=_Experiments, no_args_is_help=True, rich_markup_mode=None, help="Run an experiment."
)


def command(name: str) -> Any:
    """Return the command that runs this experiment."""
    kind = options_of(name)

    def call(context: typer.Context, **given: Any) -> ExitStatus:
        return _run(name, kind, _on_the_command_line(context), given)

    signature = {
        "context": _parameter("context", typer.Context),
        **{each.key: _option(each) for each in parameters(kind)},
        **{_field(each): _extra(each) for each in kind.extras},
        "out": _parameter("out", Out, None),
        "resume": _parameter("resume", Resume, None),
    }
    if kind.can_fail:
        signature["fail_if"] = _parameter("fail_if", FailIf, None)
    call.__annotations__ = {each.name: each.annotation for each in signature.values()}
    setattr(call, "__signature__", inspect.Signature(list(signature.values())))  # noqa: B010
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, help=kind.summary)(call)
    return typer.main.get_command(app)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _option(each: Parameter) -> inspect.Parameter:
    """Return the option for typer: lists as words, names of presets and choices as text."""
    option, kind = each.option, each.type
    name = option.name
    if kind is bool and each.initial:
        name = f"{name}/--no-{name.removeprefix('--')}"
    if each.several:
        kind = list[str]
    elif kind not in (bool, int, float):
        kind = int if all(isinstance(value, int) for value in get_args(kind) or [""]) else str
    if each.initial is None and kind is not bool:
        kind = kind | None
    said = typer.Option(name, help=option.full_help, metavar=option.metavar)
    initial = bool(each.initial) if kind is bool else each.initial
    return _parameter(each.key, Annotated[kind, said], initial)


def _extra(each: Extra) -> inspect.Parameter:
    said = typer.Option(each.name, help=each.help, hidden=each.hidden)
    kind: Any = str | None if each.value else bool
    return _parameter(_field(each), Annotated[kind, said], None if each.value else False)


def _field(each: Extra) -> str:
    return each.name.removeprefix("--").replace("-", "_")


def _on_the_command_line(context: typer.Context) -> set[str]:
    """Return the parameters whose options are on the command line."""
    return {
        parameter.name
        for parameter in context.command.params
        if parameter.name
        and (source := context.get_parameter_source(parameter.name))
        and source.name == "COMMANDLINE"
    }


def know_further_forwarders() -> None:
    """Read the definitions in the folders of `LINERATE_FORWARDERS`. Only commands that start
    programs need them: everything else is in the records.
    """
    if os.environ.get("LINERATE_FORWARDERS"):
        from linerate.forwarders import add_from_environment  # noqa: PLC0415 - a slow import

        add_from_environment()


def _run(
    name: str, kind: type[Options], there: Iterable[str], given: Mapping[str, Any]
) -> ExitStatus:
    """Begin a run of this experiment with these options, or continue one."""
    resume, fail_if = given["resume"], given.get("fail_if")
    extras = [each for each in kind.extras if _field(each) in there]
    if resume and extras:
        raise UsageError(
            f"{extras[0].name} with --resume: a run goes on with the design that it began with",
            "leave one of them out",
        )
    know_further_forwarders()
    values = parse(kind, given)

    # These import scipy and more: all checks that work without them are done by now.
    from linerate.runs import session  # noqa: PLC0415
    from linerate.runs.agreement import as_stored  # noqa: PLC0415
    from linerate.runs.fail_if import CONDITIONS  # noqa: PLC0415
    from linerate.runs.registry import find  # noqa: PLC0415

    experiment = find(name)
    if extras:
        experiment.run_extra(extras[0].name, values, wide_console())
        return ExitStatus.DONE
    if fail_if is not None:
        look_up(CONDITIONS, fail_if, "--fail-if", "condition")
    asked = experiment.make_options(values, resuming=resume is not None)
    line = shlex.join(["linerate", *sys.argv[1:]])
    if resume:
        own = {
            each.option.name: each.value_in(asked)
            for each in parameters(kind)
            if each.key in there and each.option.resume == "same"
        }
        if "out" in there:
            own["--out"] = str(given["out"])
        return _status(session.resume(name, resume, own, wide_console(), line), fail_if)
    asked.ports.check(asked.links)
    when = datetime.now().strftime("%Y%m%d-%H%M%S")
    out = given["out"] or Path("out") / f"{name}-{when}"
    return _status(session.start(name, as_stored(asked), out, wide_console(), line), fail_if)


def _status(found: Findings, fail_if: str | None) -> ExitStatus:
    """Return the exit status for the findings, if one was requested."""
    if fail_if is None:
        return ExitStatus.DONE
    from linerate.host.text import printable  # noqa: PLC0415
    from linerate.runs.fail_if import line_of, status_of  # noqa: PLC0415

    print(printable(line_of(found.summary.comparisons)))
    return status_of(found.summary.comparisons)
