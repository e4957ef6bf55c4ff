# SPDX-License-Identifier: BSD-3-Clause
"""Every column that the model has for ports and flows is answered, alone and with all others."""

from __future__ import annotations

from typing import Any

import pytest
import snappi
from harness import Generator, eventually, run
from snappi import snappi as model
from traffic import published

pytest_plugins = ["rig"]

# What is in every answer, whatever columns were named.
ALWAYS = {"name", "port_tx", "port_rx", "loss"}


@pytest.fixture(scope="module")
def done(running: Generator) -> Any:
    """The API of a generator that has sent and received frames."""
    config = published("ring:r")
    config.flows[0].duration.fixed_packets.packets = 100
    run(running.api, config)
    eventually(running.stopped)
    return running.api


def answers(api: Any, kind: str, columns: list[str]) -> dict[str, Any]:
    request = snappi.MetricsRequest()
    if kind == "port":
        request.port.column_names = columns
        (found,) = api.get_metrics(request).port_metrics
    else:
        request.flow.metric_names = columns
        (found,) = api.get_metrics(request).flow_metrics
    return dict(found.serialize(found.DICT))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("port", model.PortMetricsRequest._TYPES["column_names"]["enum"]),
        ("flow", model.FlowMetricsRequest._TYPES["metric_names"]["enum"]),
    ],
)
def test_every_column_is_answered(done: Any, kind: str, names: list[str]) -> None:
    # A ring has no speed.
    wanted = set(names) - {"speed"}
    assert wanted <= set(answers(done, kind, []))
    assert wanted <= set(answers(done, kind, names))
    for name in names:
        found = set(answers(done, kind, [name])) - ALWAYS
        assert found == {name} & wanted, name
