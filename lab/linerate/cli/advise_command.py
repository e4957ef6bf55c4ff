# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate advise`: reads its arguments, prints the answer, returns the exit
status.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from linerate.experiments.placement.advise import advise
from linerate.experiments.placement.kept import runs_at
from linerate.experiments.placement.question import Question, question
from linerate.experiments.placement.record import (
    Advice,
    Answer,
    CarriedRate,
    Placement,
    RunRead,
    SettingAnswer,
)
from linerate.experiments.placement.sentences import (
    question_words,
    telling_delays,
    telling_rates,
)
from linerate.experiments.placement.words import spread, unit_of
from linerate.host import machine
from linerate.host.exit_status import ExitStatus
from linerate.host.text import counted
from linerate.runs.progress import say

_STATUS: dict[Answer, ExitStatus] = {
    "yes": ExitStatus.DONE,
    "no": ExitStatus.SLOWER,
    "undecided": ExitStatus.UNDECIDED,
    "not measured": ExitStatus.UNDECIDED,
}


def run(
    directories: Sequence[Path],
    asked: Question,
    console: Console,
    *,
    json_output: bool,
) -> ExitStatus:
    """Read, judge, print, and return the exit status."""
    runs, notes = runs_at(directories)
    found = advise(asked, runs, machine.facts(), notes)
    if json_output:
        print(found.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True, indent=2))
    else:
        show(asked, found, console)
    return _STATUS[found.answer]


def asked_of(rate: str, size: int, latency: Sequence[str], loss: str) -> Question:
    """Check the options; raises `UsageError` naming the option."""
    return question(rate, size, latency, loss)


def show(asked: Question, found: Advice, console: Console) -> None:
    """Print the question, a table and sentences for each setting, and what is not known."""
    say(console, f"Asked: {question_words(asked)}")
    for setting in found.settings:
        say(console, "")
        say(console, _heading(setting))
        console.print(_table(asked, setting))
        say(console, setting.sentence)
        for each in setting.placements:
            say(console, f"  {each.sentence}")
    if not found.settings:
        say(console, "")
        say(console, f"Not measured: no run at hand has frames of {asked.size} B.")
    say(console, "")
    say(console, "These records do not answer:")
    for gap in found.not_measured:
        say(console, f"  - {gap}")
    if found.commands:
        say(console, "This would measure some of it:")
        for command in found.commands:
            say(console, f"  {command}")
    say(console, "Runs:")
    for run_read in found.runs:
        say(console, f"  {_run(run_read)}")
    for note in found.notes:
        say(console, f"note: {note}")


def _heading(found: SettingAnswer) -> str:
    of = found.machine
    where = found.link
    if found.devices:
        where += f" ({', '.join(found.devices)})"
    what = [where]
    if found.directions == "one":
        what.append("one direction")
    if found.ip == 6:
        what.append("IPv6")
    if found.foreign:
        what.append("another generator")
    what.append(found.beside or "alone on the core")
    memory = "huge pages" if found.memory == "hugepages" else "no huge pages"
    which = "this machine" if found.here else "another machine than this"
    facts = [
        of.cpu_model or "unknown CPU",
        counted(of.cpu_count, "CPU"),
        *([of.hypervisor] if of.hypervisor else []),
        f"Linux {of.kernel}",
        f"DPDK {of.dpdk_version or 'unknown'}",
        memory,
    ]
    return f"On {', '.join(what)}; {which} ({', '.join(facts)})"


def _table(asked: Question, found: SettingAnswer) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    names = ["forwarder", "cores", f"carries, {unit_of(asked.pps)[1]} (95 %)"]
    names += [f"{each.name}, us (95 %)" for each in asked.latency]
    names += ["core used", "blocks", "run", "answer"]
    for name in names:
        words = name in ("forwarder", "answer")
        table.add_column(name, justify="left" if words else "right", no_wrap=words)
    builds = _builds(found.placements)
    for each in found.placements:
        table.add_row(*_row(asked, each, builds))
    return table


def _builds(placements: Sequence[Placement]) -> set[str]:
    """Return the forwarders that have more than one build or definition."""
    names = [each.forwarder for each in placements]
    return {name for name in names if names.count(name) > 1}


def _row(asked: Question, found: Placement, several: set[str]) -> list[str]:
    best = telling_rates(found)[0]
    name = found.forwarder
    if name in several:
        name += f" ({(found.build or found.definition or 'unknown')[:8]})"
    used = next((each.core_share for each in found.rates if each.core_share), None)
    return [
        name,
        str(found.cores or "-"),
        _carries(best, unit_of(asked.pps)[0]),
        *(_delay(found, each.quantile) for each in asked.latency),
        f"{used.median * 100:.0f} %" if used else "-",
        f"{best.carried}/{best.blocks}",
        str(best.run),
        found.answer,
    ]


def _carries(found: CarriedRate, unit: float) -> str:
    if found.reached_pps is None or not found.reached_pps.median:
        return "-"
    return ("at least " if found.at_least else "") + spread(found.reached_pps, 1 / unit)


def _delay(found: Placement, quantile: str) -> str:
    best = telling_delays(found, quantile)[0]
    return spread(best.us) if best.us else "-"


def _run(found: RunRead) -> str:
    told = f"[{found.number}] {found.directory}: {found.experiment}, {found.started_at}, "
    told += counted(found.trials, "trial")
    return told if found.complete else f"{told}, ended early"
