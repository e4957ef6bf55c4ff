# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: a directory for sockets, a generator for one test or for a module's tests, a veth."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import netns
import pytest
from harness import Generator, generator


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="otg") as path:
        yield Path(path)


@pytest.fixture
def ring(directory: Path) -> Iterator[Generator]:
    with generator(directory) as running:
        yield running


@pytest.fixture(scope="module")
def running() -> Iterator[Generator]:
    """One after the other, tests configure it anew."""
    with tempfile.TemporaryDirectory(prefix="otg") as path, generator(Path(path)) as started:
        yield started


@pytest.fixture
def veth() -> Iterator[None]:
    """See `netns.veth`."""
    with netns.veth():
        yield
