# SPDX-License-Identifier: BSD-3-Clause
"""`linerate advise`: find an answer in the records of runs. Uses nothing but the records, and this
machine only to check if they were made on it.

Figures of two runs are never combined: each run answers by itself, and if one says yes and another
no, the answer is undecided. A delay may come from one run and a rate from another if setting and
program are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linerate.experiments.placement import gaps
from linerate.experiments.placement.commands import commands
from linerate.experiments.placement.judge import carried_rate, measured_delay
from linerate.experiments.placement.measured import MEMORY, Group, Program, Setting, groups_of
from linerate.experiments.placement.question import Question
from linerate.experiments.placement.record import (
    Advice,
    Answer,
    Asked,
    AskedLatency,
    Placement,
    RunRead,
    SettingAnswer,
)
from linerate.experiments.placement.sentences import (
    placement_sentence,
    setting_sentence,
    shown_pps,
)
from linerate.host.machine import Machine
from linerate.runs.kept.stored import Stored

_ORDER: tuple[Answer, ...] = ("yes", "undecided", "not measured", "no")


def advise(asked: Question, runs: Sequence[Stored], this: Machine, notes: Iterable[str]) -> Advice:
    """Return the answer of these runs. `this`: the local machine."""
    groups: dict[Setting, list[tuple[int, Group]]] = {}
    mute = []
    for number, run in enumerate(runs, start=1):
        own = groups_of(run)
        if not own:
            mute.append(
                f"{run.directory} (experiment {run.run.experiment}) says nothing about what a "
                "program carries: no valid window in which a generator sent"
            )
        for group in own:
            groups.setdefault(group.setting, []).append((number, group))
    answers = {
        setting: _setting(asked, setting, sized, this)
        for setting, every in groups.items()
        if (sized := [each for each in every if each[1].size == asked.size])
    }
    settings = sorted(answers.values(), key=lambda each: (_ORDER.index(each.answer), not each.here))
    known = [group for own in groups.values() for _, group in own]
    return Advice(
        asked=Asked(
            pps=asked.pps,
            size=asked.size,
            loss_ratio=asked.loss_ratio,
            latency=[AskedLatency(quantile=each.quantile, us=each.us) for each in asked.latency],
        ),
        answer=overall([each.answer for each in settings]),
        settings=settings,
        not_measured=gaps.not_measured(asked, settings, known),
        commands=commands(asked, answers, known, this),
        runs=[_read(number, run) for number, run in enumerate(runs, start=1)],
        notes=[*notes, *mute],
    )


def _read(number: int, run: Stored) -> RunRead:
    first = run.run.sessions[0]
    return RunRead(
        number=number,
        directory=str(run.directory),
        id=run.run.id,
        experiment=run.run.experiment,
        command=first.command,
        started_at=first.started_at,
        trials=len(run.trials),
        complete=run.run.complete(len(run.trials)),
    )


def _setting(
    asked: Question, setting: Setting, own: list[tuple[int, Group]], this: Machine
) -> SettingAnswer:
    programs: dict[Program, list[tuple[int, Group]]] = {}
    for each in own:
        programs.setdefault(each[1].program, []).append(each)
    placements = [_placement(asked, program, mine) for program, mine in programs.items()]
    placements.sort(key=_place)
    machine = own[0][1].run.run.sessions[0].machine
    good = [each for each in placements if each.answer == "yes"]
    found = SettingAnswer(
        link=setting.link,
        devices=list(setting.devices),
        directions=setting.directions,
        ip=6 if setting.ip == 6 else 4,
        beside=setting.beside,
        foreign=setting.foreign,
        memory=dict(setting.conditions)[MEMORY],
        machine=machine,
        here=setting.on(this),
        answer=overall([each.answer for each in placements]),
        cores=min((each.cores for each in good if each.cores), default=None),
        placements=placements,
        sentence="",
    )
    found.sentence = setting_sentence(found)
    return found


def _placement(asked: Question, program: Program, own: list[tuple[int, Group]]) -> Placement:
    rates = [carried_rate(group, number, asked) for number, group in own]
    delays = [
        measured_delay(group, number, asked, limit)
        for limit in asked.latency
        for number, group in own
    ]
    found = Placement(
        forwarder=program.forwarder,
        cores=program.cores,
        build=program.build,
        definition=program.definition,
        answer=all_of(
            [
                agreed(each.answer for each in rates),
                *(
                    agreed(each.answer for each in delays if each.quantile == limit.quantile)
                    for limit in asked.latency
                ),
            ]
        ),
        rates=rates,
        delays=delays,
        sentence="",
    )
    found.sentence = placement_sentence(found, asked)
    return found


def _place(each: Placement) -> tuple[int, int, float]:
    """Return the sort key: programs that meet the question on few cores first; then by the greatest
    load that a run shows.
    """
    carried = max((shown_pps(rate) for rate in each.rates), default=0.0)
    return _ORDER.index(each.answer), each.cores or 0, -carried


def agreed(answers: Iterable[Answer]) -> Answer:
    """Combine the answers of several runs about one thing: they must not contradict each other."""
    found = set(answers)
    if {"yes", "no"} <= found:
        return "undecided"
    known: tuple[Answer, ...] = ("yes", "no", "undecided")
    return next((each for each in known if each in found), "not measured")


def all_of(answers: Iterable[Answer]) -> Answer:
    """Combine answers that must all hold."""
    found = set(answers)
    order: tuple[Answer, ...] = ("no", "undecided", "not measured")
    return next((each for each in order if each in found), "yes")


def overall(answers: Iterable[Answer]) -> Answer:
    """Combine answers of which one is enough."""
    found = set(answers)
    if not found:
        return "not measured"
    order: tuple[Answer, ...] = ("yes", "undecided", "not measured")
    return next((each for each in order if each in found), "no")
