# SPDX-License-Identifier: BSD-3-Clause
"""The lab's packages are layers: imports lead down, in no circle, and folders are small."""

from __future__ import annotations

from collections import defaultdict

from lab_imports import LAB, circles, graph

# From the lowest: each may import from those before it.
LAYERS = (
    "host", "records", "telemetry", "links", "traffic", "forwarders", "trial", "verdict", "runs",
    "report", "experiments", "cli",
)  # fmt: skip
# Entries of a folder.
MOST = 15


def layer(module: str) -> int:
    """The package's place; the lab's own name and entry stand above all."""
    parts = module.split(".")
    if len(parts) == 1:
        return -1
    return LAYERS.index(parts[1]) if parts[1] in LAYERS else len(LAYERS)


def test_every_package_is_a_layer() -> None:
    packages = {path.name for path in LAB.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(LAYERS)


def test_imports_lead_down() -> None:
    upward = [
        f"{module} imports {target}"
        for module, targets in graph().items()
        for target in sorted(targets)
        if layer(target) > layer(module)
    ]
    assert upward == []


def test_there_is_no_circle_of_modules() -> None:
    assert circles(graph()) == []


def test_there_is_no_circle_of_packages() -> None:
    """Also not of the folders inside a package."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph().items():
        for target in targets:
            one, other = module.rpartition(".")[0], target.rpartition(".")[0]
            if one != other and not one.startswith(f"{other}.") and not other.startswith(f"{one}."):
                edges[one].add(other)
    assert circles(edges) == []


def test_no_folder_has_more_entries_than_can_be_seen_at_a_glance() -> None:
    folders = [
        path for path in (LAB, *LAB.rglob("*")) if path.is_dir() and path.name != "__pycache__"
    ]
    crowded = {
        str(folder.relative_to(LAB.parent)): count
        for folder in folders
        if (count := sum(each.name != "__pycache__" for each in folder.iterdir())) > MOST
    }
    assert crowded == {}


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert circles(edges) == [["a", "b", "c"]]
