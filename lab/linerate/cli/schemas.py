# SPDX-License-Identifier: BSD-3-Clause
"""Write the JSON Schemas: `python -m linerate.cli.schemas`. A test compares them with classes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from linerate import records as records_package
from linerate.experiments.duel import baseline, kept
from linerate.experiments.duel import record as duel
from linerate.experiments.instructions import record as instructions
from linerate.experiments.placement import record as advice
from linerate.forwarders import definition
from linerate.records import run_file, summary
from linerate.records import trial as records
from linerate.runs import compare as regression
from linerate.runs.registry import EXPERIMENTS, find
from linerate.telemetry.top import figures


def _trials() -> dict[str, Any]:
    """Return the schema of trials with the cells and outcomes of the lab's own experiments."""
    for name in EXPERIMENTS:
        find(name)
    return records.schema()


FILES = {
    "trial-2.json": _trials,
    "summary-1.json": summary.schema,
    "run-1.json": run_file.schema,
    "forwarder-1.json": definition.schema,
    "compare-1.json": regression.schema,
    "top-1.json": figures.schema,
    "duel-1.json": duel.schema,
    "duels-1.json": kept.schema,
    "baseline-1.json": baseline.schema,
    "instructions-1.json": instructions.schema,
    "advice-1.json": advice.schema,
}


def text(name: str) -> str:
    """Return the content that the file should have."""
    return json.dumps(FILES[name](), indent=2) + "\n"


def stored(name: str) -> dict[str, Any]:
    """Return the schema that is shipped."""
    content = (
        resources.files("linerate.records").joinpath("schema", name).read_text(encoding="utf-8")
    )
    found: dict[str, Any] = json.loads(content)
    return found


def main() -> None:
    folder = Path(records_package.__file__ or "").with_name("schema")
    for name in FILES:
        (folder / name).write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
