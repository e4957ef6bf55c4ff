# SPDX-License-Identifier: BSD-3-Clause
"""`linerate attach`: what it refuses and why, and that it is replaced by the program."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from linerate.cli import attach
from linerate.host import places
from linerate.host.builds import elf, plugins
from linerate.host.errors import LabError, MachineError, MissingError, UsageError
from linerate.host.exit_status import ExitStatus

# Only a directory without world-writable parents, unlike a temporary directory.
SAFE = plugins.plugin_directory() / f"test-attach-{os.getpid()}" / "probe.so"

EAL = "int rte_eal_init(int argc, char **argv) { return argc + (argv == 0); }\n"
# The program's own library, through which it reaches EAL.
MINE = """
int rte_eal_init(int, char **);
int mine(int argc, char **argv) { return rte_eal_init(argc, argv); }
"""
# Prints how it was started, as JSON, and ends as it is told to.
MAIN = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int mine(int, char **);
int main(int argc, char **argv)
{
    struct sigaction pipe;
    char line[64] = "";
    const char *one_in = getenv("LINERATE_PROBE_ONE_IN"), *required = getenv("LINERATE_PROBE_REQUIRED");
    mine(argc, argv);
    sigaction(SIGPIPE, 0, &pipe);
    if (!fgets(line, sizeof line, stdin)) line[0] = 0;
    printf("{\"pid\": %d, \"pipe\": %d, \"stdin\": \"%s\", \"one_in\": \"%s\", \"required\": \"%s\", \"argv\": [",
           getpid(), pipe.sa_handler == SIG_DFL, line, one_in ? one_in : "", required ? required : "");
    for (int i = 0; i < argc; i++) printf("%s\"%s\"", i ? ", " : "", argv[i]);
    puts("]}");
    return 3;
}
"""  # noqa: E501 - C


@pytest.fixture(scope="module", autouse=True)
def safe() -> Iterator[None]:
    """Looks like the probe to `attach`."""
    SAFE.parent.mkdir(parents=True)
    SAFE.write_bytes(b"\x7fELF.. LINERATE_PROBE_ONE_IN ..")
    yield
    shutil.rmtree(SAFE.parent)


class Workshop:
    """Builds programs with the C compiler."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler (cc)")
        self.compiler, self.folder = compiler, folder

    def make(self, name: str, source: str, *options: str) -> Path:
        text, made = self.folder / f"{name}.c", self.folder / name
        text.write_text(source)
        subprocess.run(
            [self.compiler, "-o", str(made), str(text), *options], check=True, timeout=60
        )
        return made


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def program(workshop: Workshop) -> Path:
    """Links a library of its own, and that one links EAL."""
    link = [f"-L{workshop.folder}", f"-Wl,-rpath,{workshop.folder}", "-Wl,--no-as-needed"]
    workshop.make("librte_eal.so", EAL, "-shared", "-fPIC")
    workshop.make("libmine.so", MINE, "-shared", "-fPIC", *link, "-lrte_eal")
    return workshop.make("program", MAIN, *link, "-lmine")


def refused(*command: str, probe: Path = SAFE, status: ExitStatus | None = None) -> str:
    with pytest.raises(LabError) as error:
        attach.prepare(command, probe=probe)
    assert status is None or error.value.exit_code == status
    return str(error.value)


@pytest.mark.parametrize("text", ["0", "1", "64", "1073741824"])
def test_one_in(text: str) -> None:
    assert attach.parse_one_in(text) == int(text)


@pytest.mark.parametrize(
    "text", ["", "-1", "1.5", "6_4", "1073741825", "9" * 5000, "all", "\u0664"]
)
def test_one_in_that_is_no_whole_number(text: str) -> None:
    with pytest.raises(UsageError, match="not a whole number from 0 to 1073741824"):
        attach.parse_one_in(text)


def test_the_probe_comes_first_and_the_rest_is_untouched(program: Path) -> None:
    given = [str(program), "-l", "1", "--", "-d", "--no-telemetry"]
    execution = attach.prepare(given, 7, SAFE, {"PATH": "/bin", "LINERATE_PROBE_ONE_IN": "5"})
    assert execution.path == program
    assert execution.argv == [str(program), "-d", str(SAFE), *given[1:]]
    assert execution.environment == {
        "PATH": "/bin", "LINERATE_PROBE_REQUIRED": "1", "LINERATE_PROBE_ONE_IN": "7",
    }  # fmt: skip
    untold = attach.prepare(given, None, SAFE, {"LINERATE_PROBE_ONE_IN": "5"})
    assert untold.environment["LINERATE_PROBE_ONE_IN"] == "5"


@pytest.mark.parametrize("separator", [["--"], []])
def test_it_becomes_the_program(program: Path, separator: list[str]) -> None:
    options = ["--probe", str(SAFE), "--one-in", "7"]
    own = [program.name, "-l", "1", "--", "--one-in", "9"]
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "attach", *options, *separator, *own],
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = process.communicate("hello", timeout=60)
    assert (process.returncode, err) == (3, "")
    assert json.loads(out) == {
        "argv": [program.name, "-d", str(SAFE), *own[1:]],
        "pid": process.pid,
        "stdin": "hello",
        "one_in": "7",
        "required": "1",
        "pipe": 1,
    }


def test_what_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("")
    assert "no such program in PATH" in refused("no-such-program-at-all")
    assert "linerate attach -- ./plain" in refused("plain")
    assert "no such program" in refused("./absent")
    assert "not executable" in refused("./plain")
    assert "is a directory" in refused(str(tmp_path), status=ExitStatus.USAGE)


def test_a_script(tmp_path: Path) -> None:
    script = tmp_path / "wrapper"
    script.write_text("#!/bin/sh -e\nexec dpdk-testpmd\n")
    script.chmod(0o755)
    message = refused(str(script))
    assert "is a script (/bin/sh -e)" in message
    assert "inside the script" in message


def test_a_program_that_is_no_dpdk_program() -> None:
    message = refused(sys.executable)
    assert "not a DPDK program" in message
    assert "directly before the DPDK program" in message


def test_a_static_program(tmp_path: Path) -> None:
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", elf.MAGIC + b"\x02\x01\x01", 2, 62, 1, 0, 0, 0, 0, 64, 56, 0, 0, 0, 0
    )
    static = tmp_path / "static"
    static.write_bytes(header)
    static.chmod(0o755)
    assert "linked statically" in refused(str(static))


def test_a_program_with_a_dpdk_of_its_own_inside(workshop: Workshop) -> None:
    source = EAL + "int main(int argc, char **argv) { return rte_eal_init(argc, argv); }\n"
    inside = workshop.make("inside", source)
    assert "DPDK of its own" in refused(str(inside))
    # The linker may export symbols to plugins: then the probe finds them.
    shown = workshop.make("shown", source, "-rdynamic")
    assert attach.prepare([str(shown)], probe=SAFE).path == shown


def test_what_cannot_be_told_is_left_to_the_probe(workshop: Workshop, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(elf.MAGIC + b"\x02\x01" + b"\xff" * 100)
    broken.chmod(0o755)
    assert attach.prepare([str(broken)], probe=SAFE).path == broken
    # Its loader cannot list libraries when one is missing.
    (tmp_path / "lib").mkdir()
    gone = workshop.make("libgone.so", "int gone(void) { return 0; }\n", "-shared", "-fPIC")
    link = [f"-L{workshop.folder}", "-lgone"]
    lacking = workshop.make("lacking", "int gone(void); int main(void) { return gone(); }\n", *link)
    gone.unlink()
    assert attach.prepare([str(lacking)], probe=SAFE).path == lacking


def test_a_probe_that_eal_would_refuse(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    probe = open_to_all / "liblinerate_probe.so"
    probe.touch()
    with pytest.raises(MachineError) as error:
        attach.loadable(probe)
    assert f"everybody can write to {open_to_all}" in str(error.value)
    copy = f"/usr/local/lib/linerate/{probe.name}"
    assert f"install -D -m 644 {probe} {copy}; then" in str(error.value)
    assert f"linerate attach --probe {copy} -- PROGRAM ARGS..." in str(error.value)
    link = tmp_path / "link"
    link.symlink_to(SAFE)
    assert attach.loadable(link) == SAFE


def test_a_probe_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "project_root", lambda: tmp_path)
    plugins.probe_plugin.cache_clear()
    with pytest.raises(MissingError, match="make build"):
        attach.prepare([sys.executable])
    absent = tmp_path / "absent.so"
    assert "No such file" in refused(sys.executable, probe=absent, status=ExitStatus.USAGE)


def test_a_file_that_is_no_probe(program: Path) -> None:
    """EAL would load any library, and the program would run without a probe and without a
    message.
    """
    assert "not a probe of linerate" in refused(str(program), probe=Path("/etc/passwd"))
    assert "not a probe" in refused(str(program), probe=program.parent / "libmine.so")


def test_open_vswitch_is_told_where_its_options_are() -> None:
    for name in ("ovs-vswitchd", "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"):
        assert f"other_config:dpdk-extra='-d {SAFE}'" in refused(name)


def test_a_program_that_nobody_could_ask(program: Path) -> None:
    assert "--no-telemetry" in refused(str(program), "--no-telemetry", "--", "-p", "3")


def test_one_in_counts_received_bursts() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "linerate", "attach", "--help"],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 of N received bursts" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["--one-in", "x", "--", "l2fwd"], "--one-in x: not a whole number"),
        (["--probe", str(SAFE), "--", "no-such-program-at-all"], "no such program in PATH"),
    ],
)
def test_errors_on_the_command_line(arguments: list[str], message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "linerate", "attach", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert message in done.stderr
    assert done.returncode in (2, 4)
    assert "Traceback" not in done.stderr


@pytest.mark.e2e
def test_eal_refuses_what_attach_refuses_before(tmp_path: Path) -> None:
    """`loadable` has EAL's rule: EAL itself refuses the same programs, and takes those that attach
    is for.
    """
    l2fwd = places.rust_binary("l2fwd")
    assert elf.read(l2fwd).loader is not None
    plugin = tmp_path / "plugin.so"
    plugin.touch()
    with pytest.raises(MachineError):
        attach.loadable(plugin)
    done = subprocess.run(
        [l2fwd, "-d", plugin, "--no-pci", "--no-huge", "--no-shconf", "-m", "64"],
        env={**os.environ, "RUNTIME_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "world-writable" in done.stdout + done.stderr
    assert attach.prepare([str(l2fwd)], probe=SAFE).path == l2fwd
