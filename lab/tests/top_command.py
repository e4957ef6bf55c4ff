# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate top` as tests run it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import by_schema
from conftest import TelemetryServer

Start = Callable[[dict[str, Any]], TelemetryServer]


def top(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linerate", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def objects(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The JSON output, validated by the schema."""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for one in found:
        by_schema.check(one, "top-1.json")
    return found
