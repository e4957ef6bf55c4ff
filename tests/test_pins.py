# SPDX-License-Identifier: BSD-3-Clause
"""Every Python package is pinned, with digests of its files and without an address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"[A-Za-z0-9._-]+==[^ ;]+( ; [^\\]+)?")
DIGEST = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def unpinned(text: str) -> list[str]:
    """Return requirements without a version or a digest, and lines that are something else."""
    joined = text.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith(("#", "-r "))]
    return [line.split()[0] for line in lines if not _pinned(line)]


def _pinned(line: str) -> bool:
    name, *digests = re.split(r"\s+(?=--hash)", line.strip())
    return bool(PIN.fullmatch(name) and digests and all(map(DIGEST.fullmatch, digests)))


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_package_is_pinned_with_digests(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "==" in text
    assert unpinned(text) == []


@pytest.mark.parametrize(
    "line",
    ["numpy", "numpy==2.4.6", "numpy>=2 --hash=sha256:" + "0" * 64,
     "numpy==2.4.6 --hash=md5:" + "0" * 32, "-e .", "six @ file:///six --hash=sha256:" + "0" * 64],
)  # fmt: skip
def test_what_is_not_pinned_is_found(line: str) -> None:
    assert unpinned(line) == [line.split(maxsplit=1)[0]]
