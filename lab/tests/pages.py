# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the pages of all experiments, as a browser shows them."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import NARROW, ROOT, WIDE, Page

from linerate.records.summary import Comparison

DRAWN = "[...document.querySelectorAll('.chart')].every((chart) => chart.dataset.drawn)"
# A4 less the margins of the print style, in pixels of CSS.
SHEET = 690
ABSENT = ("", "-")


def said(comparison: Comparison) -> str:
    """Return what a page says about a comparison: its sentence, or the reason if it was not
    decided.
    """
    if comparison.verdict in ("undecided", "invalid"):
        return f"{comparison.reason[0].upper()}{comparison.reason[1:]}: "
    return comparison.sentence


def assert_loads_nothing(page: Page, file: Path) -> None:
    assert page.requests() == [file.as_uri()]
    assert page.complaints() == []


def assert_readable(page: Page) -> None:
    """Check that it fits screens and everyone can read it."""
    assert_fits(page)
    assert_is_accessible(page)
    assert_can_be_read(page)


# -- charts --------------------------------------------------------------------------------------

CHARTS = """
[...document.querySelectorAll(".chart")].map((chart) => {
  const drawing = chart.querySelector("svg");
  const box = drawing?.getBoundingClientRect();
  return {
    name: chart.id,
    drawn: chart.dataset.drawn === "yes",
    text: chart.textContent.slice(0, 200),
    size: drawing ? [box.width, box.height] : null,
    marks: chart.querySelectorAll(
      ".role-mark > path, .role-mark > line, .role-mark > text, .role-mark > image").length,
    description: chart.ariaLabel,
  };
})
"""


def marks_of(specification: dict[str, Any]) -> int:
    """Return how many marks the rows of a specification make; a line counts once."""
    return sum(
        1 if layer["mark"]["type"] in ("line", "area", "trail") else len(layer["data"]["values"])
        for layer in specification["layer"]
    )


def assert_draws_every_chart(page: Page) -> int:
    """Check that every specification has its place, and a mark for every row in it. Returns their
    number.
    """
    page.until(DRAWN)
    found = page.evaluate("document.getElementById('charts')?.textContent ?? '{}'")
    specifications = json.loads(found)
    charts = {chart["name"]: chart for chart in page.evaluate(CHARTS)}
    assert charts.keys() == specifications.keys()
    for name, chart in charts.items():
        assert chart["drawn"], f"{name}: {chart['text']}"
        assert chart["size"], f"{name} has no svg"
        assert min(chart["size"]) > 30, name
        assert chart["marks"] >= marks_of(specifications[name]) > 0, name
        assert len(chart["description"] or "") > 20, f"{name} has no description"
    return len(charts)


# -- tables --------------------------------------------------------------------------------------

# Each heading is clicked three times; the order of the rows is returned after each click.
SORTS = """
[...document.querySelectorAll("table")].flatMap((table) => {
  const bodies = [...table.tBodies];
  const rows = bodies.flatMap((body) => [...body.rows]);
  const places = () => bodies.flatMap((body) => [...body.rows]).map((row) => rows.indexOf(row));
  return [...table.tHead.querySelectorAll("th")].map((heading, column) => {
    const button = heading.querySelector("button");
    const clicked = () => {
      button.click();
      return { places: places(), aria: heading.getAttribute("aria-sort"),
               sorted: table.querySelectorAll("[aria-sort]").length };
    };
    return {
      name: `${table.caption?.textContent}: ${heading.textContent}`,
      bodies: bodies.length,
      texts: rows.map((row) => row.cells[column])
        .map((cell) => cell.dataset.sort ?? cell.textContent.trim()),
      clicks: button ? [clicked(), clicked(), clicked()] : [],
    };
  });
})
"""


def _number(text: str) -> float | None:
    found = re.match(r"[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE)
    return float(found[0].replace(",", "")) if found else None


def _words(text: str) -> list[Any]:
    """Split text with its numbers as numbers, so that 64 B comes before 1518 B."""
    return [int(each) if each.isdigit() else each for each in re.split(r"(\d+)", text.casefold())]


def _ordered(texts: list[str], *, descending: bool) -> list[int]:
    """Return the order of the rows: by number or by text, equal ones as written, absent
    ones last.
    """
    present = [place for place, text in enumerate(texts) if text not in ABSENT]
    numbers = [_number(texts[place]) for place in present]
    keys: dict[int, Any] = dict(zip(present, numbers, strict=True))
    if None in numbers:
        keys = {place: _words(texts[place]) for place in present}
    ordered = sorted(present, key=keys.__getitem__, reverse=descending)
    return ordered + [place for place, text in enumerate(texts) if text in ABSENT]


def assert_sorts_by_every_heading(page: Page) -> list[str]:
    """Check sorting up, down, and back. Returns the names of the headings that sort."""
    headings = page.evaluate(SORTS)
    names = []
    for each in headings:
        texts, clicks = each["texts"], each["clicks"]
        if len(texts) < 2:
            assert not clicks, each["name"]
            continue
        assert each["bodies"] == 1, each["name"]
        assert [click["aria"] for click in clicks] == ["ascending", "descending", None], each[
            "name"
        ]
        assert [click["sorted"] for click in clicks] == [1, 1, 0], each["name"]
        assert [click["places"] for click in clicks] == [
            _ordered(texts, descending=False),
            _ordered(texts, descending=True),
            list(range(len(texts))),
        ], each["name"]
        names.append(each["name"])
    return names


# -- shape ---------------------------------------------------------------------------------------


def assert_fits(page: Page) -> None:
    """Check that the page itself never scrolls sideways."""
    for width in (WIDE, NARROW):
        page.resize(width)
        page.until(DRAWN)
        assert page.overflow() == 0, f"scrolls sideways at {width} pixels"
    page.resize(WIDE)


STRUCTURE = """
({
  lang: document.documentElement.lang,
  title: document.title,
  levels: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(
    (heading) => Number(heading.tagName[1])),
  bare: [...document.querySelectorAll("table")].filter(
    (table) => !table.caption?.textContent).length,
  scopeless: document.querySelectorAll("th:not([scope])").length,
  nameless: document.querySelectorAll("svg[role=img]:not([aria-label])").length,
  doubled: [...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, n, all) =>
    all.indexOf(id) !== n),
})
"""


def assert_is_accessible(page: Page) -> None:
    found = page.evaluate(STRUCTURE)
    assert found["lang"] == "en"
    assert found["title"]
    levels = found["levels"]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), levels
    assert (found["bare"], found["scopeless"], found["nameless"]) == (0, 0, 0)
    assert found["doubled"] == []


# Of every element with text of its own: the contrast by WCAG 2.2 of its colour with what is behind.
CONTRASTS = """
(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => channels(colour).slice(0, 3)
    .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  function behind(element) {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((channels(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  }
  return [...document.body.querySelectorAll("*:not(script)")]
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .map((e) => {
      const style = getComputedStyle(e);
      const colour = e.closest("svg") ? style.fill : style.color;
      const [low, high] = [luminance(colour), luminance(behind(e))].sort((a, b) => a - b);
      return [(high + 0.05) / (low + 0.05), `${e.textContent.trim().slice(0, 40)}: ${colour}`];
    });
})()
"""


def assert_can_be_read(page: Page) -> None:
    """Check the contrast of all text, light and dark: WCAG 2.2 (1.4.3) asks for 4.5 for
    small text.
    """
    backgrounds = set()
    for scheme in ("light", "dark"):
        page.media(scheme=scheme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 20
        assert [what for contrast, what in contrasts if contrast < 4.5] == [], scheme
    assert len(backgrounds) == 2
    page.media()


# -- paper ---------------------------------------------------------------------------------------

CUT = """
[...document.querySelectorAll("body *")].filter((element) =>
  !element.closest("caption, script") && element.getBoundingClientRect().right > innerWidth + 1)
  .map((element) => `${element.tagName}: ${element.textContent.slice(0, 60)}`)
"""
CLOSED = "document.querySelectorAll('details:not([open])').length"
LONG_TABLE = """
(() => { const body = [...document.querySelectorAll("table")].at(-1).tBodies[0];
for (let n = 0; n < 80; n++) body.append(body.rows[0].cloneNode(true)); })()
"""


def assert_fits_on_paper(page: Page) -> None:
    """Check that with everything open nothing is wider than a sheet, and that afterwards all is as
    before.
    """
    closed = page.evaluate(CLOSED)
    page.media("print", scheme="dark")
    page.resize(SHEET)
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    page.evaluate("void dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(CLOSED) == 0
    page.until(f"{CUT}.length === 0")  # charts are drawn anew
    assert page.evaluate(CUT) == []
    assert page.overflow() == 0
    assert page.evaluate(f"getComputedStyle({ROOT}).colorScheme") == "light"
    page.evaluate("void dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(CLOSED) == closed
    page.call("Emulation.setScrollbarsHidden", hidden=False)
    page.media()
    page.resize(WIDE)


def assert_prints(page: Page, directory: Path, column: str) -> None:
    """Check that the sheets have all words between their edges; `column` of the last table heads
    each.
    """
    program = shutil.which("pdftotext")
    page.evaluate(LONG_TABLE)
    printed = directory / "report.pdf"
    printed.write_bytes(page.pdf())
    assert printed.read_bytes().startswith(b"%PDF-")
    if program is None:
        pytest.skip("no pdftotext: what is on the sheets is not looked at")
    found = subprocess.run(
        [program, "-bbox", str(printed), "-"], capture_output=True, text=True, check=True
    ).stdout
    sheets = re.findall(r'<page width="([\d.]+)".*?</page>', found, flags=re.DOTALL)
    assert sheets
    right = max(float(edge) for edge in re.findall(r'xMax="([\d.]+)"', found))
    assert right < float(sheets[0])
    assert found.count(f">{column}</word>") >= 2
