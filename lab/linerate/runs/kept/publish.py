# SPDX-License-Identifier: BSD-3-Clause
"""Write and print the summary and the report of a run's records."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from linerate.records.output import REPORT, OutputDirectory
from linerate.records.run_file import Run
from linerate.records.trial import RECORDS, Trial
from linerate.runs.experiment import Experiment, Findings
from linerate.runs.progress import say


def torn_line(length: int) -> str:
    return f"{RECORDS}: the last line was cut off in the middle ({length} bytes): it does not count"


def publish(
    experiment: Experiment[Any, Any],
    run: Run,
    output: OutputDirectory,
    trials: list[Trial],
    console: Console,
) -> Findings:
    """Write summary and report, and print the results."""
    findings = experiment.told(run, trials)
    for name, content in findings.files().items():
        output.write(name, content)
    findings.show(console)
    say(console, f"report: {output.path / REPORT}")
    return findings
