# SPDX-License-Identifier: BSD-3-Clause
"""The interface of an experiment: any can be run, resumed, reported, merged, compared.

A new experiment is one class, a module with its options, and a line in `linerate.runs.registry`. It
stores its parameters in run.json, as `options` (needed to resume) and `design` (the request);
everything else is in the records.
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
    """The results from a run's records."""

    @property
    def summary(self) -> Summary: ...

    def files(self) -> dict[str, str]:
        """Return the files to write into the run's directory: the content by the file's name."""

    def show(self, console: Console) -> None:
        """Print the tables and the answer."""


# Link, size, metric and load: the scope of one control.
Gate = tuple[str, int, str, float]


@dataclass(frozen=True)
class Sample:
    """One figure of an arm against its baseline, over the independent setups of a run.

    `logs`: log of arm over baseline, one for each setup on which both were measured; `planned`: how
    many blocks were begun. `zero_blocks`: the number of setups on which one of the two was 0, which
    has no logarithm. `obstacle`: why a change of this figure would say nothing about the programs,
    if so. `level`: the offered load in frames per second, which must be the same in both runs.
    `unsound`: why the figure has no verdict.
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
        """The key that the same figure of another run shares."""
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
    """The figures that can be compared with another run of the same cells."""

    samples: list[Sample] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)

    def add(self, other: Comparable) -> None:
        self.samples.extend(other.samples)
        self.controls.extend(other.controls)


@dataclass(frozen=True)
class SearchedRate:
    """The result of one search of an arm for one goal, in frames per second over all directions.

    `block`: as `Trial.pairing`. A load reaches the goal if it loses no more than `loss_ratio`.
    `reached_pps`: the greatest that did; 0: not even the least load. `missed_pps`: the least above
    it that did not; None: the greatest possible load reached it.
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

    The declarations of the fields of its options and designs decide what is stored, refused on
    resume, merged and compared.
    """

    # The experiment's name for `find`.
    name: str
    options_type: type[AnyOptions]
    design_type: type[AnyDesign]
    # One of so many blocks is judged, the others choose. 0: verdicts are not by cells, and any
    # number of blocks may give one.
    judged_in: int = 1
    # CPUs that a session leases: the generator's and the forwarder's, and others that it loads.
    cpus: int = 2

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> AnyOptions:
        """Make options from the command line's values by field.

        Unless a run is resumed, values that depend on this machine are filled in.
        """
        return self.options_type(**values)

    def promises_verdicts(self, design: Mapping[str, Any]) -> bool:
        """Return True if a run with too few blocks for a verdict is refused: its preset does not
        say that it gives no verdicts.
        """
        del design
        return True

    def run_extra(self, option: str, values: Mapping[str, Any], console: Console) -> None:
        """Run one of `extras` instead of the experiment; `values` as for `make_options`."""
        raise NotImplementedError

    @abstractmethod
    def design_of(self, options: AnyOptions) -> AnyDesign:
        """Return the design of these options, with every default filled in; raises `UsageError`."""

    def defaults(self, options: AnyOptions) -> dict[str, Any]:
        """Return the values of options that were left out, by field."""
        return {
            each.field: default
            for each in parameters(self.options_type)
            if getattr(options, each.field) in (None, [])
            and (default := each.default(options)) is not None
        }

    @abstractmethod
    def plan(self, options: AnyOptions) -> SessionPlan:
        """Return the plan of a session with these options."""

    @abstractmethod
    def findings(self, run: Run, trials: list[Trial]) -> Findings:
        """Compute the findings from the records and run.json, and from nothing else."""

    @abstractmethod
    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """Return the figures that can be compared with another run."""

    def told(self, run: Run, trials: list[Trial]) -> Findings:
        """Return `findings` at the level of a run that may have been looked at before."""
        with tested_at(level_after(run.looks or 1)):
            return self.findings(run, trials)

    def searched_rates(self, found: Findings) -> list[SearchedRate]:
        """Return the results of all completed searches; empty if the experiment does not search.

        `found`: by this experiment's `findings`.
        """
        return []

    # -- what follows from it ------------------------------------------------------------------

    def read_options(self, options: dict[str, Any]) -> AnyOptions:
        """Read the options in run.json, which may name devices."""
        found = read(self.options_type, options, "options")
        check_devices(found.links, found, "options")
        return found

    def read_design(self, design: dict[str, Any]) -> AnyDesign:
        """Read the design in run.json, which may name devices."""
        found = read(self.design_type, design, "design")
        check_devices([cell.link for cell in found.cells], found, "design")
        return found

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        """`design_of`, from and to run.json."""
        return as_stored(self.design_of(self.read_options(options)))

    def stored(self, design: dict[str, Any]) -> dict[str, Any]:
        """Return a design of run.json, with this version's additional fields at their defaults."""
        return as_stored(self.read_design(design))

    def values(self, options: AnyOptions) -> dict[str, object]:
        """Return the value of each option, by its name on the command line (`--seed`)."""
        return {each.option.name: each.value_in(options) for each in parameters(self.options_type)}

    def effective_values(self, options: dict[str, Any]) -> dict[str, object]:
        """Return `values` of a run, with the defaults of options that were left out."""
        found = self.read_options(options)
        return self.values(replace(found, **self.defaults(found)))

    def with_memory(self, options: dict[str, Any], memory: str) -> dict[str, Any]:
        """Return the options with the memory that the run began with instead of `auto`."""
        return {**options, "hugepages": "yes" if memory == "hugepages" else "no"}

    def merge(self, designs: Sequence[AnyDesign]) -> AnyDesign:
        """Merge the designs of several runs; raises `RunError` naming the difference."""
        return merge_designs(designs, self.options_type)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`merge`, from and to run.json."""
        return as_stored(self.merge([self.read_design(each) for each in designs]))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        """Return, by option, the values on which compared figures depend beside forwarders, links
        and sizes: runs that differ in them are not compared.
        """
        return must_agree(self.read_design(design), "compare")
