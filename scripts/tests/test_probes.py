# SPDX-License-Identifier: BSD-3-Clause
"""The probes that decide which packages are missing."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("library", "counts"),
    [("libclang.so", True), ("libclang-14.so.14.0.6", True), ("libclang-cpp.so.14", False)],
)
def test_only_libclang_counts_as_libclang(tmp_path: Path, library: str, counts: bool) -> None:
    (tmp_path / library).touch()
    script = "source scripts/lib.sh && source scripts/needs.sh && probe_libclang"
    found = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={**os.environ, "LIBCLANG_PATH": str(tmp_path)},
        check=False,
    )
    assert (found.returncode == 0) == counts
