# SPDX-License-Identifier: BSD-3-Clause
"""The imports between modules of the lab, read from the sources; imports inside functions count,
too.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

LAB = Path(__file__).resolve().parents[1] / "lab" / "linerate"


def modules() -> dict[str, Path]:
    """Return the modules by dotted name; a package is its `__init__.py`."""
    found = {}
    for path in sorted(LAB.rglob("*.py")):
        parts = path.relative_to(LAB.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules of the lab that this file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                found.add(whole if whole in known else str(node.module))
    return found


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imports(path, known) - {name} for name, path in known.items()}


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan, SIAM J. Comput.
    1(2)).
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found
