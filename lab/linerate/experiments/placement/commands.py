# SPDX-License-Identifier: BSD-3-Clause
"""Commands that would measure some of the missing answers on this machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from linerate.experiments.placement.measured import Group, Setting
from linerate.experiments.placement.question import Question
from linerate.experiments.placement.record import Placement, SettingAnswer
from linerate.host.machine import Machine

# The greatest load of `run latency`, as a share of --line-rate.
_LATENCY_SHARE = 0.9


def commands(
    asked: Question,
    answers: Mapping[Setting, SettingAnswer],
    groups: Sequence[Group],
    this: Machine,
) -> list[str]:
    """Return commands for the links that a command line can name directly."""
    found = []
    for setting in dict.fromkeys(group.setting for group in groups):
        if setting.beside or setting.foreign or ":" in setting.link or not setting.on(this):
            continue
        known = answers[setting].placements if setting in answers else []
        # Forwarders that were measured at other sizes.
        names = {each.program.forwarder for each in groups if each.setting == setting}
        fresh = sorted(names - {each.forwarder for each in known})
        files = _files(groups)
        delays = [each.forwarder for each in known if _lacks_delay(each)]
        rates = [each.forwarder for each in known if _lacks_rate(each)]
        if asked.latency:
            # The loss at the rate is measured together with the delays.
            delays, rates = [*delays, *fresh], [each for each in rates if each not in delays]
        else:
            rates = [*rates, *fresh]
        if rates:
            what = ["rfc2544", "--tests", "throughput"]
            if setting.directions == "one":
                what += ["--directions", "one"]
            found.append(_command(what, asked, setting, rates, files))
        if delays:
            full = f"{asked.pps / _LATENCY_SHARE:.10g}"
            found.append(
                _command(
                    ["latency", "--frames", "udp", "--line-rate", full],
                    asked,
                    setting,
                    delays,
                    files,
                )
            )
    return found


def _files(groups: Sequence[Group]) -> dict[str, str]:
    """Return the files of forwarders that the lab does not define, by name."""
    return {
        name: known.file
        for group in groups
        for name, known in group.run.run.sessions[0].forwarders.items()
        if known.file
    }


def _lacks_rate(each: Placement) -> bool:
    """Return True if more measurements would help: link and generator can offer more."""
    told = {rate.answer for rate in each.rates}
    at_limit = any(
        rate.at_least and (rate.limited_by or rate.source == "searches")
        for rate in each.rates
        if rate.answer == "not measured"
    )
    return not told & {"yes", "no"} and not at_limit


def _lacks_delay(each: Placement) -> bool:
    if any(rate.answer == "no" for rate in each.rates):
        return False
    quantiles = {delay.quantile for delay in each.delays}
    return quantiles != {d.quantile for d in each.delays if d.answer in ("yes", "no")}


def _command(
    what: Sequence[str],
    asked: Question,
    setting: Setting,
    names: Sequence[str],
    files: Mapping[str, str],
) -> str:
    words = ["linerate", "run", *what, "--link", setting.link]
    middle = len(setting.devices) // 2
    for option, devices in (
        ("--generator-port", setting.devices[:middle]),
        ("--forwarder-port", setting.devices[middle:]),
    ):
        for device in devices:
            words += [option, device]
    forwarders = dict.fromkeys(files.get(name, name) for name in names)
    words += ["--sizes", str(asked.size), "--forwarders", ",".join(forwarders)]
    return shlex.join(words)
