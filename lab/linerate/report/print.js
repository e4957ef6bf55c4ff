// SPDX-License-Identifier: BSD-3-Clause
// On paper everything is open, and charts are drawn as wide as the sheet, not as the window.
"use strict";
(() => {
  let opened = [];

  function redraw(printing) {
    document.documentElement.classList.toggle("printing", printing);
    dispatchEvent(new Event("resize")); // what Vega's charts listen to
  }

  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
    redraw(true);
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    redraw(false);
  });
})();
