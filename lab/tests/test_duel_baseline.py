# SPDX-License-Identifier: BSD-3-Clause
"""Baselines: a program is kept, and must not have changed when it is used again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import by_schema
import pytest

from linerate.experiments.duel import baseline
from linerate.experiments.duel.programs import program_of
from linerate.forwarders import FORWARDERS, Forwarder
from linerate.forwarders.definition import Definition
from linerate.host.builds import elf
from linerate.host.errors import LabError, MissingError, OutputError, UsageError

GIVEN = "./fw {eal} -- -p {portmask}"


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    build(tmp_path / "fw", "one")
    return tmp_path


def build(path: Path, text: str) -> None:
    """Make a file with an ELF header and this content."""
    path.unlink(missing_ok=True)
    path.write_bytes(elf.MAGIC + text.encode())
    path.chmod(0o755)


def keep(file: str = "base.json", given: str = GIVEN) -> baseline.Baseline:
    return baseline.keep(Path(file), given, program_of(given, "A"))


def test_a_program_is_kept_and_comes_back(there: Path) -> None:
    kept = keep()
    by_schema.check(json.loads(Path("base.json").read_text()), "baseline-1.json")
    assert {each.name for each in there.iterdir()} == {"fw", "base.json", "base.json.program"}
    found, program = baseline.restore(Path("base.json"))
    assert found == kept
    assert (found.given, program.name) == (GIVEN, "A-fw")
    # At its original path, if it is unchanged: there it finds its other files.
    assert program.program() == there / "fw"
    assert program.definition == program_of(GIVEN, "A").definition


def test_a_build_in_place_does_not_lose_it(there: Path) -> None:
    keep()
    build(there / "fw", "two")
    _, program = baseline.restore(Path("base.json"))
    assert program.program() == there / "base.json.program"
    assert os.access(there / "base.json.program", os.X_OK)
    assert (there / "base.json.program").read_bytes().endswith(b"one")
    (there / "fw").unlink()
    assert baseline.restore(Path("base.json"))[1].program() == there / "base.json.program"
    # Both files together may be elsewhere.
    (there / "other").mkdir()
    for name in ("base.json", "base.json.program"):
        (there / name).rename(there / "other" / name)
    _, program = baseline.restore(Path("other/base.json"))
    assert program.program() == there / "other" / "base.json.program"


def test_what_is_no_longer_what_was_kept_is_refused(there: Path) -> None:
    keep()
    build(there / "fw", "two")
    build(there / "base.json.program", "three")
    with pytest.raises(UsageError, match=r"base.json.program is not the kept program \(sha256"):
        baseline.restore(Path("base.json"))
    (there / "base.json.program").unlink()
    with pytest.raises(MissingError, match=r"base.json.program is missing, and .*/fw has changed"):
        baseline.restore(Path("base.json"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"", "not a baseline"),
        (b"{}", "not a baseline"),
        (b"\xff\xfe", "not a baseline"),
        (b'{"schema": "linerate/duel-1"}', "not a baseline"),
    ],
)
def test_other_files_are_no_baselines(content: bytes | None, message: str) -> None:
    if content is not None:
        Path("base.json").write_bytes(content)
    with pytest.raises(UsageError, match=f"--baseline base.json: {message}"):
        baseline.restore(Path("base.json"))


def test_a_definition_that_is_none_is_named() -> None:
    keep()
    data = json.loads(Path("base.json").read_text())
    data["definition"]["command"] = "./fw {nosuch}"
    Path("base.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match=r"not a baseline \(.*unknown placeholder"):
        baseline.restore(Path("base.json"))


def test_a_file_that_is_no_baseline_is_not_overwritten(there: Path) -> None:
    """For example the program, if it was given instead of a baseline."""
    with pytest.raises(UsageError, match="--keep-baseline fw: not a baseline"):
        keep("fw")
    assert (there / "fw").read_bytes() == elf.MAGIC + b"one"
    keep()
    build(there / "fw", "two")
    # Another program has replaced one that was saved.
    assert keep().program.sha256 == baseline.restore(Path("base.json"))[0].program.sha256
    with pytest.raises(UsageError, match=r"cannot write to nosuch/base\.json"):
        keep("nosuch/base.json")


def test_what_starts_another_program_is_refused(there: Path) -> None:
    script = there / "fw.sh"
    script.write_text('#!/bin/sh\nexec ./fw "$@"\n')
    script.chmod(0o755)
    with pytest.raises(UsageError, match=r"fw.sh is a script, and what it starts would not"):
        keep(given="./fw.sh {eal}")
    with pytest.raises(UsageError, match=f"env starts {there}/fw, which would not be kept"):
        keep(given=f"env X=1 {there}/fw {{eal}}")
    with pytest.raises(UsageError, match="the kernel forwards, there is no program to keep"):
        baseline.keep(Path("base.json"), "kernel-bridge", FORWARDERS["kernel-bridge"])
    assert not (there / "base.json").exists()


def test_a_full_disk_leaves_nothing(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OutputError, match="No space left"):
        keep()
    assert [each.name for each in there.iterdir()] == ["fw"]


def test_libraries_of_its_own_must_not_change(there: Path) -> None:
    """With a rebuilt library the same executable would be another program."""

    def library(value: int) -> None:
        Path("own.c").write_text(f"int own(void) {{ return {value}; }}\n")
        subprocess.run(["cc", "-shared", "-fPIC", "own.c", "-o", "libown.so"], check=True)

    library(1)
    Path("main.c").write_text("int own(void);\nint main(void) { return own(); }\n")
    subprocess.run(
        ["cc", "main.c", "-L.", "-lown", f"-Wl,-rpath,{there}", "-o", "linked"], check=True
    )
    kept = keep(given="./linked {eal}")
    assert [each.path for each in kept.libraries] == [str(there / "libown.so")]
    assert baseline.notes(kept) == [
        f"{there}/libown.so is not kept: the baseline is refused when it changes"
    ]
    baseline.restore(Path("base.json"))
    library(2)
    with pytest.raises(
        UsageError, match=r"libown.so, a shared library that the program loads, has changed"
    ):
        baseline.restore(Path("base.json"))


def test_a_definition_with_a_recipe_is_kept_as_what_it_built(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = Definition.model_validate(
        {
            "name": "mine", "kind": "dpdk", "command": "{program} {eal} --",
            "build": {"recipe": "installed", "program": "fw", "package": "fw"},
        }
    )  # fmt: skip
    monkeypatch.setenv("PATH", str(there), prepend=os.pathsep)
    baseline.keep(Path("base.json"), "mine.toml", Forwarder(definition, there / "mine.toml"))
    monkeypatch.undo()
    found, program = baseline.restore(there / "base.json")
    assert program.program() == there / "fw"
    assert (program.file, found.file) == (there / "mine.toml", str(there / "mine.toml"))


def test_errors_are_of_the_lab() -> None:
    with pytest.raises(LabError):
        keep(given="./nosuch {eal}")
