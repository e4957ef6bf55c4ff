# SPDX-License-Identifier: BSD-3-Clause
"""The charts of a report's page, as Vega-Lite specifications."""

from __future__ import annotations

import json
from typing import Any

import altair as alt


def specifications(html: str) -> dict[str, dict[str, Any]]:
    """Return the specifications by the names of their places in the page."""
    begin = html.index('id="charts">') + len('id="charts">')
    return dict(json.loads(html[begin : html.index("</script>", begin)]))


def valid_charts(html: str) -> int:
    """Return their number; check that each follows Vega-Lite's schema and has a description and
    data.
    """
    found = specifications(html)
    for spec in found.values():
        alt.LayerChart.validate(spec)
        assert all(layer["data"]["values"] for layer in spec["layer"])
    assert len({spec["description"] for spec in found.values()}) == len(found)
    return len(found)
