# SPDX-License-Identifier: BSD-3-Clause
"""Options of an experiment, each declared once: on the field that stores it.

An experiment has a module `options` with a dataclass `Options`. A field's annotation has an
`Option`: its name on the command line, its help, its default, and the agreement required to resume,
merge or compare two runs; `own` overrides these for inherited fields. They determine the command
line (`linerate.cli.run_command`), the content of run.json, and what is refused
(`linerate.runs.agreement`). A design stores some options too: both then inherit the field.

These modules import nothing slow: wrong options are refused before scipy is imported. Functions in
annotations have names: a lambda there would not see the module's.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field

from linerate.host.cores.weight import MOST_WEIGHT, WEIGHT
from linerate.host.errors import UsageError, look_up

if TYPE_CHECKING:
    from linerate.links import Link, Ports

# Frame sizes in bytes with the FCS.
MIN_SIZE, MAX_SIZE = 64, 1518

# The agreement of two runs, or of a run and the command line that resumes it.
Rule = Literal["same", "may differ"]

# Replaces an `Option` for facts of a run that no command line sets.
FOUND_AT_START = "found on this machine or in a file when the run began"
# As a default: the preset's attribute of the same name.
FROM_PRESET = "the preset's"


@dataclass(frozen=True, eq=False)
class Agreement:
    """On a field of a design: whether runs that are merged or compared must agree in it.

    `merge_by`, `compare_by`: the part of its value that must be the same; None: all of it.
    """

    name: str
    merge: Rule = "same"
    compare: Rule = "may differ"
    merge_by: Callable[[Any], object] | None = None
    compare_by: Callable[[Any], object] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Option(Agreement):
    """On a field of options: its syntax, and in what runs must agree.

    `resume`: whether a command line that resumes a run must agree with it. `initial`: its value on
    the command line, if not the field's own default. `default`: the value if it is left out, a list
    of words or `FROM_PRESET`; `default_help`: the same in words, if the help says something else.
    `choices`, each of which is a `noun`; `parse`: converts the option's name and the value on the
    command line to the field's value; None: by the field's type.
    """

    name: str = field(kw_only=False)
    help: str = ""
    metavar: str | None = None
    resume: Rule = "same"
    initial: Any = None
    default: object = None
    default_help: str = ""
    choices: Mapping[str, Any] | None = None
    noun: str = "choice"
    parse: Callable[[str, Any], Any] | None = None
    example: str = "64,1518"

    def but(self, **changes: Any) -> Option:
        return replace(self, **changes)

    @property
    def full_help(self) -> str:
        """The help with the default, if the command line does not show one."""
        told = self.default_help
        if not told and self.default is not None:
            told = self.default if isinstance(self.default, str) else words(self.default)
        return f"{self.help} Default: {told}." if told else self.help


@dataclass(frozen=True, eq=False)
class Composite:
    """On a field made of several options: `parts` by the attributes of its value.

    `make`: converts the values of all parts to the field's.
    """

    parts: Mapping[str, Option]
    make: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Extra:
    """An option of a command that does something else than a run (`Experiment.run_extra`).

    `value`: it takes a value.
    """

    name: str
    help: str = ""
    value: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Preset:
    """The amount to measure: blocks; blocks with peers on links without a generator; low-load
    blocks.
    """

    name: str
    blocks: int
    window_s: float
    self_test: int
    lower_load: int
    note: str


# -- values on the command line ------------------------------------------------------------------


def words_of(option: str, values: list[str] | None) -> list[str]:
    """Return the words of an option that may be repeated or be a comma-separated list.

    Mistakes are refused: an empty word does not request the default, and a repeated word is
    probably a mistake.
    """
    found = [word.strip() for value in values or [] for word in value.split(",")]
    if "" in found:
        given = ",".join(values or [])
        raise UsageError(f"{option} '{given}': has an empty word", "leave it out for the default")
    _once(option, found)
    return found


def forwarders_of(option: str, values: list[str] | None) -> list[str]:
    """Return names of forwarders; a file (.toml) stands for those it defines."""
    from linerate.forwarders import named  # noqa: PLC0415 - a slow import

    names = named(words_of(option, values))
    _once(option, names)
    return names


def numbers_of(option: str, values: list[str] | None, example: str = "64,1518") -> list[int]:
    found = words_of(option, values)
    for word in found:
        # int() would also accept signs, underscores and other scripts' digits.
        if not re.fullmatch("[0-9]{1,9}", word):
            raise UsageError(
                f"{option} {word}: not a whole number", f"for instance {option} {example}"
            )
    numbers = [int(word) for word in found]
    _once(option, numbers)
    return numbers


def _once(option: str, found: Sequence[str | int]) -> None:
    for place, word in enumerate(found):
        if word in found[:place]:
            raise UsageError(f"{option} {word}: is named twice", "name each once")


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise `UsageError` for a frame size, in bytes with FCS, that Ethernet does not have."""
    for size in sizes:
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UsageError(f"--sizes {size}: not within {MIN_SIZE} to {MAX_SIZE} bytes")


def repeated(option: str, values: list[str] | None) -> list[str]:
    """Split values that may contain commas."""
    return values or []


def above_0(unit: str = "") -> Callable[[str, float | None], float | None]:
    """Return a check for a number above 0, if any, of this unit."""

    def parse(option: str, value: float | None) -> float | None:
        if value is not None and not 0 < value < math.inf:
            must_be = f"must be a number above 0{unit and ', '}{unit}"
            raise UsageError(f"{option} {value:g}: {must_be}")
        return value

    return parse


def within(least: int, most: int) -> Callable[[str, int], int]:
    """Return a check for a number from the least to the most."""

    def parse(option: str, value: int) -> int:
        if not least <= value <= most:
            raise UsageError(f"{option} {value}: not within {least} to {most}")
        return value

    return parse


def apart_from_blocks(preset: Any) -> Any:
    """Return the part of a preset that applies to each block."""
    return replace(preset, blocks=0, note="")


def _memory(option: str, value: str) -> str:
    if value not in ("auto", "yes", "no"):
        raise UsageError(f"{option} {value}: auto, yes or no")
    return value


# -- options of every experiment -----------------------------------------------------------------

PRESET = Option("--preset", initial="quick", noun="preset", merge="may differ")
LINK = Option("--link")
SIZES = Option("--sizes", help="Frame sizes with FCS, a list.")
FORWARDERS = Option("--forwarders", parse=forwarders_of)
BLOCKS = Option("--blocks", help="Blocks per cell.", default=FROM_PRESET, merge="may differ")
LINE_RATE = Option(
    "--line-rate",
    help="Frames per second that are 100 %, instead of the self-test's.",
    parse=above_0("frames per second"),
)
CPU_WEIGHT = Option(
    "--cpu-weight",
    help="Weight of the run on its CPUs, as a multiple of others', 1 to 100 (for root; control "
    "groups). 1: the same.",
    parse=within(1, MOST_WEIGHT),
    merge="may differ",
)
PROBE = Option(
    "--probe",
    help="Load the probe into programs in some trials, to see how they poll.",
    # It runs in the windows that measure the cost of a packet, and adds to it.
    compare="same",
)


@dataclass(kw_only=True)
class Common:
    """Fields that options and designs of a run share. `line_rate`: 100 % in frames/s."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    seed: Annotated[
        int,
        Option(
            "--seed",
            help="Seed of the order in which things are measured.",
            merge="may differ",
        ),
    ] = 1
    line_rate: Annotated[Annotated[float, Field(gt=0)] | None, LINE_RATE] = None
    generator_ports: Annotated[
        list[str],
        Option(
            "--generator-port",
            help="With --link ports: the generator's port, an OTG location; once or twice.",
            metavar="LOCATION",
            parse=repeated,
            compare="same",
        ),
    ] = field(default_factory=list)
    forwarder_ports: Annotated[
        list[str],
        Option(
            "--forwarder-port",
            help="With --link ports: the port that faces it: pci:ADDRESS, vdev:ARGUMENTS, an "
            "interface, af_xdp:INTERFACE or tap:NAME.",
            metavar="LOCATION",
            parse=repeated,
            compare="same",
        ),
    ] = field(default_factory=list)

    @property
    def foreign(self) -> bool:
        """True if another generator than the lab's sends."""
        return False

    @property
    def ports(self) -> Ports:
        """The link `ports`, with the requested devices."""
        from linerate.links import Ports  # noqa: PLC0415 - a slow import

        return Ports(self.generator_ports, self.forwarder_ports, foreign=self.foreign)

    def link(self, name: str) -> Link:
        """Return the link of that name, as this run uses it."""
        from linerate.links import link  # noqa: PLC0415

        return self.ports if name == self.ports.name else link(name)


METHOD = Option(
    "--method",
    help="auto: forwarders of a block are started together, and share the core or take turns, "
    "where program and link allow it; fresh: each is started for its own windows.",
    initial="auto",
    choices={"auto": "auto", "fresh": "fresh"},
    noun="method",
    # A ratio is of one of them.
    compare="same",
)


@dataclass(kw_only=True)
class Pairing:
    """A field of options and designs. Runs from before there was a choice are `fresh`."""

    method: Annotated[str, METHOD] = "fresh"


@dataclass(kw_only=True)
class Probing:
    """A field of options and designs of experiments that can use the probe."""

    probe: Annotated[bool, PROBE] = True


@dataclass(kw_only=True)
class Options(Common):
    """Options of every experiment; run.json stores them to resume the run.

    None or empty: the preset's or the experiment's own.
    """

    # The help text of the command; its options that are not part of a run.
    summary: ClassVar[str]
    extras: ClassVar[tuple[Extra, ...]] = ()
    # Fields of this class that the experiment keeps and takes no option for.
    unused: ClassVar[tuple[str, ...]] = ()
    # Its comparisons can decide the exit status (`--fail-if`).
    can_fail: ClassVar[bool] = True
    # Overrides inherited fields, by field: the experiment's own option.
    own: ClassVar[Mapping[str, Option]] = {}

    preset: Any
    links: Annotated[list[str], LINK] = field(default_factory=list)
    sizes: Annotated[list[int], SIZES] = field(default_factory=list)
    forwarders: Annotated[list[str], FORWARDERS] = field(default_factory=list)
    blocks: Annotated[int | None, BLOCKS] = None
    # Sessions store the resulting memory, and `linerate.runs.provenance` compares that.
    hugepages: Annotated[
        str, Option("--hugepages", help="auto, yes or no.", parse=_memory, compare="same")
    ] = "auto"
    cpu_weight: Annotated[int, CPU_WEIGHT] = WEIGHT
    keep_going: Annotated[
        bool,
        Option(
            "--keep-going", help="Don't end the run when many in a row fail.", merge="may differ"
        ),
    ] = False


@dataclass(kw_only=True)
class Budget:
    """A field of options and designs: the duration of a session. None: until all is measured."""

    minutes: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Option(
            "--minutes",
            help="A time budget in minutes; --resume runs the rest.",
            parse=above_0(),
            merge="may differ",
        ),
    ] = None


@dataclass(kw_only=True)
class BlockOptions(Probing, Options):
    """Options of experiments that measure in blocks (`linerate.runs.plans.block_plan`)."""

    preset: Preset


# -- parameters of a command ---------------------------------------------------------------------

# An experiment's own options stand between these.
_FIRST = ("preset", "links", "generator_ports", "forwarder_ports", "sizes", "forwarders")
_LAST = ("blocks", "seed", "line_rate", "hugepages", "cpu_weight", "keep_going", "probe")


@dataclass(frozen=True)
class Parameter:
    """An option with the field that stores it, or with a part of that field's value.

    `type`: of the value, without None. `optional`: None is a value.
    """

    option: Option
    field: str
    part: str | None
    type: Any
    optional: bool
    initial: Any

    @property
    def key(self) -> str:
        return f"{self.field}_{self.part}" if self.part else self.field

    @property
    def several(self) -> bool:
        return get_origin(self.type) in (list, tuple)

    def parse(self, value: Any) -> Any:
        """Convert the value on the command line to the field's; raises `UsageError`."""
        option = self.option
        if option.parse:
            return option.parse(option.name, value)
        if self.optional and not value:
            return value if isinstance(value, int | float) else None
        if self.several:
            if get_args(self.type)[0] is int:
                return numbers_of(option.name, value, option.example)
            value = words_of(option.name, value)
        if option.choices is None:
            return value
        if self.several:
            return [look_up(option.choices, word, option.name, option.noun) for word in value]
        return look_up(option.choices, str(value), option.name, option.noun)

    def value_in(self, options: Options) -> object:
        """Return the value as it is given on a command line."""
        value = getattr(options, self.field)
        if self.part:
            return value and getattr(value, self.part)
        if isinstance(value, tuple):
            return list(value)
        return value if isinstance(value, list | str | int | float | None) else value.name

    def default(self, options: Options) -> Any:
        """Return the value if the option is left out; None if there is none."""
        if self.option.default == FROM_PRESET:
            value = getattr(options.preset, self.field)
            return list(value) if isinstance(value, tuple) else value
        return self.option.default


def parameters(kind: type[Options]) -> list[Parameter]:
    """Return the options of an experiment, in the order of its help."""
    found = []
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        if each.name in kind.unused:
            continue
        for said in getattr(hints[each.name], "__metadata__", ()):
            if isinstance(said, Option):
                option = kind.own.get(each.name, said)
                found.append(_parameter(option, each.name, None, hints[each.name], each.default))
            elif isinstance(said, Composite):
                parts = get_type_hints(_without_none(hints[each.name])[0])
                found += [
                    _parameter(option, each.name, part, parts[part], None)
                    for part, option in said.parts.items()
                ]
    return sorted(found, key=_place)


def parse(kind: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the command line's values by `Parameter.key` to values by field; raises
    `UsageError`.
    """
    found: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for each in parameters(kind):
        value = each.parse(given[each.key])
        if each.part:
            parts.setdefault(each.field, {})[each.part] = value
        else:
            found[each.field] = value
    hints = get_type_hints(kind, include_extras=True)
    for name, values in parts.items():
        (said,) = (s for s in hints[name].__metadata__ if isinstance(s, Composite))
        found[name] = said.make(values)
    return found


def words(values: object) -> str:
    return ",".join(map(str, values)) if isinstance(values, Sequence) else str(values)


def _parameter(option: Option, name: str, part: str | None, hint: Any, default: Any) -> Parameter:
    kind, optional = _without_none(hint)
    initial = default if option.initial is None else option.initial
    if initial is MISSING or get_origin(kind) in (list, tuple):
        initial = None
    return Parameter(option, name, part, kind, optional, initial)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return the type alone, and whether None is allowed."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    (kind,) = (each for each in get_args(hint) if each is not type(None))
    return _without_none(kind)[0], True


def _place(each: Parameter) -> int:
    if each.field in _FIRST:
        return _FIRST.index(each.field)
    own = len(_FIRST)
    return own + 1 + _LAST.index(each.field) if each.field in _LAST else own
