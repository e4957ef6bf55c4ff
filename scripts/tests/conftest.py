# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the set-up's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from stub_machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
