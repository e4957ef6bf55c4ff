# SPDX-License-Identifier: BSD-3-Clause
"""Checks before a session's first trial: a missing program must not end it later."""

from __future__ import annotations

from dataclasses import replace

from linerate.forwarders import forwarder
from linerate.forwarders.containers import container_misfit
from linerate.host.builds.plugins import probe_plugin
from linerate.host.cores import cpus
from linerate.host.errors import UsageError
from linerate.host.places import rust_binary
from linerate.links import Link
from linerate.links.ports import Ports
from linerate.runs import provenance
from linerate.runs.plans.steps import SessionPlan
from linerate.traffic.otg import Traffic
from linerate.trial.clock_check import ClockCheck, check_clock

# Size of the frames with which another generator is tested; every generator supports it.
SAMPLE_SIZE = 512


def prepare(plan: SessionPlan, *, outweighs: bool = False) -> ClockCheck | None:
    """Find or build what the plan needs; raises `LabError` for what is missing. `outweighs`:
    processes of the lab outweigh others on their CPUs.

    Returns the result of the clock check, if the plan needs one.
    """
    needs, bench = plan.needs, plan.bench
    plan.prepare()
    for name in dict.fromkeys(needs.forwarders):
        forwarder(name).prepare()
        if why := container_misfit(forwarder(name).definition):
            raise UsageError(f"--forwarders {name}: {why[0]}", why[1])
    links = [plan.link(name) for name in dict.fromkeys(needs.links)]
    for each in links:
        each.prepare()
        if isinstance(each, Ports) and not bench.memory.hugepages:
            each.without_hugepages()
        for name in dict.fromkeys(needs.forwarders):
            if why := forwarder(name).plugin_misfit(each):
                raise UsageError(f"--forwarders {name}: {why[0]}", why[1])
    if _own_generator(plan):
        rust_binary("generator")
    for name in needs.others:
        rust_binary(name)
    if needs.probe:
        probe_plugin()
    if needs.sender:
        for each in links:
            plan.warnings.extend(needs.sender.prepare(_sample(plan, each)))
    # Another generator is not on this machine's cores.
    shared = bench.cores.shared_core and _own_generator(plan)
    cores = replace(bench.cores, shared_core=shared)
    plan.warnings.extend(cpus.ready(cores, bench.host, outweighs=outweighs))
    if not needs.clock:
        return None
    clock = check_clock(bench)
    if complaint := clock.complaint():
        plan.warn(complaint)
    plan.bench = replace(bench, tsc_hz=clock.told_hz)
    return clock


def programs(plan: SessionPlan) -> dict[str, str]:
    """Return the SHA-256 of the programs that take part, after `prepare`."""
    needs = plan.needs
    known = provenance.programs(
        needs.forwarders, generator=_own_generator(plan), probe=needs.probe, others=needs.others
    )
    return known | plan.programs()


def _own_generator(plan: SessionPlan) -> bool:
    """Return True if our generator sends."""
    needs = plan.needs
    return not needs.sender and any(plan.link(name).has_generator for name in needs.links)


def _sample(plan: SessionPlan, found: Link) -> Traffic:
    """Return traffic with everything that another generator must support."""
    locations = found.locations if isinstance(found, Ports) else ()
    senders = plan.bench.senders(len(locations))
    return Traffic(locations, SAMPLE_SIZE, 0.1, 1000.0, senders=senders, ip=plan.bench.ip)
