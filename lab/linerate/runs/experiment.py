# SPDX-License-Identifier: BSD-3-Clause
"""What the lab asks of an experiment: any can be run, resumed, told again, merged, compared.

A new experiment is one class, a module with its options, and a line in `linerate.runs.registry`. It
keeps what it must know of itself in run.json, as `options` (how to go on) and `design` (what was
asked); all else is in the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

from rich.console import Console

from linerate.records.cells import CellKey
from linerate.records.run_file import Run
from linerate.records.summary import Summary
from linerate.records.trial import Trial
from linerate.runs.agreement import as_stored, check_devices, merge_designs, must_agree, read
from linerate.runs.options import Options, parameters
from linerate.runs.plans.steps import SessionPlan
from linerate.runs.run_summary import Design
from linerate.verdict.stats import level_after, tested_at

AnyOptions = TypeVar("AnyOptions", bound=Options)
AnyDesign = TypeVar("AnyDesign", bound=Design)


class Findings(Protocol):
    """What the records of a run say."""

    @property
    def summary(self) -> Summary: ...

    def files(self) -> dict[str, str]:
        """What to write into the run's directory: the content by the file's name."""

    def show(self, console: Console) -> None:
        """Print the tables and the answer."""


# Link, size, metric and load: what one control stands for.
Gate = tuple[str, int, str, float]


@dataclass(frozen=True)
class Sample:
    """One figure of an arm against its baseline, over the independent setups of a run.

    `logs`: log of arm over baseline, one for each setup on which both were measured; `planned`: how
    many blocks were begun.
    `zero_blocks`: on so many setups one of the two was 0, which has no logarithm. `obstacle`: why a
    change of this figure would say nothing about the programs, if so. `level`: the offered load,
    which both runs must have alike for the figures to compare, in frames per second. `unsound`: why
    the figure has no verdict.
    """

    link: str
    size: int
    arm: str
    baseline: str
    metric: str
    words: str
    logs: tuple[float, ...]
    planned: int
    better: Literal["higher", "lower"] = "higher"
    load_share: float | None = None
    level: float | None = None
    zero_blocks: int = 0
    obstacle: str | None = None
    unsound: str | None = None

    @property
    def gate(self) -> Gate:
        return self.link, self.size, self.metric, self.load_share or 0.0

    @property
    def key(self) -> tuple[str, int, str, str, str, float]:
        """What it has in common with the same figure of another run."""
        return self.link, self.size, self.arm, self.baseline, self.metric, self.load_share or 0.0


@dataclass(frozen=True)
class Control:
    """The A/A arm by one metric at one load: `logs` as in `Sample`."""

    link: str
    size: int
    metric: str
    logs: tuple[float, ...]
    load_share: float | None = None

    @property
    def gate(self) -> Gate:
        return self.link, self.size, self.metric, self.load_share or 0.0


@dataclass(frozen=True)
class Comparable:
    """What another run of the same cells can be compared with."""

    samples: list[Sample] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)

    def add(self, other: Comparable) -> None:
        self.samples.extend(other.samples)
        self.controls.extend(other.controls)


@dataclass(frozen=True)
class SearchedRate:
    """What one search of an arm found for one goal, in frames per second over all directions.

    `block`: as `Trial.pairing`. A load reaches the goal if it loses no more than `loss_ratio`.
    `reached_pps`: the greatest that did; 0: not even the least load. `missed_pps`: the least above
    it that did not; None: the greatest that could be offered reached it.
    """

    cell: CellKey
    arm: str
    block: tuple[int, int]
    goal: str
    loss_ratio: float
    reached_pps: float
    missed_pps: float | None


class Experiment(ABC, Generic[AnyOptions, AnyDesign]):
    """One kind of run. Stateless.

    What its options and designs declare of their fields decides what is kept, refused on resume,
    merged and compared.
    """

    # By which `find` knows it.
    name: str
    options_type: type[AnyOptions]
    design_type: type[AnyDesign]
    # One of so many blocks is judged: the others choose what is. 0: verdicts are not by cells, and
    # any number of blocks may tell something.
    judged_in: int = 1
    # CPUs that a session leases: the generator's and the forwarder's, and others that it loads.
    cpus: int = 2

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> AnyOptions:
        """The options of a command line from their values by field.

        Unless a run is resumed, what they leave to this machine is looked up.
        """
        return self.options_type(**values)

    def promises_verdicts(self, design: Mapping[str, Any]) -> bool:
        """Whether a run of this design, whose blocks could show nothing, is refused: its preset
        does not say that it gives no verdicts.
        """
        del design
        return True

    def run_extra(self, option: str, values: Mapping[str, Any], console: Console) -> None:
        """Do what one of `extras` asks for instead of a run; `values` as for `make_options`."""
        raise NotImplementedError

    @abstractmethod
    def design_of(self, options: AnyOptions) -> AnyDesign:
        """What these options come to, every default put in; raises `UsageError`."""

    def defaults(self, options: AnyOptions) -> dict[str, Any]:
        """What stands for options that were left out, by field."""
        return {
            each.field: default
            for each in parameters(self.options_type)
            if getattr(options, each.field) in (None, [])
            and (default := each.default(options)) is not None
        }

    @abstractmethod
    def plan(self, options: AnyOptions) -> SessionPlan:
        """What a session of a run with these options measures."""

    @abstractmethod
    def findings(self, run: Run, trials: list[Trial]) -> Findings:
        """What the records say, told with what run.json says. Looks at nothing else."""

    @abstractmethod
    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """What another run can be compared with."""

    def told(self, run: Run, trials: list[Trial]) -> Findings:
        """`findings`, at the level of a run that may have been looked at before."""
        with tested_at(level_after(run.looks or 1)):
            return self.findings(run, trials)

    def searched_rates(self, found: Findings) -> list[SearchedRate]:
        """What searches found, of each that came to an end; none where nothing is searched for.

        `found`: by this experiment's `findings`.
        """
        return []

    # -- what follows from it ------------------------------------------------------------------

    def read_options(self, options: dict[str, Any]) -> AnyOptions:
        """The options in run.json, which may name devices."""
        found = read(self.options_type, options, "options")
        check_devices(found.links, found, "options")
        return found

    def read_design(self, design: dict[str, Any]) -> AnyDesign:
        """The design in run.json, which may name devices."""
        found = read(self.design_type, design, "design")
        check_devices([cell.link for cell in found.cells], found, "design")
        return found

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        """`design_of`, from and to run.json."""
        return as_stored(self.design_of(self.read_options(options)))

    def stored(self, design: dict[str, Any]) -> dict[str, Any]:
        """A design of run.json, with what this version has more at its defaults."""
        return as_stored(self.read_design(design))

    def values(self, options: AnyOptions) -> dict[str, object]:
        """The value of each option, by its name on the command line (`--seed`)."""
        return {each.option.name: each.value_in(options) for each in parameters(self.options_type)}

    def effective_values(self, options: dict[str, Any]) -> dict[str, object]:
        """`values` of a run, with what stands for the options that were left out."""
        found = self.read_options(options)
        return self.values(replace(found, **self.defaults(found)))

    def with_memory(self, options: dict[str, Any], memory: str) -> dict[str, Any]:
        """The options with the memory that the run began with instead of `auto`."""
        return {**options, "hugepages": "yes" if memory == "hugepages" else "no"}

    def merge(self, designs: Sequence[AnyDesign]) -> AnyDesign:
        """The design of runs put together; raises `RunError` naming what keeps them apart."""
        return merge_designs(designs, self.options_type)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`merge`, from and to run.json."""
        return as_stored(self.merge([self.read_design(each) for each in designs]))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        """What compared figures hang on beside forwarders, links and sizes, by option: runs that
        differ in it are not compared.
        """
        return must_agree(self.read_design(design), "compare")
