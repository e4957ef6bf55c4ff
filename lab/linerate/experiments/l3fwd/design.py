# SPDX-License-Identifier: BSD-3-Clause
"""The design of a run of experiment `l3fwd`.

Three factors, one at a time: routes, rules that filter packets at `BASE_ROUTES` routes, and frame
sizes. Tables are varied on links whose frames are made for them; frame size matters only on a link
with a generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from linerate.experiments.l3fwd.options import DEFAULT_FORWARDERS, DEFAULT_LINKS, Options
from linerate.experiments.overload.summarise import ArmsOf, OverloadDesign
from linerate.forwarders import forwarder
from linerate.host.errors import UsageError
from linerate.links import LINKS, TABLES, RoutedNearFree, link, rules
from linerate.links.tables import Tables
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Trial
from linerate.runs.options import Agreement, check_sizes
from linerate.runs.plans.block_plan import preset_note
from linerate.runs.plans.blocks import arms, check_blocks, takes

NAME = "l3fwd"
QUESTION = (
    "What does routing a packet cost, by the number of routes and rules, in C and in Rust, in a "
    "graph and without one?"
)
# The number of routes while the rules are varied.
BASE_ROUTES = 1000
# The frame size that stands for all where it makes no difference.
_SIZE = 64
# The routes on links without tables of their own.
_LAB = Tables(rules.BLOCKS)


@dataclass(kw_only=True)
class L3fwdDesign(OverloadDesign):
    """The design of `overload`, with the requested forwarders in their order."""

    forwarders: Annotated[list[str], Agreement("--forwarders")] = field(default_factory=list)

    def arms_in(self, trials: Sequence[Trial]) -> ArmsOf:
        """Return which arms each cell has in these records: those that were begun there."""
        there = {(trial.cell.name, trial.forwarder) for trial in trials if trial.role == "measure"}

        def found(cell: Cell) -> list[Arm]:
            names = [name for name in self.forwarders if (cell.link, name) in there]
            return arms(names) if names else []

        return found


def forwarders(options: Options) -> list[str]:
    return options.forwarders or DEFAULT_FORWARDERS


def arms_of(names: Sequence[str], on: str) -> list[Arm]:
    """Return the arms that can forward by this cell's tables; the first is its baseline."""
    found = link(on)
    tables = found.tables or _LAB
    fitting = [name for name in names if takes(name, found) and forwarder(name).holds(tables)]
    return arms(fitting) if fitting else []


def all_arms(names: Sequence[str], cells: Sequence[Cell]) -> list[Arm]:
    """Return the arms of all cells, each once."""
    found = {arm.label: arm for cell in cells for arm in arms_of(names, cell.link)}
    return list(found.values())


def cells(options: Options) -> list[Cell]:
    """Return the cells to run, in order."""
    _check(options)
    blocks = options.blocks or options.preset.blocks
    found = []
    for name in options.links or DEFAULT_LINKS:
        if isinstance(link(name), RoutedNearFree):
            found += [
                Cell(f"{name}{TABLES}{tables.name}", _SIZE, blocks) for tables in _tables(options)
            ]
        else:
            sizes = options.sizes or options.preset.sizes
            found += [Cell(name, size, blocks) for size in sizes]
    return _measurable(options, found)


def _tables(options: Options) -> list[Tables]:
    routes = options.preset.routes if options.routes is None else options.routes
    past = options.preset.rules if options.rules is None else options.rules
    found = [Tables(count) for count in routes]
    found += [Tables(BASE_ROUTES, count) for count in past if count]
    return found


def _check(options: Options) -> None:
    check_sizes(options.sizes)
    check_blocks(options.blocks)
    for tables in _tables(options):
        tables.check()
    arms(forwarders(options))
    for name in forwarders(options):
        # `holds` is True for programs that route by networks, with rules or without.
        if not any(forwarder(name).holds(tables) for tables in (_LAB, Tables(_LAB.routes, 100))):
            raise UsageError(
                f"--forwarders {name}: it does not route by networks",
                f"for instance {','.join(DEFAULT_FORWARDERS)}",
            )
    for name in options.links:
        found = link(name)
        if TABLES in name:
            raise UsageError(f"--link {name}: name the link alone", "--routes and --rules")
        if not (found.has_generator or isinstance(found, RoutedNearFree)):
            routed = ", ".join(n for n, each in LINKS.items() if isinstance(each, RoutedNearFree))
            raise UsageError(
                f"--link {name}: its frames have no addresses to route by",
                f"{routed}, or a link with a generator such as memif",
            )
        if isinstance(found, RoutedNearFree):
            for tables in _tables(options):
                _check_ports(tables, found.ports)


def _check_ports(tables: Tables, ports: int) -> None:
    for option, count in (("--routes", tables.routes), ("--rules", tables.rules or ports)):
        if count < ports:
            raise UsageError(f"{option} {count}: at least one for each of {ports} ports is needed")


def _measurable(options: Options, found: list[Cell]) -> list[Cell]:
    """Return the cells in which there is something to compare."""
    names = forwarders(options)
    kept = [cell for cell in found if arms_of(names, cell.link)]
    if not kept:
        raise UsageError(
            f"--forwarders {','.join(names)}: none of these routes by the tables of "
            f"{', '.join(cell.link for cell in found) or 'no cell'}",
            "other --forwarders, --routes or --rules",
        )
    return kept


def design_of(options: Options) -> L3fwdDesign:
    """Return the design of these options, with all defaults filled in."""
    chosen = cells(options)
    return L3fwdDesign.of(
        options,
        question=QUESTION,
        preset_note=preset_note(options),
        window_s=options.preset.window_s,
        cells=chosen,
        arms=all_arms(forwarders(options), chosen),
        forwarders=forwarders(options),
    )
