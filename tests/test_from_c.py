# SPDX-License-Identifier: BSD-3-Clause
"""docs/from-c.md is true: its left column names items of DPDK, its middle one public items."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "from-c.md").read_text(encoding="utf-8")
CRATES = ("dpdk", "graph", "packet")
# What the crates call for reasons of their own; nobody who comes from C looks for it.
UNDERNEATH = re.compile(
    r"rte_(acl_find_existing|bus_name|dev_bus|eal_iova_mode|eth_call_[rt]x_callbacks|eth_dev_is_valid_port|free"
    r"|graph_id_to_name|graph_lookup|intr_\w+|malloc_virt2iova|mbuf_best_mempool_ops|mem_virt2iova|mempool_create_empty"
    r"|mempool_obj_iter|mempool_set_ops_byname|node_edge_\w+|node_from_name|pktmbuf_pool_init"
    r"|rcu_qsbr_get_memsize|rib6?_\w+|ring_lookup|tel_data_\w+|zmalloc_socket)"
)
# A name, and the release that brought it where 22.11 has it not.
C_NAME = re.compile(r"`(rte_\w+)`(?: \((\d\d\.\d\d)\))?")


def rows() -> list[list[str]]:
    """Return the cells of all tables, without their headings."""
    lines = [line for line in TEXT.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def c_names() -> list[tuple[str, str]]:
    return [name for cells in rows() for name in C_NAME.findall(cells[0])]


def rust_items() -> list[str]:
    covered, missing = rows_by_kind()
    cells = [row[1] for row in covered + missing]
    return [item for cell in cells for item in re.findall(r"`(\w+(?:::\w+)*)`", cell)]


def rows_by_kind() -> tuple[list[list[str]], list[list[str]]]:
    by_width = [[row for row in rows() if len(row) == width] for width in (3, 2)]
    assert sum(map(len, by_width)) == len(rows()), "a row of another width"
    return by_width[0], by_width[1]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@cache
def headers() -> str:
    """Return DPDK's headers without comments, because comments name things that do not exist."""
    flags = run("pkg-config", "--cflags-only-I", "libdpdk").split()
    paths = [Path(flag.removeprefix("-I")) for flag in flags] or [Path("/usr/include")]
    files = [file for path in paths for file in path.rglob("rte_*.h")]
    assert len(files) > 100, "DPDK's headers were not found"
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


@cache
def functions() -> set[str]:
    """Return all functions, inline or not, and macros with parameters."""
    return set(re.findall(r"\b(rte_\w+)\s*\(", headers()))


@cache
def public() -> set[str]:
    """Return the public items by their paths, without parameters."""
    found = set()
    for crate in CRATES:
        text = (ROOT / f"tests/public-api/api/linerate-{crate}.txt").read_text(encoding="utf-8")
        while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
            text = shorter
        found |= set(re.findall(rf"\b{crate}(?:::\w+)+", text))
    return found


def number(since: str) -> tuple[int, ...]:
    """Return a release as a number; if none is named, one less than any release."""
    return tuple(map(int, since.split("."))) if since else ()


def release() -> tuple[int, ...]:
    return tuple(map(int, run("pkg-config", "--modversion", "libdpdk").strip().split(".")[:2]))


def test_every_c_name_is_a_function_of_dpdk() -> None:
    names = c_names()
    assert len(names) > 150
    installed = release()
    due = {name for name, since in names if number(since) <= installed}
    assert not due - functions()


def test_what_is_marked_as_later_is_not_there_before() -> None:
    later = {name: number(since) for name, since in c_names() if since}
    assert later
    early = {name for name, since in later.items() if since > release()}
    if not early:
        pytest.skip("the installed DPDK has all that is marked")
    assert not early & functions()


def test_every_rust_item_is_public() -> None:
    items = rust_items()
    assert len(items) > 150
    known = public()
    paths = {
        item: item if item.split("::")[0] in ("graph", "packet") else f"dpdk::{item}"
        for item in items
    }
    assert not {item for item, path in paths.items() if path not in known}


def test_every_c_function_that_the_crates_call_has_a_row() -> None:
    files = [
        file for crate in ("dpdk", "graph") for file in (ROOT / f"crates/{crate}/src").rglob("*.rs")
    ]
    code = "\n".join(re.sub(r"//.*", "", file.read_text(encoding="utf-8")) for file in files)
    called = set(re.findall(r"\b(rte_\w+)\(", code))
    assert len(called) > 100
    rows_have = {name for name, _ in c_names()}
    assert not {name for name in called - rows_have if not UNDERNEATH.fullmatch(name)}


def test_no_c_function_has_two_rows() -> None:
    names = [name for name, _ in c_names()]
    assert not {name for name in names if names.count(name) > 1}


def test_both_columns_are_read() -> None:
    covered, missing = rows_by_kind()
    assert all(C_NAME.search(row[0]) and "`" in row[1] for row in covered)
    assert all(C_NAME.search(row[0]) for row in missing)
