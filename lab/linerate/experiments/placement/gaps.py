# SPDX-License-Identifier: BSD-3-Clause
"""Questions that the records do not answer."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.placement.measured import Group
from linerate.experiments.placement.question import Question
from linerate.experiments.placement.record import SettingAnswer


def not_measured(
    asked: Question, settings: Sequence[SettingAnswer], groups: Sequence[Group]
) -> list[str]:
    """Return sentences on what is missing, the most important first."""
    told = _other_sizes(asked, groups)
    if settings:
        told += _cores(settings)
        told += _elsewhere(settings)
    return told


def _other_sizes(asked: Question, groups: Sequence[Group]) -> list[str]:
    """Return sentences on other frame sizes: no conclusion is drawn from one size to another."""
    sizes: dict[tuple[str, str], set[int]] = {}
    for each in groups:
        link, beside = each.setting.link, each.setting.beside
        where = f"{link}, {beside}" if beside else link
        sizes.setdefault((where, each.program.forwarder), set()).add(each.size)
    alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (where, name), known in sizes.items():
        if asked.size not in known:
            alike.setdefault((where, tuple(sorted(known))), []).append(name)
    return [
        f"{', '.join(names)} on {where}: measured at {', '.join(map(str, known))} B, not at "
        f"{asked.size} B"
        for (where, known), names in alike.items()
    ]


def _cores(settings: Sequence[SettingAnswer]) -> list[str]:
    known = sorted({p.cores for each in settings for p in each.placements if p.cores})
    if known == [1]:
        return ["other numbers of cores: every program ran on 1 core, and nothing is scaled"]
    counts = ", ".join(map(str, known))
    return [f"other numbers of cores than {counts}: nothing is scaled"] if known else []


def _elsewhere(settings: Sequence[SettingAnswer]) -> list[str]:
    links = ", ".join(dict.fromkeys(each.link for each in settings))
    told = [f"other links or network cards than {links}, and other traffic than the lab's flows"]
    if not any(each.beside for each in settings):
        told.append("other programs on the forwarder's core (linerate run cloud measures that)")
    if not any(each.here for each in settings):
        told.append("this machine: all of these runs are of other machines or other kernels")
    return told
