# SPDX-License-Identifier: BSD-3-Clause
"""Format numbers as words, and shorten the output of programs that ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Prefixes of EAL's complaints, including some that occur in every run and at every end.
_COMPLAINTS = ("EAL:", "Cause:", "net_nearfree:")
# rte_exit's last line, after which only older lines of standard output may come.
_CAUSE = "Cause:"
# Lines of Open vSwitch's log at its levels of errors.
_ERRORS = re.compile(r"\|(ERR|EMER)\|")
# Escape sequences that colour a terminal, name its window or move its cursor; and all other
# characters that neither a terminal nor XML may get from a program, except the ends of lines.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
# getopt's words, before a program prints its usage.
_BAD_OPTION = re.compile(r": (unrecognized|invalid) option|: option .*(requires|allow|ambiguous)")
# The lab's programs have huge pages of 2 MiB, and need no file system for them.
_CHATTER = re.compile(
    r"EAL: (Detected|Multi-process socket|Physical addresses are unavailable|Selected IOVA mode"
    r"|VFIO support|Error - exiting with code|Unregistering|No free 1048576 kB hugepages"
    r"|\d+ hugepages of size \d+ reserved, but no mounted hugetlbfs)"
)


def printable(text: str, keep: str = "") -> str:
    """Make untrusted text, such as a name or an error message with one, safe for a terminal.

    Control and format characters, which could move the cursor, colour or rename the window, or
    change the writing direction, and all separators but the plain space become `?`. `keep`: further
    characters that stay, such as the newlines between lines of our own.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else "?" for each in text)


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: `1 block`, `12 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(words: Iterable[str]) -> str:
    """Format a list that is not empty: `a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def probability(p: float, digits: int = 4) -> str:
    """Format a probability: `p 0.0312`, or `p below 0.0001` if the digits cannot show it: small,
    but not 0.
    """
    least = 10.0**-digits
    return f"p below {least:.{digits}f}" if p < least else f"p {p:.{digits}f}"


def last_words(output: str, limit: int = 400) -> str:
    """Return why a program ended, as far as its output tells, in one line of at most `limit`
    characters.

    EAL complains first, then a usage of a hundred indented lines may follow, then the program says
    that it could not start: complaints and the last two lines are kept, indented ones only if there
    is nothing better.
    """
    lines = _lines(output)
    complaints = _complaints(lines)
    ends: list[int] = []
    if not any(lines[at].lstrip().startswith(_CAUSE) for at in complaints):
        ends = [at for at in range(len(lines))[-2:] if not lines[at][0].isspace()]
    chosen = sorted({*complaints[-4:], *ends}) or range(len(lines))[-3:]
    return _joined([lines[at] for at in chosen], limit)


def complaints(output: str, limit: int = 400) -> str:
    """Return the complaints of a program that still runs, in the same form; empty if there are
    none.
    """
    lines = _lines(output)
    return _joined([lines[at] for at in _complaints(lines)[-4:]], limit)


def _lines(output: str) -> list[str]:
    plain = _CONTROL.sub("", _ESCAPES.sub("", output))
    lines = [line.rstrip() for line in plain.splitlines() if line.strip()]
    return [line for line in lines if not _CHATTER.match(line)]


def _complaints(lines: Sequence[str]) -> list[int]:
    """Return the indices of lines that report an error."""
    return [
        at
        for at, line in enumerate(lines)
        if line.lstrip().startswith(_COMPLAINTS) or _BAD_OPTION.search(line) or _ERRORS.search(line)
    ]


def _joined(lines: Sequence[str], limit: int) -> str:
    kept: list[str] = []
    # From the end: the last visible complaint is nearest to the cause.
    for line in reversed(lines):
        text = line.strip()[: limit // 2]
        if len("; ".join([text, *kept])) > limit:
            break
        kept.insert(0, text)
    return "; ".join(kept)
