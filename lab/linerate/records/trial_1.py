# SPDX-License-Identifier: BSD-3-Clause
"""Convert lines of `linerate/trial-1`, which was one flat object for all experiments, to `trial-2`.

Nothing writes them any more. They are converted as JSON, before anything is validated: a field that
trial-1 did not have stays in place and is refused by `Trial`, as is a value of the wrong type.

trial-1 used one field for several things, which are separated here: `link` also named the cells of
experiment graph and, after a colon, tables; `size` was also a graph's objects in a batch.
"""

from __future__ import annotations

import re
from typing import Any

SCHEMA = "linerate/trial-1"

# Fields by part of trial-2, with their names in trial-1.
_IDENTITY = {
    name: name for name in ("experiment", "seed", "session", "block", "arm", "position", "role")
}
_PROGRAM = {
    "program": "described",
    **{name: name for name in ("forwarder", "probe", "build", "memory", "tsc_hz", "processes")},
}
_REQUEST = {
    "asked_pps": "pps",
    "asked_s": "seconds",
    "asked_frames": "frames",
    **{
        name: name
        for name in (
            "load", "load_share", "test", "attempt", "maximum_pps", "then_pps", "then_s", "ip",
            "directions", "protocol",
        )
    },
}  # fmt: skip
_FRAMES = {
    name: name
    for name in (
        "duration_s", "duration_uncertainty_s", "intended", "attempted", "refused",
        "lost_at_ingress", "late", "accepted", "forwarder_rx", "forwarder_tx", "forwarder_drops",
        "received", "link_drops", "unattributed", "pacing_error_ppm", "latency", "spans", "clock",
        "change", "polling", "cpu_time",
    )
}  # fmt: skip
_TABLES = re.compile(r"(?P<link>[^:]+):(?P<routes>\d+)-routes(?::(?P<rules>\d+)-rules)?")
# In experiment cloud, the role of trials in which tenants worked without a forwarder.
_ALONE = "alone"


def converted(old: dict[str, Any]) -> dict[str, Any]:
    """Convert a line to trial-2.

    Delays have no `net`: trial-1 did not record if the clock's cost was subtracted, so they are
    read as they were then.
    """
    rest = {**old}
    rest.pop("schema", None)
    new: dict[str, Any] = {
        "identity": _moved(rest, _IDENTITY),
        "program": _moved(rest, _PROGRAM),
        "request": _moved(rest, _REQUEST),
    }
    why, code = rest.pop("invalid", None), rest.pop("invalid_code", None)
    if why is not None:
        new["invalid"] = {"why": why, **({} if code is None else {"code": code})}
    cloud, graph = rest.pop("cloud", None), rest.pop("graph", None)
    figures = _moved(rest, _FRAMES)
    if not figures.get("link_drops"):
        figures.pop("link_drops", None)
    new["cell"] = _cell(rest, cloud)
    if isinstance(cloud, dict):
        cloud = {**cloud}
        cloud.pop("cell", None)
        _moved_rate(cloud, "full_pps", new["request"], "maximum_pps")
        _moved_rate(cloud, "ndr_pps", new["request"], "alone_pps")
        figures |= {name: value for name, value in cloud.items() if value not in ([], {})}
    if isinstance(graph, dict):
        # trial-2 has its duration in cycles.
        figures.pop("duration_s", None)
        figures |= graph
    elif graph is not None:
        rest["graph"] = graph
    # A trial that counts has an outcome, if one without a figure.
    if figures or why is None:
        new["outcome"] = {"kind": _kind(new, cloud, graph), **figures}
    # The remaining fields belong to every trial, or are unknown.
    return new | rest


def _moved(rest: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Take these fields out of `rest`, under their new names; absent ones stay absent."""
    return {new: value for old, new in names.items() if (value := rest.pop(old, None)) is not None}


def _moved_rate(rest: dict[str, Any], old: str, request: dict[str, Any], new: str) -> None:
    if (value := rest.pop(old, None)) is not None:
        request[new] = value


def _cell(rest: dict[str, Any], cloud: Any) -> dict[str, Any]:
    found: dict[str, Any] = {name: rest.pop(name) for name in ("link", "size") if name in rest}
    link = found.get("link")
    if isinstance(cloud, dict) and "cell" in cloud:
        return {"kind": "cloud", **found, "levels": cloud["cell"]}
    if isinstance(link, str) and "/" in link:
        return {"kind": "graph", "graph": link, "batch": found.get("size")}
    if isinstance(link, str) and (told := _TABLES.fullmatch(link)):
        rules = {"rules": int(told["rules"])} if told["rules"] else {}
        tables = {"link": told["link"], "routes": int(told["routes"])}
        return {"kind": "tables", **found, **tables, **rules}
    return {"kind": "link", **found}


def _kind(new: dict[str, Any], cloud: Any, graph: Any) -> str:
    if graph is not None or new["cell"]["kind"] == "graph":
        return "graph"
    if cloud is None:
        return "frames"
    return "tenants" if new["identity"].get("role") == _ALONE else "cloud"
