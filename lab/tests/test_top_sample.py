# SPDX-License-Identifier: BSD-3-Clause
"""What `linerate top` requests of a program, and how it interprets the answers."""

from __future__ import annotations

import pytest
from probed import latency_entry, plain_answers, polling_entry, probed_answers
from top_command import Start

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry
from linerate.telemetry.top.sample import Sampler


def test_a_list_too_long_for_an_answer_is_asked_port_by_port(telemetry_server: Start) -> None:
    answers = probed_answers()
    whole = [polling_entry(1, 0, 0, 1), polling_entry(2, 0, 1, 1), polling_entry(1, 1, 0, 1)]
    answers["/linerate/probe/polling"] = None
    for port in (0, 1):
        answers[f"/linerate/probe/polling,{port}"] = [e for e in whole if e["port"] == port]
    with Telemetry(telemetry_server(answers).path) as telemetry:
        found = Sampler(telemetry).take().polling
    assert found is not None
    assert [entry.packets for entry in found.values()] == [entry["packets"] for entry in whole]


def test_lists_that_were_cut_are_asked_queue_by_queue(telemetry_server: Start) -> None:
    answers = probed_answers(polled=[(1, 0, 0), (2, 0, 0), (1, 1, 3)])
    whole = [polling_entry(1, 0, 0, 1), polling_entry(2, 0, 0, 1), polling_entry(1, 1, 3, 1)]
    short = [{name: entry[name] for name in entry if name != "burst_histogram"} for entry in whole]
    measured = latency_entry(0, 0, 1)
    answers["/linerate/probe/polling"] = short
    answers["/linerate/probe/polling,0,0"] = whole[:2]
    answers["/linerate/probe/latency"] = [
        {name: measured[name] for name in measured if name != "hdr"}
    ]
    answers["/linerate/probe/latency,0,0"] = [measured]
    with Telemetry(telemetry_server(answers).path) as telemetry:
        sample = Sampler(telemetry).take()
    assert sample.polling is not None
    assert sample.latency is not None
    lengths = {key: len(entry.burst_histogram or ()) for key, entry in sample.polling.items()}
    # The third queue was gone when it was queried.
    assert lengths == {(1, 0, 0): 33, (2, 0, 0): 33, (1, 1, 3): 0}
    assert [entry.histogram.total for entry in sample.latency.values() if entry.histogram] == [100]


def test_an_answer_of_another_shape_is_an_error(telemetry_server: Start) -> None:
    answers = probed_answers()
    answers["/linerate/probe/polling"] = [{"lcore": "one"}]
    with (
        Telemetry(telemetry_server(answers).path) as telemetry,
        pytest.raises(TelemetryError, match="answered something else than expected"),
    ):
        Sampler(telemetry).take()


def test_a_command_that_answers_nothing_is_as_one_that_is_not_there(
    telemetry_server: Start,
) -> None:
    answers = probed_answers()
    for command in answers:
        if command.startswith(("/linerate", "/ethdev/info", "/ethdev/link")):
            answers[command] = None
    with Telemetry(telemetry_server(answers).path) as telemetry:
        sample = Sampler(telemetry).take()
    absent = (sample.polling, sample.latency, sample.clock, sample.probe)
    assert absent == (None,) * 4
    assert [(port.name, port.link) for port in sample.ports.values()] == 2 * [(None, None)]


def test_a_port_that_goes_is_left_out(telemetry_server: Start) -> None:
    answers = plain_answers()
    answers["/ethdev/stats,1"] = None
    with Telemetry(telemetry_server(answers).path) as telemetry:
        assert list(Sampler(telemetry).take().ports) == [0]
