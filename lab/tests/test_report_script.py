# SPDX-License-Identifier: BSD-3-Clause
"""The script of charts, which is cached in a file between reports."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import vl_convert

from linerate.host.places import project_root
from linerate.report import vega

SCRIPT = "a script"
PLANTED = "alert('planted')"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scripts that were downloaded; each is `SCRIPT`, and the pinned one."""
    found: list[str] = []

    def make() -> str:
        found.append(SCRIPT)
        return SCRIPT

    monkeypatch.setattr(vega, "build_directory", lambda: tmp_path / "build")
    monkeypatch.setattr("vl_convert.javascript_bundle", make)
    digest = hashlib.sha256(SCRIPT.encode()).hexdigest()
    monkeypatch.setattr(vega, "DIGESTS", {version("vl-convert-python"): digest})
    return found


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return the path of the cache."""
    (tmp_path / "build").mkdir()
    return tmp_path / "build" / f"vega-{version('vl-convert-python')}.js"


def test_it_is_made_once(kept: Path, made: list[str]) -> None:
    kept.parent.rmdir()
    assert vega.script() == vega.script() == SCRIPT
    assert len(made) == 1
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]
    assert kept.stat().st_mode & 0o777 == 0o644


def test_it_is_made_each_time_where_nothing_can_be_kept(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(vega, "build_directory", lambda: tmp_path / "file")
    assert vega.script() == vega.script() == SCRIPT
    assert len(made) == 2


@pytest.mark.parametrize(
    "plant",
    [
        lambda path: path.write_text(PLANTED),
        lambda path: path.write_text(SCRIPT + PLANTED),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.symlink_to(path.parent.parent / "other"),
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
    ],
)
def test_what_somebody_else_put_there_is_replaced(
    tmp_path: Path, kept: Path, made: list[str], plant: Callable[[Path], object]
) -> None:
    (tmp_path / "other").write_text(PLANTED)
    plant(kept)
    assert vega.script() == SCRIPT
    assert made == [SCRIPT]
    # The target of the link is unchanged.
    assert (tmp_path / "other").read_text() == PLANTED
    assert not kept.is_symlink()
    assert kept.read_text() == SCRIPT
    assert vega.script() == SCRIPT
    assert made == [SCRIPT]


def test_a_directory_in_its_place_stays(kept: Path, made: list[str]) -> None:
    kept.mkdir()
    assert vega.script() == SCRIPT
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


def test_scripts_of_versions_that_are_not_pinned_are_not_kept(
    kept: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vega, "DIGESTS", {"0.1": hashlib.sha256(SCRIPT.encode()).hexdigest()})
    kept.write_text(PLANTED)
    assert vega.script() == vega.script() == SCRIPT
    assert len(made) == 2
    assert kept.read_text() == PLANTED


def test_the_version_of_the_requirements_is_pinned() -> None:
    pins = (project_root() / "requirements.txt").read_text()
    wanted = re.search(r"^vl-convert-python==(\S+)", pins, re.MULTILINE)
    assert wanted
    assert wanted[1] in vega.DIGESTS
    if version("vl-convert-python") == wanted[1]:
        script = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
        assert hashlib.sha256(script.encode()).hexdigest() == vega.DIGESTS[wanted[1]]
