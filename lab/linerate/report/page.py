# SPDX-License-Identifier: BSD-3-Clause
"""The common parts of all experiments' pages: one template that others extend, and its data.

Every sentence about a result comes from `linerate.verdict.sentences`; the templates add none of
their own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from linerate.host.text import counted, listed
from linerate.links import FindLink, Link, base_name
from linerate.records.cells import AA_SUFFIX, cell_words, is_graph
from linerate.records.summary import AA, Comparison, Summary
from linerate.records.trial import DISTURBED, Trial
from linerate.report import charts, console, vega
from linerate.verdict import sentences
from linerate.verdict.metrics import METRICS, words_of

_TEMPLATES = Path(__file__).with_name("templates")


class Charts:
    """Collects chart specifications and assigns each a place in the page."""

    def __init__(self) -> None:
        self.specifications: dict[str, dict[str, Any]] = {}

    def place(self, specification: dict[str, Any] | None) -> str | None:
        if specification is None:
            return None
        name = f"chart-{len(self.specifications)}"
        self.specifications[name] = specification
        return name


def render_page(
    template: Path,
    placed: Charts,
    summary: Summary,
    trials: list[Trial],
    link: FindLink,
    *,
    further: tuple[Path, ...] = (),
    **context: Any,
) -> str:
    """Return the whole page: `template`, which extends base.html.j2, with its own `context`.

    `further`: folders of other templates that it extends, beside its own and those of this package.
    The charts that the template shows are placed in `placed` beforehand; this adds the chart of the
    ratios, which every experiment has, and everything that base.html.j2 shows itself.
    """
    return render(
        template,
        placed,
        further=further,
        summary=summary,
        aa_suffix=AA_SUFFIX,
        ratio_chart=placed.place(charts.ratios(summary)),
        primary=[c for c in summary.comparisons if c.primary],
        secondary=[c for c in summary.comparisons if not c.primary],
        bed=bed_of(summary, trials, link),
        commands=commands(trials),
        stolen=sum(sum(t.steal_ticks.values()) for t in trials) / 100,
        **context,
    )


def render(
    template: Path, placed: Charts, *, further: tuple[Path, ...] = (), **context: Any
) -> str:
    """Return a whole page: `template`, which extends skeleton.html.j2, with its own `context`.

    Raises `LookupError` where that lacks something.
    """
    specifications = placed.specifications
    # Sorting and printing work without a chart.
    texts = [_resource("sort.js"), _resource("print.js")]
    if specifications:
        texts += [vega.script(), _resource("charts.js")]
    scripts = [_script_safe(text) for text in texts]
    page = _environment((template.parent, *further)).get_template(template.name)
    try:
        return page.render(
            style=Markup(_resource("style.css")),
            charts_json=_json_safe(specifications) if specifications else "",
            scripts=scripts,
            policy=_policy(scripts),
            **context,
        )
    except jinja2.UndefinedError as error:
        # A table of a file that somebody changed: an entry that every lab writes is not there.
        raise LookupError(str(error)) from error


@cache
def _environment(folders: tuple[Path, ...]) -> jinja2.Environment:
    """Return the template environment, made once per experiment, so that its templates are
    cached.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, *folders]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(number=console.number, share=console.share, median=console.median)
    environment.filters.update(bursts=console.bursts, counted=counted)
    environment.filters.update(p_value=console.p_value, untold=untold)
    environment.globals.update(cell_words=cell_words, disturbed=DISTURBED)
    environment.globals.update(own_share=console.own_share)
    environment.filters.update(compared_by=_compared_by, difference=_difference)
    environment.filters.update(control=sentences.control, controls=sentences.controls)
    environment.filters.update(verdict_word=sentences.verdict_word)
    return environment


@dataclass(frozen=True)
class Untold:
    """Comparisons without an answer, all for the same reason. Those that differ in nothing but the
    frame size are one statement.
    """

    reason: str
    statements: list[str]


def untold(comparisons: Sequence[Comparison]) -> list[Untold]:
    """Return the undecided comparisons, by reason."""
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        if each.verdict in ("undecided", "invalid"):
            found.setdefault(each.reason, []).append(each)
    return [Untold(reason, _statements(same)) for reason, same in found.items()]


def _statements(comparisons: Sequence[Comparison]) -> list[str]:
    found: dict[tuple[str, ...], list[Comparison]] = {}
    for each in comparisons:
        found.setdefault((each.arm, each.baseline, each.link, _compared_by(each)), []).append(each)
    return [
        f"{arm} against {baseline} on {_cells(same)} by {metric}{_figures(same)}"
        for (arm, baseline, _, metric), same in found.items()
    ]


def _cells(same: Sequence[Comparison]) -> str:
    """Return the link with all sizes."""
    first = same[0]
    if len(same) == 1 or is_graph(first.link):
        return cell_words(first.link, first.size, " at ")
    return f"{first.link} at {listed(str(each.size) for each in same)} B"


def _figures(same: Sequence[Comparison]) -> str:
    """Return the ratios, and the least difference that would have been found."""
    ratios = [each.ratio for each in same if each.ratio is not None]
    if not ratios:
        return ""
    least = [each.smallest_detectable for each in same if each.smallest_detectable is not None]
    would = f"; could find {_range(least, console.share)}" if least else ""
    told = _range(ratios, _ratio)
    return f" ({'ratios' if ' ' in told else 'ratio'} {told}{would})"


def _ratio(value: float) -> str:
    return console.number(value, 3)


def _range(values: Sequence[float], words: Callable[[float], str]) -> str:
    low, high = words(min(values)), words(max(values))
    return low if low == high else f"{low} to {high}"


def _compared_by(found: AA | Comparison) -> str:
    return words_of(found.metric, found.load_share)


def _difference(value: float, metric: str) -> str:
    """Format the difference of two values of the metric, in the unit of sentences."""
    known = METRICS[metric]
    return f"{value * known.scale:+.3g}{known.unit}"


def _script_safe(text: str) -> Markup:
    """Make a script safe inside <script>: it must neither end the element nor open a comment in
    it.
    """
    text = re.sub(r"</(script)", r"<\\/\1", text, flags=re.IGNORECASE)
    return Markup(text.replace("<!--", "\\x3C!--"))


def _json_safe(data: object) -> Markup:
    """Make JSON safe inside <script>: JSON has other escapes, and `<` only in strings."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _policy(scripts: list[Markup]) -> str:
    """Return the page's Content-Security-Policy: nothing is loaded, and no script runs but these.

    Vega sets styles of what it draws; the icon is an empty data address.
    """
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return resources.files("linerate.report").joinpath(name).read_text(encoding="utf-8")


# Facts shown about a program that the lab built.
_BUILT = {"source", "compiler", "command"}


@dataclass(frozen=True)
class Commands:
    """The command lines behind one arm of one cell, from its first valid trial."""

    where: str
    arm: str
    lines: list[tuple[str, str, str]]
    build: dict[str, str]


def commands(trials: list[Trial]) -> list[Commands]:
    seen: dict[tuple[str, int, str, str, float | None], Trial] = {}
    for trial in trials:
        # A search goes through many loads with one process.
        share = trial.request.load_share if trial.role == "lower-load" else None
        key = (*trial.cell.key, trial.role, trial.arm, share)
        if trial.program.processes and (key not in seen or not seen[key].valid):
            seen[key] = trial
    result = []
    for (link_name, size, role, arm, load_share), trial in seen.items():
        load = f", {load_share:.0%} load" if load_share else ""
        kind = {
            "measure": "",
            "search": "",
            "alone": ", tenants alone",
            "self-test": ", self-test",
            "probed": ", with the probe",
            "lower-load": load,
        }[role]
        result.append(
            Commands(
                f"{cell_words(link_name, size, ', ')}{kind}",
                arm,
                [
                    (process.role, shlex.join(process.argv), ",".join(map(str, process.cpus)))
                    for process in trial.program.processes
                ],
                trial.program.build if trial.program.build.keys() >= _BUILT else {},
            )
        )
    return result


@dataclass(frozen=True)
class Bed:
    """Values for the drawing of the test bed."""

    carried: bool
    self_driven: bool
    links: str
    frames: str
    carried_ports: str
    null_ports: str
    drivers: str
    arms: list[str]
    cores: dict[str, int]


def bed_of(summary: Summary, trials: list[Trial], link: FindLink) -> Bed:
    # A graph has no links.
    cells = [cell for cell in summary.cells if not is_graph(cell.link)]
    links = {cell.link: link(cell.link) for cell in cells}
    carried = [found for found in links.values() if found.has_generator]
    self_driven = [found for found in links.values() if not found.has_generator]
    return Bed(
        carried=bool(carried),
        self_driven=bool(self_driven),
        links=", ".join(_families(carried)),
        frames=_frames(trials),
        carried_ports=_ports(carried),
        null_ports=_ports(self_driven),
        drivers=" / ".join(dict.fromkeys(filter(None, (found.driver for found in links.values())))),
        arms=list(dict.fromkeys(arm.arm for cell in cells for arm in cell.arms)),
        cores=_cores(trials),
    )


def _frames(trials: list[Trial]) -> str:
    """Describe the content of the frames."""
    protocols = {trial.request.protocol or "udp" for trial in trials} or {"udp"}
    versions = sorted({trial.request.ip or 4 for trial in trials} or {4})
    told = {"udp": " and ".join(f"IPv{ip}" for ip in versions) + " / UDP", "arp": "ARP"}
    return " or ".join(told[name] for name in ("udp", "arp") if name in protocols)


def _families(links: Sequence[Link]) -> list[str]:
    """Return the names of the links without the number of their ports, which the drawing shows
    separately.
    """
    names = [base_name(link.name).rstrip("0123456789") for link in links]
    return list(dict.fromkeys(names))


def _ports(links: Sequence[Link]) -> str:
    """Format the numbers of these links' ports."""
    words = {1: "one port in and out", 2: "two ports"}
    return ", and ".join(words[count] for count in sorted({link.ports for link in links}))


def _cores(trials: list[Trial]) -> dict[str, int]:
    """Return the CPU of each role, from the first trial with processes."""
    for trial in trials:
        if len(trial.program.processes) > 1 or all(len(t.program.processes) < 2 for t in trials):
            return {process.role: process.cpus[0] for process in trial.program.processes}
    return {}
