# SPDX-License-Identifier: BSD-3-Clause
"""Posts each property of the model to a generator, and makes a page of the answers.

    .venv/bin/python crates/generator/tests/otg_model.py      writes docs/otg-model.md

The properties are those of snappi's own classes. An object that is refused is not looked into: what
it has inside is counted. Flows are posted many at a time; those without a fault once more, to see
them accepted.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness import Generator, generator
from snappi import snappi as model

PAGE = Path(__file__).parents[3] / "docs" / "otg-model.md"
CLASSES: dict[str, Any] = {
    name: found
    for name, found in vars(model).items()
    if isinstance(found, type) and issubclass(found, model.OpenApiObject)
}
# Faults and warnings of one answer are limited to 50.
TOGETHER = 40

PORT = {"name": "p1", "location": "ring:r"}


def _device(n: int) -> dict[str, Any]:
    """A device with an interface `eN` and an address `aN`."""
    address = {"name": f"a{n}", "address": f"198.51.100.{n}", "gateway": f"198.51.100.{3 - n}"}
    return {
        "name": f"d{n}",
        "ethernets": [
            {
                "name": f"e{n}",
                "connection": {"choice": "port_name", "port_name": "p1"},
                "mac": f"02:00:00:00:00:a{n}",
                "ipv4_addresses": [address],
            }
        ],
    }


DEVICES = [_device(1), _device(2)]
FLOW = {
    "name": "f0",
    "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p1"]}},
    "size": {"choice": "fixed", "fixed": 512},
    "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": 1}},
}
# What an object must have beside the property that is posted, by class.
BASES: dict[str, dict[str, Any]] = {
    "Config": {"ports": [PORT], "flows": []},
    "Port": {"name": "p2", "location": "ring:q"},
    "Flow": FLOW,
    "FlowTxRx": {"choice": "port", "port": {"tx_name": "p1"}},
    "FlowPort": {"tx_name": "p1"},
    "FlowRouter": {"tx_names": ["a1"], "rx_names": ["a2"]},
    "Device": {"name": "d"},
    "DeviceEthernet": {
        "name": "e",
        "connection": {"choice": "port_name", "port_name": "p1"},
        "mac": "02:00:00:00:00:01",
    },
    "EthernetConnection": {"choice": "port_name", "port_name": "p1"},
    "DeviceIpv4": {"name": "a", "address": "192.0.2.1", "gateway": "192.0.2.2"},
    "DeviceIpv6": {"name": "a", "address": "2001:db8::1", "gateway": "2001:db8::2"},
    "FlowMetrics": {"enable": True},
    "Capture": {"name": "c", "port_names": ["p1"]},
    "CaptureField": {"value": "01", "mask": "01"},
    "CaptureCustom": {"value": "01", "mask": "01"},
    "Layer1": {"name": "l", "port_names": ["p1"]},
    "FlowCustom": {"bytes": "00ff"},
    "FlowsUpdate": {
        "property_names": ["rate"],
        "flows": [{**FLOW, "rate": {"choice": "pps", "pps": 10}}],
    },
    "CaptureRequest": {"port_name": "p1"},
    "FlowMetricTagFilter": {"name": "rx_name"},
}
# Values in place of those that the types suggest.
SAMPLES: dict[tuple[str, str], list[Any]] = {
    ("Flow", "name"): ["f0"],
    ("FlowCustom", "bytes"): ["00ff"],
    ("FlowSize", "fixed"): [64, 1518],
    ("FlowSizeIncrement", "start"): [64, 128],
    ("FlowSizeIncrement", "end"): [1518, 1500],
    ("FlowSizeRandom", "min"): [64, 128],
    ("FlowSizeRandom", "max"): [1518, 1500],
    ("FlowSizeWeightPairsCustom", "size"): [64, 1518],
    ("FlowRate", "gbps"): [1, 10],
    ("FlowRate", "percentage"): [100.0, 12.5],
    ("FlowRxTxRatio", "value"): [1.0, 0.5],
    ("FlowFixedSeconds", "seconds"): [1.0, 0.25],
    ("FlowDuration", "choice"): ["fixed_packets", "fixed_seconds", "burst", "continuous"],
    ("Layer1", "mtu"): [1500, 9000],
    ("DeviceEthernet", "mtu"): [1500, 9000],
    ("FlowRouter", "tx_names"): [["a1"]],
    ("FlowRouter", "rx_names"): [["a2"]],
    ("Layer1FlowControl", "directed_address"): ["01:80:C2:00:00:01", "01:80:C2:00:00:02"],
    ("CaptureField", "negate"): [True, False],
    ("FlowIpv6SegmentRoutingUsidSegment", "usids"): [["0001"]],
    ("FlowIpv6UsidDst", "usids"): [["0001"]],
    ("Config", "flows"): [[FLOW]],
    ("FlowsUpdate", "flows"): [[{**FLOW, "rate": {"choice": "pps", "pps": 10}}]],
    ("FlowsUpdate", "property_names"): [["rate"]],
    ("FlowMetricTagFilter", "name"): ["rx_name"],
}
# Some fields have one bit.
TAG_SAMPLES: dict[str, list[Any]] = {"offset": [0], "length": [1]}
BY_NAME: dict[str, list[Any]] = {
    "port_names": [["p1"]], "port_name": ["p1"], "tx_name": ["p1"], "rx_name": ["p1"],
    "rx_names": [["p1"]], "flow_names": [["f0"]], "location": ["ring:q"], "name": ["another"],
    "ethernet_names": [["e1"]],
}  # fmt: skip
BY_FORMAT = {"mac": "02:00:00:00:00:07", "ipv4": "192.0.2.7", "ipv6": "2001:db8::7", "hex": "01"}


@dataclass(frozen=True)
class Step:
    """A property of a class, on the way to another."""

    kind: str
    name: str


Way = tuple[Step, ...]


@dataclass
class Answer:
    """What the generator says to one value: accepted without a word, ignored, or refused."""

    value: Any
    verdict: str
    why: str = ""
    path: str = ""


@dataclass
class Row:
    """A property, and the answers to its values."""

    way: Way
    answers: list[Answer] = field(default_factory=list)

    @property
    def path(self) -> str:
        return ".".join(step.name for step in self.way)

    def of(self, verdict: str) -> list[Answer]:
        return [answer for answer in self.answers if answer.verdict == verdict]

    @property
    def verdict(self) -> str:
        if not self.of("refused"):
            return "ignored with a warning" if self.of("ignored") else "supported"
        return "refused" if not self.of("supported") else "supported in part"


@dataclass
class Root:
    """A request: its class, and how it is sent."""

    kind: str
    title: str
    method: str
    url: str


ROOTS = [
    Root("Config", "Configurations: `set_config`", "POST", "/config"),
    Root("ConfigUpdate", "Changes: `update_config`", "PATCH", "/config"),
    Root("ControlState", "States: `set_control_state`", "POST", "/control/state"),
    Root("ControlAction", "Actions: `set_control_action`", "POST", "/control/action"),
    Root("MetricsRequest", "Metrics: `get_metrics`", "POST", "/monitor/metrics"),
    Root("StatesRequest", "States of protocols: `get_states`", "POST", "/monitor/states"),
    Root("CaptureRequest", "Files of captures: `get_capture`", "POST", "/monitor/capture"),
]


def types(kind: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = CLASSES[kind]._TYPES
    return found


def inner(spec: dict[str, Any]) -> tuple[str | None, bool]:
    """The class of a property that is an object or a list of objects, and whether it is a list."""
    name = spec["type"]
    if not isinstance(name, str):
        return None, False
    one = name.removesuffix("Iter")
    return (one, True) if name != one and one in CLASSES else (name, False)


def alternatives(kind: str) -> list[str]:
    return list(types(kind).get("choice", {}).get("enum", []))


def samples(kind: str, name: str) -> list[Any]:
    """Values of a property that is no object, the default first."""
    spec = types(kind)[name]
    named = BY_NAME.get(name) if spec["type"] in (str, list) else None
    if found := SAMPLES.get((kind, name)) or named:
        return found
    if kind.endswith("MetricTag") and name in TAG_SAMPLES:
        return TAG_SAMPLES[name]
    if "enum" in spec:
        return [[word] for word in spec["enum"]] if spec["type"] is list else list(spec["enum"])
    default = CLASSES[kind]._DEFAULTS.get(name)
    first = [] if default is None else [default]
    if spec["type"] is bool:
        return [False, True]
    if spec["type"] is list:
        return [[_sample(spec["itemtype"], spec.get("itemformat"), spec)]]
    other = _sample(spec["type"], spec.get("format"), spec)
    return [*first, *([] if other in first else [other])]


def _sample(kind: type, form: str | None, spec: dict[str, Any]) -> Any:
    if kind is str:
        return BY_FORMAT.get(form or "", "x")
    least = spec.get("minimum", 0)
    return kind(min(least + 1, spec.get("maximum", least + 1)))


def put(made: dict[str, Any], kind: str, name: str, value: Any) -> None:
    """Sets a property; of a choice, in the place of any other alternative."""
    words = alternatives(kind)
    if name in words:
        for word in words:
            made.pop(word, None)
        made["choice"] = name
    made[name] = value


def least(kind: str) -> dict[str, Any]:
    """The smallest object that can be."""
    made = copy.deepcopy(BASES.get(kind, {}))
    for name in CLASSES[kind]._REQUIRED:
        if name == "choice":
            word = alternatives(kind)[0]
            if word in types(kind):
                put(made, kind, word, one(kind, word))
            else:
                made["choice"] = word
        elif name not in made:
            put(made, kind, name, one(kind, name))
    return made


def one(kind: str, name: str) -> Any:
    """One value of a property."""
    if (kind, name) in SAMPLES:
        return SAMPLES[kind, name][0]
    found, is_list = inner(types(kind)[name])
    if found is None:
        return samples(kind, name)[-1]
    return [least(found)] if is_list else least(found)


def placed(way: Way, value: Any) -> dict[str, Any]:
    """The object of the way's first class that has the value at its end."""
    for step in reversed(way):
        made = least(step.kind)
        _, is_list = inner(types(step.kind)[step.name])
        if step is not way[-1] and is_list:
            value = [PORT, value] if step == Step("Config", "ports") else [value]
        if step.name == "choice":
            for word in alternatives(step.kind):
                made.pop(word, None)
            if value in types(step.kind):
                made[value] = one(step.kind, value)
            made["choice"] = value
        else:
            put(made, step.kind, step.name, value)
        value = made
    assert isinstance(value, dict)
    return value


def normal(path: str) -> str:
    """Without indices of lists."""
    out, depth = [], 0
    for char in path:
        depth += char == "["
        if not depth:
            out.append(char)
        depth -= char == "]"
    return "".join(out)


def concerns(found: str, way: Way) -> bool:
    """Whether a path of an answer is that of a property, or leads to it or into it."""
    # A choice is at fault where its alternative is, and the other way round.
    own = [step.name for step in way if step.name != "choice"]
    parts = [part for part in found.split(".") if part not in ("", "choice")]
    shorter = min(len(own), len(parts))
    return own[:shorter] == parts[:shorter]


class Walk:
    """The properties that have been posted, of all requests."""

    def __init__(self, running: Generator) -> None:
        self.running = running
        self.rows: dict[str, list[Row]] = {root.kind: [] for root in ROOTS}
        self.seen: dict[str, str] = {}
        # What is the same as elsewhere, by path.
        self.same: dict[str, dict[str, str]] = {root.kind: {} for root in ROOTS}
        self.posts = 0

    def all(self) -> None:
        for root in ROOTS:
            self._through(root)

    def _through(self, root: Root) -> None:
        if root.kind != "Config":
            self._prepare()
        self.seen[root.kind] = ""
        level: list[tuple[str, Way]] = [(root.kind, ())]
        while level:
            rows = [Row((*way, Step(kind, name))) for kind, way in level for name in types(kind)]
            cases = [(row, value) for row in rows for value in self._values(row.way[-1])]
            self._ask(root, cases)
            self.rows[root.kind] += rows
            level = []
            for row in rows:
                step = row.way[-1]
                found, _ = inner(types(step.kind)[step.name])
                if found is None or row.verdict == "refused":
                    continue
                if found in self.seen:
                    self.same[root.kind][row.path] = self.seen[found]
                    continue
                self.seen[found] = row.path
                level.append((found, row.way))

    @staticmethod
    def _values(step: Step) -> list[Any]:
        found, _ = inner(types(step.kind)[step.name])
        return samples(step.kind, step.name) if found is None else [one(step.kind, step.name)]

    def _ask(self, root: Root, cases: list[tuple[Row, Any]]) -> None:
        flows = []
        for row, value in cases:
            if _is_flow(root, row.way):
                flows.append((row, value))
            else:
                row.answers.append(self._single(root, row.way, value))
        while flows:
            now, flows = flows[:TOGETHER], flows[TOGETHER:]
            self._together(root, now)

    def _post(self, root: Root, body: dict[str, Any]) -> tuple[list[str], list[str]]:
        """Errors and warnings."""
        self.posts += 1
        text = json.dumps(body)
        if root.kind == "CaptureRequest":
            return self.running.download(root.url, text), []
        status, answer = self.running.request(root.method, root.url, text)
        if status == 200:
            return [], list(answer.get("warnings", []))
        return list(answer["errors"]), []

    def _single(self, root: Root, way: Way, value: Any) -> Answer:
        if root.kind == "ControlState":  # each may change what the next is about
            self._prepare()
        body = placed(way, value)
        errors, warnings = self._post(root, body)
        return judged(value, way, errors, warnings)

    def _prepare(self) -> None:
        """What other requests are about: a port that is captured and up, devices, and a flow."""
        metrics = {"enable": True, "predefined_metric_tags": {"rx_name": True}}
        config = {
            "ports": [PORT],
            "devices": DEVICES,
            "flows": [{**FLOW, "metrics": metrics}],
            "captures": [BASES["Capture"]],
        }
        self._carried_out("/config", config)
        for port in (
            {"choice": "link", "link": {"state": "up"}},
            {"choice": "capture", "capture": {"state": "start"}},
        ):
            self._carried_out("/control/state", {"choice": "port", "port": port})

    def _carried_out(self, url: str, body: dict[str, Any]) -> None:
        status, answer = self.running.request("POST", url, json.dumps(body))
        assert status == 200, answer

    def _together(self, root: Root, cases: list[tuple[Row, Any]]) -> None:
        flows = []
        for number, (row, value) in enumerate(cases):
            flow = placed(row.way[1:], value)
            flows.append({**flow, "name": f"f{number}"})
        config = {**copy.deepcopy(BASES["Config"]), "devices": DEVICES}
        errors, _ = self._post(root, {**config, "flows": flows})
        by_flow = [[e for e in errors if e.startswith(f"flows[{n}]")] for n in range(len(flows))]
        assert sum(map(len, by_flow)) == len(errors), errors
        good = [n for n, found in enumerate(by_flow) if not found]
        rest, warnings = self._post(root, {**config, "flows": [flows[n] for n in good]})
        assert not rest, rest
        for number, (row, value) in enumerate(cases):
            own: list[str] = []
            if number in good:
                prefix = f"flows[{good.index(number)}]."
                own = [warning for warning in warnings if warning.startswith(prefix)]
            row.answers.append(judged(value, row.way, by_flow[number], own))


def _is_flow(root: Root, way: Way) -> bool:
    """Whether it is a property of a flow, whose name may be any."""
    in_flow = len(way) > 1 and way[0] == Step("Config", "flows") and way[1].name != "name"
    return root.kind == "Config" and in_flow


def judged(value: Any, way: Way, errors: list[str], warnings: list[str]) -> Answer:
    if errors:
        split = [error.partition(": ") for error in errors]
        own = [found for found in split if concerns(normal(found[0]), way)]
        path, _, why = (own or split)[0]
        return Answer(value, "refused", why or path, normal(path))
    for warning in warnings:
        path, _, why = warning.partition(": ")
        if why.startswith("ignored") and concerns(normal(path), way):
            return Answer(value, "ignored", why.removeprefix("ignored: "), normal(path))
    return Answer(value, "supported")


def shown(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return f"`{json.dumps(value) if isinstance(value, bool | dict | list) else value}`"


def inside(rows: list[Row], row: Row) -> list[Row]:
    return [each for each in rows if each.path.startswith(f"{row.path}.")]


def cells(row: Row, below: list[Row]) -> tuple[str, str]:
    """What the page says of a property. `below`: of a pattern, its own properties."""
    if below:
        good = [_own(row, each) for each in below if each.verdict.startswith("supported")]
        bad = [each for each in below if not each.verdict.startswith("supported")]
        bad = [each for each in bad if not _is_refused_tag(each)]
        names = ", ".join(name for name in good if "." not in name and name != "choice")
        why = "; ".join(f"`{_own(row, each)}`: {reason(each)}" for each in bad)
        return f"supported: {names}", f"refused: {why}" if why else ""
    if row.verdict == "supported in part":
        return _in_part(row)
    if row.verdict == "ignored with a warning" and row.of("supported"):
        return row.verdict, f"{', '.join(shown(a.value) for a in row.of('ignored'))}: {reason(row)}"
    return row.verdict, reason(row)


def _is_refused_tag(row: Row) -> bool:
    return row.way[-1].name == "metric_tags" and row.verdict == "refused"


def _own(row: Row, each: Row) -> str:
    return each.path.removeprefix(f"{row.path}.")


def _in_part(row: Row) -> tuple[str, str]:
    good = ", ".join(shown(answer.value) for answer in row.of("supported"))
    refused: dict[str, list[str]] = {}
    for answer in row.of("refused"):
        refused.setdefault(clean(answer.why), []).append(shown(answer.value))
    rest = [f"{', '.join(values)}: {why}" for why, values in refused.items()]
    return f"only {good}", "; ".join(rest)


def clean(text: str) -> str:
    # The page itself is the list of headers.
    text = text.partition("; the headers are ")[0]
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= 200 else f"{text[:197]}..."


def reason(row: Row) -> str:
    found = [clean(answer.why) for answer in row.answers if answer.why]
    return found[0] if found else ""


def is_pattern(step: Step) -> bool:
    found, _ = inner(types(step.kind)[step.name])
    return found is not None and found.startswith("Pattern")


def reachable(kind: str) -> Iterator[str]:
    seen, rest = set(), [kind]
    while rest:
        at = rest.pop()
        if at in seen:
            continue
        seen.add(at)
        yield at
        rest += [name for spec in types(at).values() if (name := inner(spec)[0]) is not None]


HEAD = """# What does the generator take of the OTG model, property by property?

The [generator](drive-the-generator.md) was asked about the properties of snappi {release}: each was
posted, with every word or truth value that it may have, or with its default and another value. The
rows are the answers. `{script}` writes this page, and a test compares it with the answers of today.

{total} properties belong to requests. Of these, {posted} were posted:
{counts}.
The other {hidden} are inside objects that are refused as a whole, such as `devices.bgp`.

- *supported*: it does what the model says.
- *only ...* (in part): these values are supported; the row says why others are not.
- *ignored with a warning*: it changes no frame. The request is carried out, and the answer has the
  warning.
- *refused*: the request gets a 400 with this reason behind the property's path, and changes
  nothing.

Patterns have one row: that of the field that they set. {tags}
"""


def _about_tags(rows: list[Row]) -> str:
    tags = [row for row in rows if row.way[-1].name == "metric_tags"]
    if all(_is_refused_tag(row) for row in tags):
        return "All `metric_tags` are refused; they are not in the rows."
    return "Fields without `metric_tags` in their row refuse them."


def page(walk: Walk) -> str:
    rows = [row for found in walk.rows.values() for row in found]
    total = sum(len(types(k)) for k in {k for root in ROOTS for k in reachable(root.kind)})
    counts = Counter(row.verdict for row in rows)
    order = ["supported", "supported in part", "ignored with a warning", "refused"]
    out = [
        HEAD.format(
            release=version("snappi"),
            script="scripts/otg-model",
            total=f"{total:,}",
            posted=f"{len(rows):,}",
            counts=", ".join(f"{counts[word]:,} are {word}" for word in order),
            hidden=f"{total - len(rows):,}",
            tags=_about_tags(rows),
        )
    ]
    for root in ROOTS:
        out.append(f"\n## {root.title}\n\n| property | | |\n|---|---|---|")
        found = sorted(walk.rows[root.kind], key=lambda row: row.path)
        hidden: set[str] = set()
        for row in found:
            if row.path in hidden:
                continue
            below: list[Row] = []
            if is_pattern(row.way[-1]) and row.verdict != "refused":
                below = inside(found, row)
                hidden |= {each.path for each in below}
            said, why = cells(row, below)
            if row.path in walk.same[root.kind]:
                why = f"as `{walk.same[root.kind][row.path]}`"
            out.append(f"| `{row.path}` | {said} | {why} |")
    return "\n".join(out) + "\n"


def walked(directory: Path) -> Walk:
    """A walk through all properties, asked of a generator of its own."""
    with generator(directory, "--line-rate", "10Gbps") as running:
        walk = Walk(running)
        walk.all()
    return walk


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="otg") as directory:
        walk = walked(Path(directory))
    PAGE.write_text(page(walk), encoding="utf-8")
    print(f"{PAGE}: {walk.posts} posts", file=sys.stderr)


if __name__ == "__main__":
    main()
