# SPDX-License-Identifier: BSD-3-Clause
"""Where the commands print."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from linerate.host.errors import OutputError
from linerate.host.text import printable

# Wider than every table: in a pipe or a file nothing is gained by breaking a figure in two.
WIDE = 200


class SafeConsole(Console):
    """A console for text of others: names in a run's files, answers of programs.

    Whatever is drawn, nothing in its text steers the terminal (`printable`), and nothing in
    brackets is taken for a style: rich's markup would colour a name, or fail at `[/x]`.
    """

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As rich's. Everything that is printed passes here, cells of tables as well."""
        for segment in super().render(renderable, options):
            # The cursor's own movements, as of a progress bar, are no text.
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text, keep="\n"), segment.style)


def wide_console() -> Console:
    """A terminal's own width; elsewhere wide enough for every table."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return SafeConsole(None if sys.stdout.isatty() else WIDE)
