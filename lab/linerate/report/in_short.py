# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the answer of a run in one sentence, before all others. Decides nothing: the verdicts
stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from linerate.host.text import counted, listed
from linerate.records.cells import cell_words
from linerate.records.summary import Comparison, Summary
from linerate.runs.progress import say
from linerate.verdict.judgement import MARGIN
from linerate.verdict.metrics import words_of
from linerate.verdict.sentences import verdict_word

# Up to so many questions are listed; of more, only the number of each answer.
_TOLD = 3

# The key of comparisons of one question: place, metric, baseline.
_Question = tuple[str, str, str]


def in_short(summary: Summary) -> str | None:
    """Return one sentence; None if nothing was compared."""
    primary = [each for each in summary.comparisons if each.primary]
    if not primary:
        return None
    decided = [each for each in primary if each.verdict not in ("undecided", "invalid")]
    if not decided:
        (reason, _), *_ = Counter(each.reason for each in primary).most_common()
        if len(primary) == 1:
            return f"This run did not decide what it compared: {reason}."
        none = f"This run decided none of its {len(primary)} comparisons"
        return f"{none}, most often for this reason: {reason}."
    questions: dict[_Question, list[Comparison]] = {}
    for each in decided:
        place = cell_words(each.link, each.size, " at ")
        what = words_of(each.metric, each.load_share)
        questions.setdefault((place, what, each.baseline), []).append(each)
    if len(questions) <= _TOLD:
        told = [_one(question, found) for question, found in questions.items()]
        told[0] = f"O{told[0][1:]}"
    else:
        told = _counted(decided)
    if undecided := len(primary) - len(decided):
        told.append(f"{undecided} of {counted(len(primary), 'comparison')} could not be decided")
    return f"{'; '.join(told)}."


def print_in_short(console: Console, summary: Summary) -> None:
    """Print it between the tables and the sentences of the comparisons."""
    if told := in_short(summary):
        console.print()
        say(console, told, "bold")


def _one(question: _Question, found: Sequence[Comparison]) -> str:
    place, what, baseline = question
    arms: dict[str, list[str]] = {}
    for each in found:
        size = f" (ratio {each.ratio:.2f})" if each.ratio and each.verdict != "equal" else ""
        arms.setdefault(verdict_word(each), []).append(f"{each.arm}{size}")
    verdicts = [f"{listed(names)} {_is(names)} {_whole(word)}" for word, names in arms.items()]
    return f"on {place}, against {baseline} by {what}: {', '.join(verdicts)}"


def _counted(decided: Sequence[Comparison]) -> list[str]:
    """Count the verdicts of each arm."""
    pairs: dict[tuple[str, str], list[Comparison]] = {}
    for each in decided:
        pairs.setdefault((each.arm, each.baseline), []).append(each)
    told = []
    for (arm, baseline), found in pairs.items():
        words = Counter(verdict_word(each) for each in found)
        often = ", ".join(f"{word} in {count}" for word, count in words.items())
        told.append(f"{arm} against {baseline}: {often} of {len(found)} decided")
    return told


def _whole(word: str) -> str:
    return f"{word} within {MARGIN * 100:g} %" if word == "equal" else word


def _is(names: Sequence[str]) -> str:
    return "are" if len(names) > 1 else "is"
