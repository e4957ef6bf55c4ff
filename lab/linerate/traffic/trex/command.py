# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate trex-convert`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from linerate.host.exit_status import say
from linerate.records.output import write_atomically
from linerate.traffic.trex.convert import Asked, convert


def run(asked: Asked, output: Path | None) -> None:
    """Convert a profile; the configuration goes to a file or to standard output, all else to
    standard error.
    """
    found = convert(asked)
    text = json.dumps(found.config, indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        write_atomically(output, text, "--output")
    for note in found.notes:
        say(f"note: {note}")
    if found.replays:
        given = " ".join(
            f"--replay {shlex.quote(f'{flow}={path}')}" for flow, path in found.replays.items()
        )
        say(f"next: generator --otg-listen 127.0.0.1:8080 {given}")
