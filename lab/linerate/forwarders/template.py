# SPDX-License-Identifier: BSD-3-Clause
"""Command lines with placeholders.

A template is split into words as a shell does, then each `{name}` in a word is replaced: the values
are not split again. A placeholder has a list of values. A word is repeated for each value, so that
`--eth-dest={port},{peer}` is one option for each port, and left out if the list is empty. `{{` and
`}}` produce braces.
"""

from __future__ import annotations

import shlex
import string
from collections.abc import Callable, Sequence

# Returns the values of a placeholder, by its name.
Values = Callable[[str], Sequence[str]]
# The text before a placeholder (or the end), and the placeholder's name.
_Piece = tuple[str, str | None]


class Template:
    """Words with placeholders to fill."""

    def __init__(self, text: str) -> None:
        """Parse a template. Raises `ValueError` for quotes or braces that do not match, and for
        characters that no command line can have.
        """
        if "\0" in text:
            raise ValueError("has a NUL character")
        self.words = tuple(_pieces(word) for word in shlex.split(text))

    @classmethod
    def of_word(cls, word: str) -> Template:
        """Return a template of this single word, in which spaces and quotes have no special
        meaning.
        """
        return cls(shlex.quote(word))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Names of the placeholders, each once, in their order."""
        names = (name for word in self.words for _, name in word if name is not None)
        return tuple(dict.fromkeys(names))

    def expand(self, values: Values) -> list[str]:
        """Return the words with the values in them."""
        return [filled for word in self.words for filled in _filled(word, values)]


def _pieces(word: str) -> tuple[_Piece, ...]:
    found: list[_Piece] = []
    for text, name, form, conversion in string.Formatter().parse(word):
        if name is not None and (not name or form or conversion):
            raise ValueError(f"{word}: a placeholder is a name in braces")
        found.append((text, name))
    return tuple(found)


def _filled(word: Sequence[_Piece], values: Values) -> list[str]:
    """Return the word once for each value of its placeholders, which advance together."""
    lists = [[""] if name is None else list(values(name)) for _, name in word]
    times = max(map(len, lists), default=1) if all(lists) else 0
    return [
        "".join(
            text + (found[0] if len(found) == 1 else found[step])
            for (text, _), found in zip(word, lists, strict=True)
        )
        for step in range(times)
    ]
