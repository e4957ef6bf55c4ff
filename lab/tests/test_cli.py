# SPDX-License-Identifier: BSD-3-Clause
"""The command line's errors: one message, what to do, an exit code, nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Done, Linerate

from linerate.cli import compare_screen as regression_screen
from linerate.cli import doctor
from linerate.host.errors import LabError
from linerate.runs.kept import rebuild


def process(*arguments: str, cwd: Path) -> Done:
    """Run the command as users start it."""
    return subprocess.run(
        [sys.executable, "-m", "linerate", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "overload", "--sizes", "big"], "for instance --sizes 64,1518"),
        (["run", "rfc2544", "--ip", "5"], "--ip 5: no such version"),
        (["run", "overlod"], "run overlod: no such experiment\n  did you mean overload? choose"),
        (["compare", ".", "absent"], "holds no run (there is no run.json)"),
    ],
)
def test_a_process_with_an_error_says_so_and_no_more(
    tmp_path: Path, linerate: Linerate, arguments: list[str], message: str
) -> None:
    """Within this process the output is exactly the same, so the other tests need no process."""
    done = process(*arguments, cwd=tmp_path)
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []
    here = linerate(*arguments)
    assert (here.returncode, here.stdout, here.stderr) == (2, "", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--preset", "huge"], 2, "choose from: floods, demo, quick, screen, claim"),
        (
            ["--link", "wire"],
            2,
            "choose from: null, null2, nearfree2, nearfree1-ip, nearfree2-ip, frames, frames2",
        ),
        (["--sizes", "big"], 2, "for instance --sizes 64,1518"),
        (["--sizes", "64,abc"], 2, "--sizes abc: not a whole number"),
        (["--sizes", "-64"], 2, "--sizes -64: not a whole number"),
        (["--sizes", "6_4"], 2, "--sizes 6_4: not a whole number"),
        (["--sizes", "9" * 5000], 2, "not a whole number"),
        (["--sizes", ""], 2, "--sizes '': has an empty word"),
        (["--sizes", "64,"], 2, "--sizes '64,': has an empty word"),
        (["--sizes", "64,128", "--sizes", "064"], 2, "--sizes 64: is named twice"),
        (["--sizes", "9000"], 2, "64 to 1518"),
        (["--link", "ports"], 2, "--link ports: no devices"),
        (["--generator-port", "ring:a"], 2, "--generator-port ring:a: only for --link ports"),
        (
            ["--link", "ports", "--generator-port", "ring:a,b"],
            2,
            "--generator-port without --forwarder-port",
        ),
        (["--link", ""], 2, "--link '': has an empty word"),
        (["--link", "memif, memif"], 2, "--link memif: is named twice"),
        (["--forwarders", "cat"], 2, "no such forwarder"),
        (["--forwarders", ""], 2, "--forwarders '': has an empty word"),
        (["--forwarders", "reflect,reflect"], 2, "--forwarders reflect: is named twice"),
        (["--blocks", "0"], 2, "--blocks 0: at least 1"),
        (["--blocks", "10001"], 2, "--blocks 10001: at least 1 and at most 10000"),
        (["--line-rate", "-1"], 2, "--line-rate -1: must be a number above 0"),
        (["--line-rate", "nan"], 2, "--line-rate nan: must be a number above 0"),
        (["--line-rate", "inf"], 2, "--line-rate inf: must be a number above 0"),
        (["--hugepages", "maybe"], 2, "auto, yes or no"),
        (["--generator", "http://a"], 2, "linerate run rfc2544 --generator URL"),
        (["--bogus"], 2, "No such option"),
        (["--out", "/proc/nowhere"], 2, "cannot write to /proc/nowhere"),
    ],
)
def test_errors(
    tmp_path: Path, linerate: Linerate, arguments: list[str], code: int, message: str
) -> None:
    done = linerate("run", "overload", *arguments)
    assert message in done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "demo"], "choose from: conforming, csit, quick"),
        (["--link", "null"], "--link null: has no sender"),
        (["--sizes", "standard,64"], "--sizes standard: not a whole number"),
        (["--sizes", "64", "--ip", "6"], "IPv6 frames of this experiment have 84 to 1518 bytes"),
        (["--ip", "5"], "--ip 5: no such version"),
        (["--tests", "reset"], "choose from: throughput, latency, loss, back-to-back, recovery"),
        (["--tests", ""], "--tests '': has an empty word"),
        (["--directions", "up"], "choose from: one, both"),
        (["--generator", "a:1"], "--generator a:1: no URL of an HTTP or HTTPS server"),
        (["--generator", "http://a"], "--link ports with --generator-port LOCATION"),
        (["--generator-insecure"], "--generator-insecure: only with --generator URL"),
        (
            [
                "--generator",
                "http://a",
                "--link",
                "ports",
                "--generator-port",
                "1;1",
                "--forwarder-port",
                "tap:a",
            ],
            "--line-rate FRAMES_PER_SECOND",
        ),
        (["--directions", "one"], "link memif has one port"),
        (["--blocks", "0"], "--blocks 0: at least 1"),
        (["--blocks", "9" * 30], "9: at least 1 and at most 10000"),
        (["--line-rate", "0"], "--line-rate 0: must be a number above 0"),
        (["--line-rate", "nan"], "--line-rate nan: must be a number above 0"),
        (["--hugepages", "maybe"], "auto, yes or no"),
        (["--forwarders", "cat"], "no such forwarder"),
        (["--resume", "nowhere"], "nowhere"),
    ],
)
def test_errors_of_rfc2544(
    tmp_path: Path, linerate: Linerate, arguments: list[str], message: str
) -> None:
    done = linerate("run", "rfc2544", *arguments)
    assert message in done.stderr
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_never_overwritten(tmp_path: Path, linerate: Linerate) -> None:
    (tmp_path / "records.jsonl").write_text("")
    done = linerate("run", "overload", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "already has a run" in done.stderr


def test_a_missing_package_names_the_remedy(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['numpy'] = None; sys.argv = ['linerate', 'run', 'overload']; "
        "from linerate.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4
    assert "numpy" in done.stderr
    assert "make setup" in done.stderr


def test_a_duel_begins_without_what_takes_long_to_import() -> None:
    """scipy's statistics, charts and the generator's client take twice as long as the rest."""
    script = (
        "import sys; import linerate.cli.duel_command; "
        "print(*sorted({'scipy', 'altair', 'snappi'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []


# Each ends without a verdict, and so not with 1.
def test_what_cannot_say_why_does_not_end_like_a_slow_program(tmp_path: Path) -> None:
    command = f"{sys.executable} -m linerate"
    for what, status in [
        (f"{command} compare a b 2>/dev/full", 2),
        (f"{command} compare a b 2>&-", 2),
        (f"{command} no-such-command 2>/dev/full", 2),
        (f"{command} doctor >/dev/full 2>/dev/full", 4),
        (f"ulimit -v 100000; {command} compare a b", 4),
    ]:
        done = subprocess.run(
            ["bash", "-c", what],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, f"{what}: {done.stderr}"


def test_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "linerate", "--help"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == "linerate: standard output, or a file: No space left on device\n"


def test_little_address_space_is_refused_by_name(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v 100000; {sys.executable} -m linerate compare a b"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "memory is limited to 97 MiB (ulimit -v)" in done.stderr


def test_a_panic_of_a_library_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, linerate: Linerate
) -> None:
    """Panics in Rust raise something that is no `Exception`, for instance if no thread can
    be made.
    """

    class PanicException(BaseException):
        pass

    def panic(*_: object, **__: object) -> None:
        raise PanicException("failed to spawn thread")

    monkeypatch.setattr(regression_screen, "run", panic)
    done = linerate("compare", "a", "b")
    assert done.returncode == 4
    assert "failed to spawn thread" in done.stderr
    assert "a fault of the lab" in done.stderr


def test_reports_need_no_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linerate: Linerate
) -> None:
    monkeypatch.setenv("LINERATE_FORWARDERS", "/nonexistent")
    assert "/nonexistent" not in linerate("report", ".").stderr
    assert linerate("duel", "c-l2fwd", "c-l2fwd").returncode == 2
    done = linerate("run", "overload", "--out", str(tmp_path / "run"))
    assert (done.returncode, "/nonexistent" in done.stderr) == (2, True)
    monkeypatch.setenv("LINERATE_FORWARDERS", "x" * 3000)
    assert linerate("run", "overload").returncode == 2


def test_a_wrong_log_level_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINERATE_LOG", "loud")
    done = process("doctor", cwd=tmp_path)
    assert done.returncode == 2
    assert "LINERATE_LOG=LOUD" in done.stderr
    assert "Traceback" not in done.stderr


# Sends its own process a signal when it begins to import a certain module.
SIGNALLED = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Watch())
sys.argv = ["linerate", "run", "overload"]
from linerate.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["linerate.host.errors", "typer", "numpy"])
def test_a_signal_during_the_imports_ends_it_without_a_traceback(
    tmp_path: Path, module: str, number: signal.Signals
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED.format(module=module, number=int(number))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (128 + number, "linerate: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "overload", "--resume", "absent"], "absent: there is no such directory"),
        (["run", "overload", "--resume", "."], "holds no run (there is no run.json)"),
        (["report", "absent"], "absent: there is no such directory"),
        (["report", "."], "holds no run (there is no run.json)"),
        (["report", ".", "absent"], "--out DIR"),
        (["report", ".", "--out", "x"], "--out x: only to merge several runs"),
        (["report"], "Missing argument"),
        (["compare", ".", "absent"], "holds no run (there is no run.json)"),
        (["compare", ".", ".", "--margin", "lots"], "--margin lots: not a share"),
        (["compare", "."], "Missing argument"),
    ],
)
def test_directories_without_a_run(
    tmp_path: Path, linerate: Linerate, arguments: list[str], message: str
) -> None:
    done = linerate(*arguments)
    assert message in done.stderr
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


COMMANDS = {
    "compare": (regression_screen, "run", ("compare", "a", "b")),
    "report": (rebuild, "report", ("report", "a")),
    "doctor": (doctor, "examine", ("doctor",)),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LabError("no forwarder", "make setup"), "no forwarder\n  make setup"),
        (
            OSError(28, "No space left on device"),
            "standard output, or a file: No space left on device",
        ),
        (ImportError("No module named 'scipy'"), "No module named 'scipy'\n  make setup"),
        (ZeroDivisionError("division by zero"), "this is a fault of the lab"),
    ],
)
def test_no_error_says_that_something_became_slower(
    linerate: Linerate,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    error: Exception,
    message: str,
) -> None:
    module, name, arguments = COMMANDS[command]

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, name, fail)
    done = linerate(*arguments)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"linerate: {message}" in done.stderr
    assert ("ZeroDivisionError: division by zero" in done.stderr) == ("fault of the lab" in message)


def test_compare_without_a_place_for_its_answer_is_no_regression(
    linerate: Linerate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    done = linerate("compare", "a", "b")
    assert done.returncode == 4
    assert "standard output is closed" in done.stderr


def test_version_and_help(tmp_path: Path, linerate: Linerate) -> None:
    assert process("--version", cwd=tmp_path).stdout.startswith("linerate 0.")
    assert "overload" in linerate("run", "--help").stdout
    for word in ("report", "compare"):
        assert word in linerate("--help").stdout
    assert "Exit status: 0 none did" in linerate("compare", "--help").stdout


@pytest.mark.parametrize("listing", [(), ("run",)])
def test_the_list_of_commands_says_what_each_does_without_cutting_it_off(
    linerate: Linerate, monkeypatch: pytest.MonkeyPatch, listing: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, commands = linerate(*listing, "--help").stdout.split("Commands:\n")
    assert [line for line in commands.splitlines() if line.endswith("...")] == []
