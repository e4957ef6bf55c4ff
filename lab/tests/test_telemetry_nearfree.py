# SPDX-License-Identifier: BSD-3-Clause
"""Messages about the driver net_nearfree, for the program that contains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import TelemetryServer

from linerate.host.errors import TelemetryError
from linerate.links import flows
from linerate.telemetry import nearfree
from linerate.telemetry.client import Telemetry

PORT = "net_nearfree0"
CHECK = f"/net_nearfree/check,{PORT}"
FLOW = f"/net_nearfree/flow,{PORT},1"
FLOWS = 300

Serve = Callable[[dict[str, Any]], TelemetryServer]


def check_answer(**changed: Any) -> dict[str, Any]:
    kinds = [name for name in nearfree.Check.model_fields if not name.startswith("first_")]
    figures: dict[str, Any] = dict.fromkeys(nearfree.Check.model_fields, 0)
    figures |= dict.fromkeys(kinds, 700) | {"frames": 400, "flows": FLOWS, "seen": 400}
    # The driver reports more than is used.
    return {**figures, "ttl_kept": 5, "first_ttl_less": 4, **changed}


def honest() -> dict[str, Any]:
    """Correct answers of the driver for one port."""
    sent = list(range(FLOWS))
    return {
        CHECK: check_answer(),
        f"/net_nearfree/flows,{PORT},0": sent[:256],
        f"/net_nearfree/flows,{PORT},256": sent[256:],
        f"/net_nearfree/ports,{PORT},0": [2] * 256,
        f"/net_nearfree/ports,{PORT},256": [3] * (FLOWS - 256),
        FLOW: flows.frame(next(flows.flows())).hex(),
    }


@pytest.fixture
def asked(
    telemetry_server: Serve,
) -> Iterator[Callable[[dict[str, Any]], Telemetry]]:
    opened: list[Telemetry] = []

    def connect(changed: dict[str, Any]) -> Telemetry:
        opened.append(Telemetry(telemetry_server(honest() | changed).path))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def test_what_the_driver_says_is_taken(asked: Callable[[dict[str, Any]], Telemetry]) -> None:
    telemetry = asked({})
    found = nearfree.check(telemetry, PORT)
    assert found.whole
    assert (found.count("sent"), found.example("ttl_less"), found.example("sent")) == (700, 4, None)
    assert nearfree.sent_by_flow(telemetry, PORT, FLOWS) == list(range(FLOWS))
    assert nearfree.ports_by_flow(telemetry, PORT, FLOWS) == [2] * 256 + [3] * 44
    assert nearfree.first_frame(telemetry, PORT, 1) == flows.frame(next(flows.flows()))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([1, 2], "valid dictionary"),
        ({"frames": 1}, "flows: Field required"),
        (check_answer(sent=-1), "sent: .* greater than or equal to 0"),
        (check_answer(sent=2**64), "sent: .* less than"),
        (check_answer(sent=True), "sent: .* valid integer"),
        (check_answer(received="12"), "received: .* valid integer"),
        (check_answer(flows=2**40), "flows: .* less than or equal to 16777216"),
        (check_answer(seen=401), "more frames seen"),
        (check_answer(flows=401), "more flows"),
        (check_answer(first_longer=1e3), "first_longer: .* valid integer"),
    ],
)
def test_figures_that_are_none_are_refused(
    asked: Callable[[dict[str, Any]], Telemetry], answer: object, why: str
) -> None:
    with pytest.raises(TelemetryError, match=f"{CHECK}: .*{why}|{CHECK}: {why}"):
        nearfree.check(asked({CHECK: answer}), PORT)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"0": 1}, "valid list"),
        ([1] * 257, "at most 256 items"),
        ([1] * 255, "255 flows of 300"),
        ([], "0 flows of 300"),
        ([-1] * 256, "greater than or equal to 0"),
        (["x"] * 256, "valid integer"),
    ],
)
def test_lists_of_flows_are_as_long_as_they_are_said_to_be(
    asked: Callable[[dict[str, Any]], Telemetry], answer: object, why: str
) -> None:
    command = f"/net_nearfree/flows,{PORT},0"
    with pytest.raises(TelemetryError, match=f"{command}: .*{why}"):
        nearfree.sent_by_flow(asked({command: answer}), PORT, FLOWS)


@pytest.mark.parametrize("answer", [5, "", "zz" * 20, "00" * 13, "00" * 129, "0" * 41, "00\n" * 9])
def test_frames_are_bytes_in_bounds(
    asked: Callable[[dict[str, Any]], Telemetry], answer: object
) -> None:
    with pytest.raises(TelemetryError, match=FLOW):
        nearfree.first_frame(asked({FLOW: answer}), PORT, 1)


def test_flows_are_not_asked_for_without_end(
    asked: Callable[[dict[str, Any]], Telemetry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearfree, "_FLOWS_S", 0.0)
    with pytest.raises(TelemetryError, match="not done after 0 s"):
        nearfree.sent_by_flow(asked({}), PORT, FLOWS)
