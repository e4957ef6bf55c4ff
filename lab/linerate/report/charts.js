// SPDX-License-Identifier: BSD-3-Clause
// Draws each specification in #charts into the element of its name, and says there that it did.
//
// `ast`: expressions are interpreted. Compiled, as Vega has it otherwise, they would need the page to
// allow `eval`.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const options = { ast: true, actions: false, renderer: "svg", tooltip: { theme: "light" } };
  for (const [name, specification] of Object.entries(charts)) {
    const place = document.getElementById(name);
    vegaEmbed(place, specification, options)
      .then(() => { place.dataset.drawn = "yes"; })
      .catch((error) => { place.textContent = `This chart could not be drawn: ${error}`; });
  }
})();
