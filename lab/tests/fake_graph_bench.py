# SPDX-License-Identifier: BSD-3-Clause
"""A program with the protocol of graph-bench that runs nothing: its figures are drawn.

It takes graph-bench's options. LINERATE_FAKE_GRAPH, in JSON, makes it lie: see `LIES`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

HZ = 2_000_000_000
# Cycles per object and node, by mechanism.
COST = {"swap": 0.5, "copy8": 1.0, "assign1": 3.0, "assign4": 2.0, "speculate": 1.5}
SPEED = {"c-graph": 1.0, "rust-graph": 1.02, "fused": 1.5, "one-loop": 2.0}
# Workers that an object passes.
WORKERS = {"chain1": 1, "chain4": 4, "split2": 1, "split4": 1, "split8": 1, "tree": 3}
# Nodes that are drawn with equal cost.
NODES = {"chain1": 3, "chain4": 6, "split2": 4, "split4": 5, "split8": 6, "tree": 5}
# other_work, losing, refusing, dying: the arm that does; of dying also "every". noise: relative.
# starved: by arm, in how many of its next slices others have the CPU; "run": of the first ones.
LIES: dict[str, Any] = {
    "other_work": None,
    "losing": None,
    "refusing": None,
    "dying": None,
    "noise": 0.005,
    "starved": {},
}
LIES |= json.loads(os.environ.get("LINERATE_FAKE_GRAPH", "{}"))
# The native program is another file.
NATIVE = sys.argv[0].endswith("-native")
# The same figures in each run of a test: of unseeded ones, one run in hundreds is a rare draw.
random.seed(NATIVE)


def liar(about: str) -> str | None:
    """Return the arm that lies; the native program has none."""
    return None if NATIVE else LIES[about]


def cells() -> list[dict[str, object]]:
    libraries = [word.partition("=")[0] for word in sys.argv if "=" in word]
    rust = ["rust-graph", "fused", "one-loop"]
    found = []
    names = [f"chain4/{each}/{work}/nostats/256" for each in COST for work in ("none", "hash5")]
    names += [f"chain4/swap/hash5/{each}" for each in ("nostats/8", "nostats/64", "stats/256")]
    names += [f"{each}/assign1/hash5/nostats/256" for each in NODES if each != "chain4"]
    for name in names:
        arms = [f"c-graph/{each}" for each in libraries] + rust
        if "copy" in name:
            arms.remove("fused")
        found.append({"cell": name, "arms": arms, "path_nodes": WORKERS[name.partition("/")[0]]})
    return found


def starved(whom: str) -> bool:
    left = 0 if NATIVE else LIES["starved"].get(whom, 0)
    if left > 0:
        LIES["starved"][whom] = left - 1
    return bool(left > 0)


def run(cell: str, arm: str, walks: int, *, first: bool) -> dict[str, object]:
    shape, passing, work, _, batch = cell.split("/")
    if arm == liar("refusing"):
        return {"error": f"{cell}: {arm} would rather not"}
    if LIES["dying"] == "every" or arm == liar("dying"):
        sys.exit("graph-bench: cannot go on")
    objects = walks * int(batch)
    cost = COST[passing] * NODES[shape] + (4 if work == "hash5" else 0) + 50 / int(batch)
    speed = SPEED[arm.partition("/")[0]] * (1.05 if NATIVE or arm.endswith("native") else 1)
    cycles = objects * cost / speed * random.gauss(1, LIES["noise"])
    return {
        "cell": cell,
        "arm": arm,
        "walks": walks,
        "objects": objects,
        "sunk": objects - (arm == liar("losing")),
        "tsc_cycles": round(cycles),
        "tsc_hz": HZ,
        "waited_ns": 10_000_000 if starved("run" if first else arm) else 0,
        "work": f"{walks:x}" + ("ff" if arm == liar("other_work") else ""),
    }


for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "cells":
        told: dict[str, object] = {"cells": cells()}
    elif request["do"] == "run":
        told = run(request["cell"], request["arm"], 1000, first=True)
    else:
        asked = [(each["cell"], each["arm"], each["walks"]) for each in request["of"]]
        told = {"slices": [run(*each, first=False) for each in asked]}
    print(json.dumps(told), flush=True)
