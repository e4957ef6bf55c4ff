# SPDX-License-Identifier: BSD-3-Clause
"""The consoles that the commands print on."""

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
    """A console for untrusted text: names in a run's files, answers of programs.

    Control characters in text never reach the terminal (`printable`), and text in brackets is not
    markup: rich would use a name as a style, or fail at `[/x]`.
    """

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render like rich, with safe text. All output passes here, including cells of tables."""
        for segment in super().render(renderable, options):
            # The cursor's own movements, as of a progress bar, are no text.
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text, keep="\n"), segment.style)


def wide_console() -> Console:
    """Return a console as wide as the terminal; without one, wide enough for every table."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return SafeConsole(None if sys.stdout.isatty() else WIDE)
