# SPDX-License-Identifier: BSD-3-Clause
"""Run-time directories in which another user could put files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import BIN, CPUS, MEMORY, TIMEOUT_S

pytest_plugins = ["rig"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's")

OTHER = 65534


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("l2fwd", ["--vdev", "net_null0", "--", "-p", "1"]),
        ("generator", ["--", "--self-test"]),
        ("generator", []),
    ],
)
def test_no_file_is_opened_in_a_directory_of_another_user(
    directory: Path, program: str, options: list[str]
) -> None:
    """EAL would follow a link there and write to what it leads to."""
    shared = directory / "dpdk"
    (shared / "prefix").mkdir(parents=True)
    precious = directory / "precious"
    precious.write_text("precious")
    for name in ("config", "fbarray_memzone", "dpdk_telemetry.v2", "otg-token"):
        (shared / "prefix" / name).symlink_to(precious)
    for path in (shared, *shared.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    eal = ["--lcores", f"0@{CPUS[-1]}", *(each for each in MEMORY if each != "--no-shconf")]
    command = [str(BIN / program), *eal, "--file-prefix", "prefix", *options]
    if not options:
        command = [str(BIN / program), "--self-test"]
    done = subprocess.run(
        command,
        env=os.environ | {"RUNTIME_DIRECTORY": str(directory)},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    wanted = f"{shared}: it belongs to user {OTHER}, who can have this program write to other files"
    assert wanted in done.stderr
    assert precious.read_text() == "precious"
