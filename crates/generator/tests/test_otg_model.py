# SPDX-License-Identifier: BSD-3-Clause
"""Every property of the model is posted: the page about them is true, and refusals name them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from otg_model import PAGE, ROOTS, Walk, concerns, page, types, walked


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    with tempfile.TemporaryDirectory(prefix="otg") as directory:
        yield walked(Path(directory))


def test_the_page_says_what_the_generator_answers(walk: Walk) -> None:
    wanted = page(walk)
    assert PAGE.read_text(encoding="utf-8") == wanted, "docs/otg-model.md: run scripts/otg-model"


def test_refusals_and_warnings_name_the_property(walk: Walk) -> None:
    bad = [
        (row.path, answer.value, answer.path, answer.why)
        for rows in walk.rows.values()
        for row in rows
        for answer in row.answers
        if answer.verdict != "supported" and not concerns(answer.path, row.way)
    ]
    assert not bad


def test_no_property_of_a_request_is_forgotten(walk: Walk) -> None:
    for root in ROOTS:
        own = {row.path for row in walk.rows[root.kind]}
        assert own >= set(types(root.kind))
    assert all(row.answers for rows in walk.rows.values() for row in rows)


def test_refusals_have_a_reason(walk: Walk) -> None:
    refused = [
        (row.path, answer.why)
        for rows in walk.rows.values()
        for row in rows
        for answer in row.of("refused")
    ]
    assert len(refused) > 50
    assert not [path for path, why in refused if not why.strip()]
