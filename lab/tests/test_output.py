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
from linerate.records.output_paths import reached, resolved
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


# -- links that others have made ---------------------------------------------------------------


def test_a_link_of_another_user_s_is_not_followed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    link.symlink_to(precious)
    # A link of one's own is followed: /dev/stdout belongs to root.
    OutputFile(link, "--junit").write("own")
    assert precious.read_text() == "own"
    os.lchown(link, 65534, 65534)
    with pytest.raises(UsageError, match=r"--junit .*link: a link of user 65534's is not"):
        OutputFile(link, "--junit")
    assert precious.read_text() == "own"


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Return a path that leads through another user's link to the directory `precious`."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    (tmp_path / "precious").mkdir()
    link = tmp_path / "link"
    link.symlink_to("precious")
    os.lchown(link, 65534, 65534)
    return link


LINK = "link: a link of user 65534's is not followed"


def test_a_link_of_another_user_s_in_the_middle_is_not_followed(
    tmp_path: Path, strange: Path
) -> None:
    """Root's file was written wherever the link pointed."""
    (tmp_path / "own").symlink_to(strange)
    for way in (strange, tmp_path / "own", tmp_path / "precious" / ".." / "link"):
        for name in ("x", "deeper/x"):
            with pytest.raises(UsageError, match=LINK):
                OutputFile(way / name, "--junit")
        with pytest.raises(OutputError, match=LINK):
            write_atomically(way / "x", "content")
        with pytest.raises(OutputError, match=LINK):
            RecordWriter(way / "records.jsonl")
        for out in (way, way / "run"):
            with pytest.raises(UsageError, match=LINK):
                OutputDirectory(out)
        with pytest.raises(UsageError, match=LINK):
            OutputDirectory.existing(way)
    assert list((tmp_path / "precious").iterdir()) == []


def test_a_link_that_is_put_there_later_is_not_followed(tmp_path: Path, strange: Path) -> None:
    """Between the start of a command and its end."""
    place = tmp_path / "place"
    place.mkdir()
    file = OutputFile(place / "x", "--junit")
    place.rmdir()
    strange.rename(place)
    with pytest.raises(OutputError, match="place: a link of user 65534's"):
        file.write("content")
    with pytest.raises(OSError, match="place: a link"):
        file.remove()
    assert list((tmp_path / "precious").iterdir()) == []


def test_ways_are_walked_as_the_kernel_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Own links, dots, slashes, relative and absolute paths."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "down").symlink_to("a/b")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "end").symlink_to("../new")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for text in (
        "x", "./x", "a/../x", "down/x", "down/../x", "a/up/down//x", "a/end", "a/up/a/end",
        str(tmp_path / "a/up/x"), "/x", "a", ".", "down", "..", "file", "/dev/null",
    ):  # fmt: skip
        assert resolved(Path(text)) == Path(text).resolve(), text
    for text, kind in (
        ("no/x", FileNotFoundError),
        ("file/x", NotADirectoryError),
        ("loop", OSError),
        ("loop/x", OSError),
    ):
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(kind):
            resolved(Path(text))
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    with reached(Path("a/up/down/x")) as there:
        there.write_text("found")
    assert (tmp_path / "a" / "b" / "x").read_text() == "found"


def test_directories_of_other_users_can_be_written_to(tmp_path: Path, strange: Path) -> None:
    """In a container root works in a checkout that belongs to another user."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    OutputFile(theirs / "x", "--junit").write("content")
    assert (theirs / "x").read_text() == "content"


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


def test_a_directory_with_the_name_of_an_unfinished_file_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".summary.json.1").mkdir()
    (tmp_path / ".summary.json.2").touch()
    with OutputDirectory.existing(tmp_path) as output:
        output.write("summary.json", "{}")
    assert {each.name for each in tmp_path.iterdir()} == {".summary.json.1", "summary.json"}
