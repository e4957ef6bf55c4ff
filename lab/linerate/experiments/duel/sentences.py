# SPDX-License-Identifier: BSD-3-Clause
"""Describe a duel in words. Decides nothing (`linerate.experiments.duel.verdict`)."""

from __future__ import annotations

import math
import shlex
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from linerate.experiments.duel.advice import advice
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.verdict import Verdict, log_of_starts
from linerate.forwarders import Forwarder
from linerate.host.text import counted, listed
from linerate.trial.starts.clocks import Per
from linerate.trial.starts.faults import Kind
from linerate.verdict.agreement import MIN_ROUNDS

UNITS: dict[Per, str] = {
    "cpu": "CPU second",
    "cpu-and-napi": "CPU second of program and NAPI threads",
    "time": "second",
    "busy": "busy second",
}
_FAULTS: dict[Kind, str] = {
    "start": "does not start",
    "ended": "ended",
    "silent": "no longer answers",
    "stuck": "does nothing",
    "counters": "cannot be counted",
    "drops": "drops packets",
    "ports": "does not poll all of its ports",
    "shared": "does not stand alone",
    "unsaturated": "is not at its limit",
    "wrong": "sends wrong packets",
    "work": "does other work",
    "replaced": "was replaced meanwhile",
}
# The longest name of a program, with the part that distinguishes it, in characters.
_MOST_CALLED = 60
# Faults whose cause may be in a program's output.
_ADVISED: tuple[Kind, ...] = ("start", "ended", "stuck", "ports", "drops")


def called(program: Forwarder, letter: str) -> str:
    """Return a program's name in sentences: `B (fw-new)`."""
    return named(program.name, letter)


def named(name: str, letter: str) -> str:
    """Return the same from the program's name."""
    return f"{letter} ({name.removeprefix(f'{letter}-')})"


def apart(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return names that distinguish two programs. If both have the same name it is the difference
    between their command lines, `fw --burst=4` or `old/fw`; the name if there is none.
    """
    if names[0] != names[1] or words[0] == words[1]:
        return list(names)
    try:
        one, other = (shlex.split(word) for word in words)
    except ValueError:
        return list(names)
    heads = list(names) if one[0] == other[0] else [*_without_folders(one[0], other[0])]
    found = [[head] for head in heads]
    compared = SequenceMatcher(None, one[1:], other[1:], autojunk=False)
    for kind, begin, end, its_begin, its_end in compared.get_opcodes():
        if kind == "equal":
            continue
        parts = one[1 + begin : 1 + end], other[1 + its_begin : 1 + its_end]
        option = one[begin]
        if kind == "replace" and option.startswith("-") and not parts[0][0].startswith("-"):
            # The words are this option's values.
            for called_by in found:
                called_by.append(option)
        if len(parts[0]) == len(parts[1]):
            pairs = [_without_folders(*pair) for pair in zip(*parts, strict=True)]
            parts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for called_by, part in zip(found, parts, strict=True):
            called_by.extend(word for word in part if word != "--")
    short = [textwrap.shorten(" ".join(each), _MOST_CALLED, placeholder=" ...") for each in found]
    return short if short[0] != short[1] else list(names)


def _without_folders(one: str, other: str) -> tuple[str, str]:
    """Return two paths without their common folders."""
    mine, its = one.split("/"), other.split("/")
    while len(mine) > 1 and len(its) > 1 and mine[0] == its[0]:
        del mine[0], its[0]
    return "/".join(mine), "/".join(its)


def side_called(names: Sequence[str], letter: str) -> str:
    """Return the name of a side with several builds, of which the fastest takes part: `A (the
    fastest of 2 builds of fw)`.
    """
    if len(names) == 1:
        return named(names[0], letter)
    if all(name == names[0] or name.startswith(f"{names[0]}-") for name in names):
        return named(f"the fastest of {len(names)} builds of {names[0]}", letter)
    return named(f"the fastest of {listed(names)}", letter)


def round_line(duel: Duel) -> str:
    """Describe the result of the last round."""
    last = duel.rounds[-1]
    figures = " and ".join(_millions(math.exp(log_of_starts(last.figures(arm)))) for arm in (0, 1))
    steal = f", the hypervisor took {last.steal * 10} ms of the CPU" if last.steal else ""
    return (
        f"round {last.number + 1}, {duel.took_s:.0f} s: {figures} M packets per {UNITS[duel.per]}"
        f"{steal}; so far {size(duel.verdict)}"
    )


def _millions(pps: float) -> str:
    found = pps / 1e6
    return f"{found:.{2 if found < 100 else 0}f}"


def size(verdict: Verdict) -> str:
    """Format the ratio, and its certainty."""
    ratio, found = verdict.ratio, verdict.supporting_interval
    if ratio is None:
        return "nothing"
    low, high = verdict.range
    between = f"rounds from {low:.3f} to {high:.3f}"
    if found:
        edges = 1 - verdict.margin, 1 / (1 - verdict.margin)
        # The end must be shown with enough digits to see its side of the margin.
        close = any(
            round(end, 3) == round(edge, 3) for end in (found.low, found.high) for edge in edges
        )
        digits = 4 if close else 3
        between = f"99 % interval {found.low:.{digits}f} to {found.high:.{digits}f}"
    return f"{ratio:.3f} ({between})"


def sentence(duel: Duel, names: Sequence[str], asked: Asked) -> str:
    """Return the answer."""
    verdict, fault = duel.verdict, duel.fault
    one, other = names
    margin = f"{asked.margin * 100:g} %"
    if fault:
        broken = f"No comparison: {names[fault.arm]} {_FAULTS[fault.kind]}: {fault.message}."
        if fault.said:
            broken += f" It printed: {fault.said}."
        if also := duel.other_fault:
            alike = str(also.message) == str(fault.message)
            why = "for the same reason" if alike else str(also.message)
            broken += f" {names[also.arm]} {_FAULTS[also.kind]} either: {why}."
        return broken
    if verdict.unsound:
        return (
            f"No verdict: {one} differed from itself, so that something else than the programs "
            "makes a difference here."
        )
    how = (
        f"{size(verdict)} times as many packets per {UNITS[duel.per]}, "
        f"{counted(len(duel.rounds), 'round')} in {duel.took_s:.0f} s"
    )
    if duel.by_code:
        return (
            f"{other} is as fast as {one}: both run the same code, byte for byte, with the same "
            f"arguments, and the measurement does not contradict it: {how}."
        )
    if duel.answer in ("slower", "faster"):
        return f"{other} is {duel.answer} than {one} by more than {margin}: {how}."
    if duel.answer == "equal" and verdict.direction:
        return f"{other} is {verdict.direction} than {one}, by less than {margin}: {how}."
    if duel.answer == "equal":
        return f"{other} is as fast as {one}, within {margin}: {how}."
    if duel.agreement.doubtful:
        return (
            f"No verdict yet: {one} and {other} may compare otherwise when each has the CPU to "
            f"itself: {how}. A longer --within decides it."
        )
    asks = f"Not decided: {other} may be slower than {one} by more than {margin}, or not"
    if verdict.direction:
        asks = (
            f"{other} is {verdict.direction} than {one}, but it is not decided whether by more "
            f"than {margin}"
        )
    could = (
        f" Only a difference of {verdict.detectable * 100:.1f} % or more would have shown."
        if verdict.detectable
        else ""
    )
    return f"{asks}: {how}.{could} {_longer(duel, asked)}"


def _longer(duel: Duel, asked: Asked) -> str:
    """Describe the effect of more time."""
    rounds = len(duel.rounds)

    def within(needed: int) -> str:
        return f"--within {math.ceil(asked.within_s * needed / rounds / 10) * 10}s"

    if 0 < rounds < MIN_ROUNDS:
        return f"An answer takes at least {MIN_ROUNDS} rounds: {within(MIN_ROUNDS)}."
    more = duel.verdict.more_for_equal
    if more is None:
        return "A longer --within allows more rounds."
    return (
        f"{counted(more, 'round')} more like these would show that it is not: "
        f"{within(rounds + more)}."
    )


def notes(duel: Duel, names: Sequence[str]) -> list[str]:
    """Return the notes on the answer."""
    verdict, found = duel.verdict, []
    for each in (duel.fault, duel.other_fault):
        what = advice(f"{each.message}; {each.said}") if each and each.kind in _ADVISED else None
        if what and what not in found:
            found.append(what)
    if verdict.moves:
        low, high = verdict.range
        found.append(
            f"the ratio itself moved between rounds, from {low:.2f} to {high:.2f}: how much the "
            "two differ depends on the state of the machine"
        )
    if duel.per == "busy":
        found.append(
            "a program may be faster than its generator, and then waits for packets: packets are "
            "counted over the CPU time in which an lcore was busy with them. The probe in both "
            "programs counts that, and costs some cycles per packet itself, which brings the ratio "
            "nearer to 1"
        )
    if duel.per == "cpu-and-napi" and duel.rounds:
        found.append(
            "packets are counted over the CPU time of the program and of the kernel's threads "
            "(NAPI) that receive for it, in which XDP programs run"
        )
    if duel.given_up and duel.given_up.ratio:
        found.append(
            f"they were compared in turns, each with the CPU for itself: beside each other the "
            f"ratio was {duel.given_up.ratio:.3f}, as where a program follows the clock"
        )
    if verdict.control:
        itself = math.exp(statistics.median(verdict.control))
        found.append(f"{names[0]} against itself: {itself:.3f} (half of its starts over the other)")
    for name, work in zip(names, duel.works, strict=False):
        if work.missed:
            found.append(
                f"{name} did not receive {work.missed:,} of the frames in the time that what it "
                "sends was looked at"
            )
    if duel.unseen:
        found.append(f"sent packets were counted, not compared with the frames: {duel.unseen}")
    if steal := sum(each.steal for each in duel.rounds):
        found.append(f"the hypervisor took {steal * 10} ms of the CPU")
    return found


_IN_SHORT: dict[str, str] = {
    "slower": "slower by more than {margin}",
    "faster": "faster by more than {margin}",
    "equal": "as fast, within {margin},",
    "undecided": "not told apart",
}


def altogether(names: Sequence[str], margin: float, answers: Mapping[str, str]) -> str:
    """Return one sentence about duels on several links. `answers`: by link; "none" if there was no
    comparison.
    """
    one, other = names
    wording = {key: text.format(margin=f"{margin * 100:g} %") for key, text in _IN_SHORT.items()}
    parts = []
    for answer, text in wording.items():
        if links := [link for link, found in answers.items() if found == answer]:
            parts.append(f"{text} on {listed(links)}")
    if missing := [link for link, found in answers.items() if found not in wording]:
        parts.append(f"not compared on {listed(missing)}")
    return f"{other} against {one}: {'; '.join(parts)}."


def on_link(link: str, told: str) -> str:
    """Return one of several answers, with its link."""
    return f"On {link}: {told}"
