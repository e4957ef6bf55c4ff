# SPDX-License-Identifier: BSD-3-Clause
"""docs/compare-open-vswitch.md: the files on the page, unchanged, make a duel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openvswitch import DAEMON, environment, unpacked
from test_guide import DOCS

from linerate.host.errors import LabError
from linerate.host.exit_status import ExitStatus
from linerate.host.netns import prepare
from linerate.host.process import NAMESPACES

FILE = re.compile(r"`(ovs[\w.-]*)`[^`]*:\n\n```(?:bash|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.second_tier
def test_two_switches_of_the_page_are_compared(tmp_path: Path) -> None:
    root = unpacked()
    try:
        prepare()
    except LabError as error:
        pytest.skip(str(error.message))
    text = (DOCS / "compare-open-vswitch.md").read_text(encoding="utf-8")
    files = dict(FILE.findall(text))
    assert sorted(files) == ["ovs", "ovs-no-emc.toml", "ovs.toml"]
    for name, content in files.items():
        assert name == "ovs" or "/usr/lib/" in content
        # The switch of the packages is unpacked, not installed.
        (tmp_path / name).write_text(content.replace(f"/{DAEMON}", str(root / DAEMON)))
    (tmp_path / "ovs").chmod(0o755)
    runtime = tmp_path / "run"
    runtime.mkdir()
    command = [sys.executable, "-m", "linerate", "duel", "./ovs.toml", "./ovs-no-emc.toml"]
    with subprocess.Popen(
        [*command, "--within", "1s", "--starts", "2", "--json"],
        env={**os.environ, **environment(root), "TMPDIR": str(runtime), "XDG_RUNTIME_DIR": ""},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    ) as lab:  # fmt: skip
        try:
            printed, complaints = lab.communicate(timeout=300)
        finally:
            lab.kill()
    assert lab.returncode == ExitStatus.UNDECIDED, complaints
    found = json.loads(printed)
    assert "fault" not in found, found["sentence"]
    (only,) = found["rounds"]
    assert sorted(only["order"]) == ["A", "A", "B", "B"]
    assert all(only["pps"])
    # What the lab made is gone.
    assert not list(runtime.iterdir())
    assert not list(NAMESPACES.glob(f"linerate-{lab.pid}-*"))
