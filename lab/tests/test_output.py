# SPDX-License-Identifier: BSD-3-Clause
"""The output directory."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from linerate.host.errors import LabError, OutputError, UsageError
from linerate.host.exit_status import ExitStatus
from linerate.records.output import OutputDirectory, OutputFile, write_atomically
from linerate.records.trial import RecordWriter


@pytest.mark.parametrize("name", ["records.jsonl", "summary.json", "report.html"])
def test_a_directory_with_a_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match="already has a run"):
        OutputDirectory(tmp_path)


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        OutputDirectory(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (errno.EROFS, ExitStatus.USAGE),
        (errno.EACCES, ExitStatus.USAGE),
        (errno.ENOSPC, ExitStatus.CANNOT_RUN),
        (errno.EIO, ExitStatus.CANNOT_RUN),
    ],
)
def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: ExitStatus
) -> None:
    def fail(**_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    with pytest.raises(LabError, match=r"cannot write to .*: no") as refused:
        OutputDirectory(tmp_path / "run")
    assert refused.value.exit_code == status
    assert not (tmp_path / "run").exists()
    with pytest.raises(LabError, match=r"cannot write to .*: no") as refused:
        OutputDirectory.existing(tmp_path)
    assert refused.value.exit_code == status
    assert "copy it to where" in str(refused.value)


def test_a_nearly_full_disk_is_refused_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    with pytest.raises(OutputError, match="1 MiB free"):
        OutputDirectory(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_write_is_whole_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = OutputDirectory(tmp_path / "run")
    output.write("summary.json", "old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match="No space left"):
        output.write("summary.json", "new")
    assert (tmp_path / "run" / "summary.json").read_text() == "old"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["summary.json"]


# -- links that others have put there ----------------------------------------------------------


def test_a_link_of_another_user_s_is_not_followed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    link.symlink_to(precious)
    # One's own is: /dev/stdout is root's.
    OutputFile(link, "--junit").write("own")
    assert precious.read_text() == "own"
    os.lchown(link, 65534, 65534)
    with pytest.raises(UsageError, match=r"--junit .*/link: a link of user 65534's is not") as no:
        OutputFile(link, "--junit")
    assert "remove it" in str(no.value)
    assert precious.read_text() == "own"


@pytest.mark.parametrize("name", ["records.jsonl", "run.json"])
def test_a_link_in_a_directory_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="already has a run"):
        OutputDirectory(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(LabError):
        RecordWriter(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_in_the_way_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / f".summary.json.{os.getpid()}").symlink_to(precious)
    write_atomically(tmp_path / "summary.json", "{}")
    assert precious.read_text() == "precious"
    assert (tmp_path / "summary.json").read_text() == "{}"
    assert len(list(tmp_path.iterdir())) == 2
