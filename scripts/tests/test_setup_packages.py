# SPDX-License-Identifier: BSD-3-Clause
"""setup-packages installs everything that is missing at once, or nothing, and says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stub_machine import Machine

ROOT = Path(__file__).resolve().parents[2]
NOT_ROOT = 'if [[ $1 == -u ]]; then echo 1000; else echo "uid=1000"; fi'
AS_ROOT = 'if [[ $1 == -u ]]; then echo 0; else echo "uid=0"; fi'
NEW_RUST = "1.96.0"


@pytest.fixture
def bare(machine: Machine) -> Machine:
    """Debian without a compiler, DPDK or cargo, and a user without rights."""
    machine.stub("id", NOT_ROOT)
    machine.stub("apt-get")
    machine.stub("apt-cache", "printf 'cargo:\\n  Candidate: 0.66.0+ds1-1\\n'")
    return machine


def complete(machine: Machine) -> None:
    """Puts there what the probes look for in PATH. Files outside PATH are the real machine's."""
    for name in ("cc", "clang", "make", "dpdk-testpmd", "pkg-config", "python3.11", "ip", "bridge"):
        machine.stub(name)
    machine.rust(NEW_RUST)


def asked_for(output: str) -> list[str]:
    """The packages of the command that the message shows."""
    found = re.search(r"apt-get install --no-install-recommends (.*)", output)
    assert found, output
    return found[1].split()


def test_a_user_gets_one_message_with_the_packages_and_the_command(bare: Machine) -> None:
    result = bare.run("scripts/setup-packages")

    assert result.returncode == 1
    packages = asked_for(result.stderr)
    for name in (
        "clang",
        "libbpf-dev",
        "libelf-dev",
        "zlib1g-dev",
        "gcc",
        "libc6-dev",
        "pkg-config",
        "libdpdk-dev",
        "dpdk-dev",
        "python3-venv",
    ):
        assert name in packages
        assert result.stderr.count(name) >= 2, "once with its purpose, once in the command"
    assert {"rustc-web", "cargo-web"} <= set(packages)
    assert "rust-web-clippy" not in packages
    assert bare.calls("apt-get") == []


def test_lint_asks_for_its_tools_too(bare: Machine) -> None:
    result = bare.run("scripts/setup-packages", "lint")
    assert {"rust-web-clippy", "rustfmt-web"} <= set(asked_for(result.stderr))


def test_ci_asks_for_what_is_optional_elsewhere(bare: Machine) -> None:
    asked = asked_for(bare.run("scripts/setup-packages", LINERATE_CI="1").stderr)
    assert {"chromium", "poppler-utils", "valgrind"} <= set(asked)
    assert "chromium" not in asked_for(bare.run("scripts/setup-packages").stderr)


def test_tenants_are_asked_for_by_name_only(bare: Machine) -> None:
    tenants = {"stress-ng", "fio", "iperf3", "qemu-system-x86"}
    assert tenants <= set(asked_for(bare.run("scripts/setup-packages", "cloud").stderr))
    assert tenants.isdisjoint(asked_for(bare.run("scripts/setup-packages").stderr))


def test_where_debians_cargo_is_new_enough_it_is_asked_for(bare: Machine) -> None:
    bare.stub("apt-cache", "printf 'cargo:\\n  Candidate: 1.85.0+dfsg3-1\\n'")
    packages = asked_for(bare.run("scripts/setup-packages", "lint").stderr)
    assert {"rustc", "cargo", "rust-clippy", "rustfmt"} <= set(packages)
    assert not any("web" in name for name in packages)


def test_a_cargo_that_is_too_old_counts_as_missing(bare: Machine) -> None:
    complete(bare)
    bare.rust("1.63.0")
    assert asked_for(bare.run("scripts/setup-packages").stderr)[-2:] == ["rustc-web", "cargo-web"]


def test_nothing_missing_is_silent_and_needs_no_root(bare: Machine) -> None:
    complete(bare)
    result = bare.run("scripts/setup-packages")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert bare.calls("apt-get") == []


def test_root_installs_all_packages_in_one_go(bare: Machine) -> None:
    bare.stub("id", AS_ROOT)
    result = bare.run("scripts/setup-packages")

    calls = bare.calls("apt-get")
    steps = [re.findall(r"update|--simulate|install", call)[0] for call in calls]
    assert steps == [
        "update",
        "--simulate",
        "install",
    ]
    assert "libdpdk-dev" in calls[2]
    assert "rustc-web" in calls[2]
    assert result.returncode == 1, "the stub installs nothing, which has to be noticed"
    assert "Installed, but still not usable" in result.stderr


def test_what_apt_cannot_find_is_refused_before_anything_is_installed(bare: Machine) -> None:
    bare.stub("id", AS_ROOT)
    bare.stub(
        "apt-get",
        '[[ "$*" != *--simulate* ]] || { echo "E: Unable to locate package dpdk-dev"; exit 100; }',
    )
    result = bare.run("scripts/setup-packages")
    assert result.returncode == 1
    assert "Unable to locate package dpdk-dev" in result.stderr
    assert len(bare.calls("apt-get")) == 2


def test_sudo_is_used_where_it_asks_no_password(bare: Machine) -> None:
    bare.stub("sudo", 'shift; exec "$@"')
    bare.run("scripts/setup-packages")
    assert bare.calls("sudo")[0] == "sudo -n true"
    assert len(bare.calls("apt-get")) == 3


def test_a_sudo_that_asks_a_password_is_not_waited_for(bare: Machine) -> None:
    bare.stub("sudo", "exit 1")
    result = bare.run("scripts/setup-packages")
    assert result.returncode == 1
    assert "with sudo" in result.stderr
    assert bare.calls("apt-get") == []


def test_make_under_sudo_stops_before_it_leaves_files_of_root(bare: Machine) -> None:
    complete(bare)
    bare.stub("id", AS_ROOT)
    result = bare.run("scripts/setup-packages", SUDO_UID="1000")
    assert result.returncode == 1
    assert "without sudo" in result.stderr


def test_another_system_gets_the_list(bare: Machine) -> None:
    (bare.bin / "apt-get").unlink()
    result = bare.run("scripts/setup-packages")
    assert result.returncode == 1
    assert "no apt-get" in result.stderr
    assert "libdpdk-dev" in result.stderr


def test_rustup_without_clippy_is_told_the_command(bare: Machine) -> None:
    complete(bare)
    for name in ("cargo", "rustc"):
        bare.stub(name, f'[[ $1 == --version ]] && echo "{name} {NEW_RUST} (stub)"')
    result = bare.run("scripts/setup-packages", "lint")
    assert result.returncode == 1
    assert "rustup component add clippy rustfmt" in result.stderr


def test_no_pipe_ends_before_its_writer() -> None:
    """grep -q leaves at the first match; what writes to it may die of it, and pipefail tells."""
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file()]
    assert len(scripts) > 5
    hasty = re.compile(r"\|\s*grep\s+-\w*q")
    for path in [*scripts, ROOT / ".ci" / "run", ROOT / "Makefile"]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not hasty.search(line), f"{path.name}:{number}: {line}"
