# SPDX-License-Identifier: BSD-3-Clause
"""Files that may be from other users: not regular, too large, or owned by another user."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import simulated
from mutations import STEERS, bounded, nested
from rich.live import Live
from rich.table import Table
from rich.text import Text
from simulated import Simulation

from linerate.cli import duels_report
from linerate.cli.attach import check_probe
from linerate.cli.console import SafeConsole
from linerate.experiments.cloud.design import design_file
from linerate.experiments.cloud.design.command_line import options_of
from linerate.experiments.duel import baseline, kept
from linerate.forwarders import files
from linerate.host import exit_status, foreign
from linerate.host.builds import elf
from linerate.host.errors import DesignError, LabError, OutputError, RunError, UsageError
from linerate.host.text import printable
from linerate.records import run_file
from linerate.records.output import DUELS, REPORT, write_atomically
from linerate.records.run_file import RUN
from linerate.records.summary import SUMMARY
from linerate.records.trial import RECORDS, RecordWriter, scan
from linerate.runs.kept import rebuild
from linerate.runs.kept.stored import stored
from linerate.traffic import frame_files, other_generator


def _traffic(path: Path) -> object:
    return frame_files.frame_files([str(path)], 2, path.parent)


# The readers, by the name that their file must have.
READERS: dict[str, Callable[[Path], object]] = {
    RUN: lambda path: run_file.load(path.parent),
    RECORDS: scan,
    DUELS: lambda path: kept.load(path.parent),
    "definition.toml": files.read,
    "design.toml": lambda path: design_file.read(str(path)),
    "traffic.yaml": _traffic,
    "base.json": baseline.restore,
    "probe.so": check_probe,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "directory", "kernel", "too large"])
def test_every_reader_refuses_what_has_no_end(tmp_path: Path, name: str, kind: str) -> None:
    """Immediately: it would wait for a pipe without a writer, and read a device for ever."""
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "directory":
        path.mkdir()
    elif kind == "kernel":
        path.symlink_to("/proc/self/status")
    else:
        with path.open("wb") as file:
            file.truncate(foreign.MOST_PROGRAM + 1)
    with bounded(20), pytest.raises(LabError) as refused:
        READERS[name](path)
    assert str(path) in str(refused.value)
    words = {"pipe": "a pipe", "device": "a device", "socket": "a socket",
             "directory": "s a directory", "kernel": "a file of the kernel",
             "too large": "larger than"}  # fmt: skip
    assert words[kind] in str(refused.value)


def test_a_program_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fw")
    with bounded(20), pytest.raises(OSError, match="a pipe, not a regular file"):
        elf.read(tmp_path / "fw")


@pytest.mark.parametrize("option", ["password_file", "ca"])
def test_secrets_without_an_end(tmp_path: Path, option: str) -> None:
    (tmp_path / "secret").write_text("word\n")
    os.mkfifo(tmp_path / "pipe")
    given = {"password_file": tmp_path / "secret", "ca": None} | {option: tmp_path / "pipe"}
    with bounded(20), pytest.raises(UsageError, match="a pipe, not a regular file"):
        other_generator.named("https://me@localhost:1", **given, insecure=False)


@pytest.mark.parametrize(
    "name", ["/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
def test_files_of_the_kernel_are_not_read(tmp_path: Path, name: str) -> None:
    """Root lost lines of the kernel's log to a run.json that was a link to /proc/kmsg."""
    (tmp_path / "link").symlink_to(name)
    for path in (Path(name), tmp_path / "link"):
        with pytest.raises(OSError, match="a file of the kernel, not a regular file"):
            foreign.content(path, 1 << 20)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_no_fault(name: str) -> None:
    with pytest.raises(OSError, match="no name of a file"):
        foreign.content(Path(name), 10)


@pytest.mark.parametrize("levels", [202, 900, 4000, 100_000])
def test_json_that_is_nested_without_end_is_no_value(levels: int) -> None:
    with pytest.raises(ValueError, match="recursion limit"):
        foreign.parsed(nested(levels))


# -- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, simulation: Simulation) -> Path:
    simulated.start(tmp_path / "run")
    return tmp_path / "run"


def report(directory: Path) -> None:
    rebuild.report([directory], None, simulated.quiet())


def test_records_that_were_doubled_are_refused(run: Path) -> None:
    """All records, and a single line."""
    content = (run / RECORDS).read_bytes()
    lines = content.splitlines(keepends=True)
    for doubled, again in ((content * 2, len(lines) + 1), (content + lines[2], len(lines) + 1)):
        (run / RECORDS).write_bytes(doubled)
        for tell in (report, stored, simulated.resume):
            with pytest.raises(RunError, match=f"{RECORDS}, line {again}: .* already"):
                tell(run)


def test_a_line_without_an_end_is_not_read(run: Path) -> None:
    with (run / RECORDS).open("ab") as file:
        file.truncate(foreign.MOST_RECORDS)
    with bounded(60), pytest.raises(RunError, match="longer than 4 MiB"):
        report(run)


def test_complaints_about_long_names_are_short(run: Path) -> None:
    data = json.loads((run / RUN).read_text())
    data["design"]["x" * 1_000_000] = 1
    data["y" * 1_000_000] = 2
    (run / RUN).write_text(json.dumps(data))
    with pytest.raises(RunError) as refused:
        report(run)
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("how", ["other user", "all may write"])
@pytest.mark.parametrize("what", [".", RUN, RECORDS])
def test_nobody_goes_on_with_another_user_s_run(
    run: Path, monkeypatch: pytest.MonkeyPatch, how: str, what: str
) -> None:
    """Its commands would be run; reporting it is allowed, because that runs nothing."""
    path = run / what
    if how == "all may write":
        path.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(foreign, "_trusted_users", lambda: {0})
    with pytest.raises(UsageError, match=re.escape(str(path))) as refused:
        simulated.resume(run)
    assert "cp -r" in str(refused.value)
    report(run)


def test_who_became_root_goes_on_with_a_run_of_their_own(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    there = (run / RUN).stat().st_uid
    monkeypatch.setenv("SUDO_UID", str(there))
    assert foreign.is_trusted(there)
    monkeypatch.setenv("SUDO_UID", "x")
    assert foreign.is_trusted(0)
    assert not foreign.is_trusted(12345)
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setenv("SUDO_UID", "12345")
    assert not foreign.is_trusted(12345)


def test_nobody_starts_another_user_s_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from linerate.experiments.duel.programs import program_of

    monkeypatch.chdir(tmp_path)
    shutil.copy("/bin/true", "fw")
    given = "./fw {eal} -- -p {portmask}"
    baseline.keep(Path("base.json"), given, program_of(given, "A"))
    for name in ("base.json", "base.json.program"):
        before = Path(name).stat().st_mode
        Path(name).chmod(0o777)
        with pytest.raises(UsageError, match=f"every user may write to .*{name}"):
            baseline.restore(Path("base.json"))
        Path(name).chmod(before)
    baseline.restore(Path("base.json"))


def test_what_is_written_follows_no_link(run: Path, tmp_path: Path) -> None:
    """Another user's directory may contain links with the names of the output files."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (SUMMARY, REPORT):
        (run / name).unlink()
        (run / name).symlink_to(victim)
        (run / f".{name}.{os.getpid()}").symlink_to(victim)
    write_atomically(run / SUMMARY, "new")
    assert ((run / SUMMARY).read_text(), (run / SUMMARY).is_symlink()) == ("new", False)
    report(run)
    assert victim.read_text() == "precious"
    (tmp_path / RECORDS).symlink_to(tmp_path / "absent")
    with pytest.raises(OutputError, match="cannot write"):
        RecordWriter(tmp_path / RECORDS)
    assert not (tmp_path / "absent").exists()


# -- designs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "\n# nothing\n", 'note = "mine"\n'])
def test_an_empty_design_starts_no_study(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"mine.toml: .*\n.*study of hours"):
        design_file.read(str(path))


def test_a_design_of_millions_of_cells_is_refused(tmp_path: Path) -> None:
    """A file of 11 KB filled the memory before any message."""
    path = tmp_path / "mine.toml"
    lists = {"sizes": list(range(64, 1519)), "tenants": list(range(65)),
             "cpu": [f"quota-{share}" for share in range(1, 101)]}  # fmt: skip
    path.write_text("\n".join(f"{name} = {levels}" for name, levels in lists.items()))
    with bounded(20), pytest.raises(DesignError, match="cells, more than 10000"):
        options_of(design_file.read(str(path)))
    path.write_text("".join(f'[[part]]\nname = "p{number}"\n' for number in range(1000)))
    with pytest.raises(UsageError, match=r"mine.toml: part: List should have at most 50 items"):
        design_file.read(str(path))


# -- terminals -----------------------------------------------------------------------------------


def test_text_of_others_steers_nothing() -> None:
    assert printable("eth0 é µs 64 B") == "eth0 é µs 64 B"
    assert printable(STEERS) == "?[2J?]0;x??31m??"
    assert printable("a\nb\tc\x1b", keep="\n\t") == "a\nb\tc?"
    assert all(each.isprintable() for each in printable("".join(map(chr, range(0x3000)))))


def test_what_is_printed_on_a_console_steers_nothing() -> None:
    """Lines, cells, titles and what is drawn anew, and brackets stay what they are."""
    console = SafeConsole(width=100)
    console.file = io.StringIO()
    table = Table("name", title=STEERS)
    table.add_row(f"[/x]{STEERS}")
    table.add_row(Text(STEERS))
    console.print(f"[bold]{STEERS}[/x]", table)
    with Live(Text(STEERS), console=console, auto_refresh=False) as live:
        live.update(Text(STEERS), refresh=True)
    text = console.file.getvalue()
    assert all(each.isprintable() or each == "\n" for each in text), repr(text)
    assert "[/x]?[2J" in text
    assert "[bold]?[2J" in text


def test_an_error_message_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    exit_status.say(RunError(f"{STEERS}: no run", "name another"))
    assert capsys.readouterr().err == f"{printable(STEERS)}: no run\n  name another\n"


def test_names_in_a_run_steer_nothing(run: Path) -> None:
    """A forwarder's name in run.json and in all records contains control characters."""
    for name in (RUN, RECORDS):
        text = (run / name).read_text()
        (run / name).write_text(text.replace('"rust-l2fwd"', json.dumps(f"[/x]{STEERS}")))
    console = SafeConsole(width=200)
    console.file = io.StringIO()
    try:
        rebuild.report([run], None, console)
    except LabError as error:
        console.print(str(error))
    text = console.file.getvalue()
    assert "?[2J" in text
    assert all(each.isprintable() or each == "\n" for each in text), repr(text)


@pytest.mark.parametrize("made", ["many", "large", "links"])
def test_runs_below_duels_have_an_end(tmp_path: Path, made: str) -> None:
    """Links are no runs that a duel made, and many or large ones would be read one by one."""
    for number in range(duels_report.MOST_RUNS + 1):
        place = tmp_path / str(number)
        if made == "links":
            place.symlink_to(".")
            continue
        place.mkdir()
        with (place / SUMMARY).open("wb") as file:
            file.truncate(foreign.MOST_SUMMARY // 50 if made == "large" and number < 60 else 2)
    (tmp_path / SUMMARY).write_text("{}")
    if made == "large":
        for number in range(60, duels_report.MOST_RUNS + 1):
            shutil.rmtree(tmp_path / str(number))
    if made == "links":
        assert duels_report.runs_below(tmp_path) == []
        return
    with pytest.raises(RunError, match=r"at most 100 runs below it are read, with 64 MiB"):
        duels_report.runs_below(tmp_path)
