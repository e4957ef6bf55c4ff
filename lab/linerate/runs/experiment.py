# SPDX-License-Identifier: BSD-3-Clause
"""What the lab asks of an experiment: any can be run, resumed, told again, merged, compared.

A new experiment is one class and a clause in `find`. It keeps what it must know of itself in
run.json, as `options` (how to go on) and `design` (what was asked); all else is in the records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rich.console import Console

from linerate.host.cpus import Cores
from linerate.host.process import RunDirectory
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.summary import Summary
from linerate.records.trial import Trial
from linerate.trial.trial import Bench


class Running(Protocol):
    """A session under way. `bench` tells what it measures with."""

    warnings: list[str]

    @property
    def bench(self) -> Bench: ...

    # A budget was used up before the run's end, so that it can go on.
    unfinished: bool

    @property
    def cores(self) -> Cores: ...

    def prepare(self) -> None:
        """Look for everything that can be missing; raises `LabError`."""

    def programs(self) -> dict[str, str]:
        """SHA-256 of each program's file, after `prepare`."""

    def measure(self) -> None:
        """Go through the run's trials in their order, by the journal."""


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
    """One figure of an arm against its baseline, over the independent beds of a run.

    `logs`: log of arm over baseline, one for each bed on which both were measured.
    `zero_blocks`: on so many beds one of the two was 0, which has no logarithm. `obstacle`: why a
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


class Experiment(ABC):
    """One kind of run. Stateless."""

    # By which `find` knows it.
    name: str
    # One of so many blocks is judged: the others choose what is.
    judged_in: int = 1
    # CPUs that a session leases: the generator's and the forwarder's, and others that it loads.
    cpus: int = 2

    @abstractmethod
    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        """What these options come to, every default put in; raises `UsageError`."""

    @abstractmethod
    def given(self, options: dict[str, Any]) -> dict[str, object]:
        """The value of each option as asked for, by its name on the command line (`--seed`)."""

    @abstractmethod
    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        """`given` of a whole run, with the defaults that these options leave to the experiment."""

    def with_memory(self, options: dict[str, Any], memory: str) -> dict[str, Any]:
        """The options with the memory that the run began with instead of `auto`."""
        return {**options, "hugepages": "yes" if memory == "hugepages" else "no"}

    @abstractmethod
    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Running:
        """Start a session of a run with these options."""

    @abstractmethod
    def findings(self, run: Run, trials: list[Trial]) -> Findings:
        """What the records say, told with what run.json says. Looks at nothing else."""

    @abstractmethod
    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The design of runs put together; raises `RunError` naming what keeps them apart."""

    @abstractmethod
    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        """What compared figures hang on beside forwarders, links and sizes, by option: runs that
        differ in it are not compared. Seed and number of blocks are none of it.
        """

    @abstractmethod
    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """What another run can be compared with."""
