# SPDX-License-Identifier: BSD-3-Clause
"""The published study's conclusions as hypotheses, each answered by the data of one metric.

Freitas et al., Research, Society and Development 11(12), 2022 (10.33448/rsd-v11i12.34200): packet
size matters; the kind of load matters; network load with small packets is worst, in throughput and
in loss; DPDK and XDP differ. Its levels, repetitions and alpha are unknown, so the design is ours.

Throughput is expressed as a share of that of the same forwarder, size and block without load, if
that was measured: the rate itself would only show the offered load, and small packets would be
first in packets per second and last in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from linerate.experiments.cloud.factorial.answers.takeaways import Takeaway, caveats, matters
from linerate.experiments.cloud.factorial.answers.worst import is_worst
from linerate.experiments.cloud.factorial.design import (
    Observations,
    combinations,
    crossed,
    pooled,
    relative_to,
)
from linerate.experiments.cloud.factorial.effects import PERMUTATIONS
from linerate.host.errors import DesignError


@dataclass(frozen=True)
class Names:
    """The names of the factors, and of the levels in hypotheses.

    The first level of `size` is the smallest. `dpdk` and `xdp`: levels of `framework` of each kind.
    `idle`: the level of `load` that is no load, and `unloaded` its name in sentences.
    """

    dpdk: Sequence[str]
    xdp: Sequence[str]
    framework: str = "framework"
    load: str = "load"
    size: str = "size"
    network: str = "network"
    idle: str = "idle"
    unloaded: str = "idle load"


def study(
    observations: Observations, names: Names, *, permutations: int = PERMUTATIONS, seed: int = 1
) -> list[Takeaway]:
    """Return the four hypotheses by one metric: throughput on the log scale, or loss on the linear
    one.

    Each was stated before, and is tested at ALPHA by itself. If there is an idle load, rates are
    expressed as shares of those beside it.
    """
    told, of = _shares(observations, names)
    found = [
        matters(
            told,
            names.size,
            f"packet size matters for {told.metric}",
            permutations=permutations,
            seed=seed,
        ),
        kind_matters(told, names, idle_known=bool(of), permutations=permutations, seed=seed),
        network_worst(observations, names),
        differ(told, names, permutations=permutations, seed=seed),
    ]
    worst = found[2]
    return [
        each if each is worst else replace(each, statement=each.statement + of) for each in found
    ]


def _shares(observations: Observations, names: Names) -> tuple[Observations, str]:
    """Return rates as shares of those of the same forwarder, size and block without load, if
    possible, and their name. The offered load depends on forwarder and size, and so would any rate.
    """
    rate = observations.scale == "log" and observations.has(names.load, names.idle)
    if not rate or len(observations.factor(names.load).levels) < 2:
        return observations, ""
    found = relative_to(observations, names.load, names.idle)
    return replace(
        found, metric=observations.metric
    ), f", as a share of that under {names.unloaded}"


def kind_matters(
    observations: Observations,
    names: Names,
    *,
    idle_known: bool = False,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> Takeaway:
    """Test if the kinds of load differ. Idle is excluded: whether any load matters is another
    question.

    `idle_known`: the values are shares of those beside idle tenants, which are not among them.
    """
    kinds, idle = observations, observations.has(names.load, names.idle)
    if idle:
        levels = observations.factor(names.load).levels
        if rest := [level for level in levels if level != names.idle]:
            kinds = observations.keeping(names.load, rest)
    found = matters(
        kinds,
        names.load,
        f"the kind of load matters for {observations.metric}",
        permutations=permutations,
        seed=seed,
    )
    few = observations.has(names.load) and len(kinds.factor(names.load).levels) < 2
    if few and (idle or idle_known):
        return replace(found, reason=f"the design has fewer than two loads beside {names.idle}")
    return found


def differ(
    observations: Observations, names: Names, *, permutations: int = PERMUTATIONS, seed: int = 1
) -> Takeaway:
    """Test if the frameworks of the two kinds differ, on average over those of each kind."""
    statement = f"DPDK and XDP differ in {observations.metric}"
    test = "permutation within blocks and cells of the other factors, all effects of the factor"
    about = (names.framework,)

    def unknown(reason: str) -> Takeaway:
        return Takeaway(statement, observations.metric, about, test, "undecided", reason)

    if not observations.has(names.framework):
        return unknown(f"the design has no factor {names.framework}")
    kept = [*names.dpdk, *names.xdp]
    there = [level for level in observations.factor(names.framework).levels if level in kept]
    if not there:
        return unknown("no forwarder of either was measured")
    try:
        # Cells that some forwarder could not run are left out for all of them.
        found = crossed(observations.keeping(names.framework, there))
    except DesignError as error:
        return unknown(error.message)
    levels = found.factor(names.framework).levels
    groups = {
        "DPDK": [level for level in levels if level in names.dpdk],
        "XDP": [level for level in levels if level in names.xdp],
    }
    for name, group in groups.items():
        if not group:
            return unknown(f"no forwarder with {name} was measured in every cell")
    return matters(
        pooled(found, names.framework, groups),
        names.framework,
        statement,
        permutations=permutations,
        seed=seed,
    )


def network_worst(observations: Observations, names: Names) -> Takeaway:
    """Test if network load with the smallest packets is worse than every other load and size."""
    statement = f"network load with small packets is worst in {observations.metric}"
    about = (names.load, names.size)
    rate = observations.scale == "log"
    test = (
        f"{'Wilcoxon signed rank' if rate else 'sign flips'} in blocks against each other load and "
        "size, all of which must reject"
    )

    def unknown(reason: str) -> Takeaway:
        return Takeaway(statement, observations.metric, about, test, "undecided", reason)

    if not observations.has(names.size) or len(observations.factor(names.size).levels) < 2:
        return unknown(f"the design has no second level of {names.size}")
    if not observations.has(names.load, names.network):
        return unknown(f"the design has no {names.network} load")
    compared, unloaded = observations, None
    if not set(observations.factor(names.load).levels) - {names.network, names.idle}:
        return unknown(f"the design has no load beside {names.network} and {names.idle}")
    if rate and observations.has(names.load, names.idle):
        compared = relative_to(observations, names.load, names.idle)
        unloaded = names.unloaded
        statement += f", as a share of that under {unloaded}"
    place = {names.load: names.network, names.size: compared.factor(names.size).levels[0]}
    rivals = [each for each in combinations(compared, about) if each != place]
    found = is_worst(compared, place, rivals, unit_rival=unloaded)
    rival = found.rival
    return Takeaway(
        statement,
        observations.metric,
        about,
        test,
        found.verdict,
        found.reason + caveats(compared),
        p=found.p,
        measure=found.measure,
        effect=rival.effect if rival else None,
        low=rival.low if rival else None,
        high=rival.high if rival else None,
        compared=(
            f"{names.load} {names.network}, {names.size} {place[names.size]} against {rival.words}"
            if rival
            else ""
        ),
        detectable=rival.detectable if rival else None,
    )
