# SPDX-License-Identifier: BSD-3-Clause
"""The guide: pages are listed, links have targets, and its Rust compiles."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))}
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rust(text: str) -> list[str]:
    """What is Rust, `no_run` alone included, which rustdoc takes for it."""
    return [code for kind, code in FENCE.findall(text) if kind.split(",")[0] in ("rust", "no_run")]


def anchor(heading: str) -> str:
    """Return the anchor that forges make from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_rust_is_compiled_by_a_crate() -> None:
    sources = "\n".join(
        file.read_text(encoding="utf-8") for file in ROOT.glob("crates/*/src/lib.rs")
    )
    included = set(re.findall(r'doc = include_str!\("\.\./\.\./\.\./docs/([\w-]+\.md)"\)', sources))
    with_rust = {page.name for page, text in PAGES.items() if rust(text)}
    assert len(with_rust) >= 5
    assert not with_rust - included


def test_no_block_has_lines_that_only_rustdoc_hides() -> None:
    blocks = [(page.name, code) for page, text in PAGES.items() for code in rust(text)]
    assert blocks
    lines = {(name, line) for name, code in blocks for line in code.split("\n")}
    assert not {(name, line) for name, line in lines if line.startswith("# ")}


def test_links_lead_somewhere() -> None:
    links = [
        (page, link)
        for page, text in PAGES.items()
        for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))
        if not re.match(r"https?:", link)
    ]
    assert len(links) > 50
    dead = []
    for page, link in links:
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            dead.append((page.name, link))
        elif fragment:
            text = FENCE.sub("", target.read_text(encoding="utf-8"))
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            if fragment not in map(anchor, headings):
                dead.append((page.name, link))
    assert not dead


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", PAGES[DOCS / "README.md"]))
    assert not {page.name for page in PAGES} - listed - {"README.md"}
