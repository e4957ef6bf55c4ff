# SPDX-License-Identifier: BSD-3-Clause
"""Where the commands print."""

from __future__ import annotations

import sys

from rich.console import Console

from linerate.host.errors import OutputError

# Wider than every table: in a pipe or a file nothing is gained by breaking a figure in two.
WIDE = 200


def wide_console() -> Console:
    """A terminal's own width; elsewhere wide enough for every table."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return Console(width=None if sys.stdout.isatty() else WIDE)
