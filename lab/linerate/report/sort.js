// SPDX-License-Identifier: BSD-3-Clause
// Tables sort by a click on a heading: upwards, downwards, and back to how they were written.
//
// A cell sorts by its data-sort, or by the number that its text begins with; a column in which any
// cell has neither sorts as text. Cells without a figure come last both ways, equal ones keep their
// order. Left alone: tables of one row, and those whose cells span rows or columns.
"use strict";
(() => {
  const ABSENT = new Set(["", "-"]);
  const NUMBER = /^[+\u2212-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?/i;
  const words = new Intl.Collator("en", { numeric: true });

  const textOf = (cell) => (cell.dataset.sort ?? cell.textContent).trim();

  function numberOf(text) {
    const found = NUMBER.exec(text);
    return found ? Number(found[0].replaceAll(",", "").replace("\u2212", "-")) : NaN;
  }

  function sorted(rows, column, direction) {
    const entries = rows.map((row) => ({ row, text: textOf(row.cells[column]) }));
    const present = entries.filter((entry) => !ABSENT.has(entry.text));
    const absent = entries.filter((entry) => ABSENT.has(entry.text));
    for (const entry of present) entry.number = numberOf(entry.text);
    const numeric = present.every((entry) => !Number.isNaN(entry.number));
    const compare = numeric
      ? (a, b) => a.number - b.number
      : (a, b) => words.compare(a.text, b.text);
    present.sort((a, b) => direction * compare(a, b));
    return [...present, ...absent].map((entry) => entry.row);
  }

  function makeSortable(table) {
    const headings = table.tHead?.rows.length === 1 ? [...table.tHead.rows[0].cells] : [];
    const bodies = [...table.tBodies].map((body) => ({ body, written: [...body.rows] }));
    const rows = bodies.flatMap(({ written }) => written);
    const plain = (row) =>
      row.cells.length === headings.length &&
      [...row.cells].every((cell) => cell.colSpan === 1 && cell.rowSpan === 1);
    if (rows.length < 2 || !rows.every(plain)) return;

    const next = { none: "ascending", ascending: "descending", descending: "none" };
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const order = next[heading.getAttribute("aria-sort") ?? "none"];
        for (const other of headings) other.removeAttribute("aria-sort");
        if (order !== "none") heading.setAttribute("aria-sort", order);
        for (const { body, written } of bodies) {
          const direction = order === "descending" ? -1 : 1;
          body.append(...(order === "none" ? written : sorted(written, column, direction)));
        }
      });
    });
  }

  document.querySelectorAll("table").forEach(makeSortable);
})();
