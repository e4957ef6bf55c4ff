# SPDX-License-Identifier: BSD-3-Clause
"""What the records do not answer, and the commands that would measure some of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from linerate.experiments.placement.measured import Group
from linerate.experiments.placement.question import Question
from linerate.experiments.placement.record import Placement, SettingAnswer

# The greatest load of `run latency`, of what --line-rate names.
_LATENCY_SHARE = 0.9


def not_measured(
    asked: Question, settings: Sequence[SettingAnswer], groups: Sequence[Group]
) -> list[str]:
    """In sentences, what is lacking first."""
    told = _other_sizes(asked, groups)
    if settings:
        told += _cores(settings)
        told += _elsewhere(settings)
    return told


def _other_sizes(asked: Question, groups: Sequence[Group]) -> list[str]:
    """Nothing is concluded from one size to another."""
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


# -- what would measure it -------------------------------------------------------------------------


def commands(
    asked: Question, settings: Sequence[SettingAnswer], groups: Sequence[Group]
) -> list[str]:
    """For this machine, of links that a command line can name as they are."""
    found = []
    for each in settings:
        if each.beside or each.foreign or ":" in each.link or not each.here:
            continue
        rates = [p for p in each.placements if _lacks_rate(p)]
        delays = [p for p in each.placements if _lacks_delay(p)]
        if rates:
            found.append(_command("rfc2544 --tests throughput", asked, each, rates, groups))
        if delays:
            full = asked.pps / _LATENCY_SHARE
            found.append(
                _command("latency", asked, each, delays, groups) + f" --line-rate {full:.10g}"
            )
    return found


def _lacks_rate(each: Placement) -> bool:
    """More would help: it is not that link and generator offer no more."""
    told = {rate.answer for rate in each.rates}
    at_limit = any(
        rate.at_least and (rate.limited_by or rate.source == "searches")
        for rate in each.rates
        if rate.answer == "not measured"
    )
    return not told & {"yes", "no"} and not at_limit


def _lacks_delay(each: Placement) -> bool:
    if any(rate.answer == "no" for rate in each.rates) or not each.delays:
        return False
    quantiles = {delay.quantile for delay in each.delays}
    known = {d.quantile for d in each.delays if d.answer in ("yes", "no")}
    return quantiles != known


def _command(
    what: str,
    asked: Question,
    setting: SettingAnswer,
    placements: Sequence[Placement],
    groups: Sequence[Group],
) -> str:
    files = {
        name: known.file
        for group in groups
        for name, known in group.run.run.sessions[0].forwarders.items()
        if known.file
    }
    names = dict.fromkeys(files.get(p.forwarder, p.forwarder) for p in placements)
    words = ["linerate", "run", *what.split(), "--link", setting.link]
    middle = len(setting.devices) // 2
    for option, devices in (
        ("--generator-port", setting.devices[:middle]),
        ("--forwarder-port", setting.devices[middle:]),
    ):
        for device in devices:
            words += [option, device]
    words += ["--sizes", str(asked.size), "--forwarders", ",".join(names)]
    if setting.directions == "one" and what.startswith("rfc2544"):
        words += ["--directions", "one"]
    return shlex.join(words)
