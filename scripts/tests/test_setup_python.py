# SPDX-License-Identifier: BSD-3-Clause
"""setup-python makes .venv once, again when what it was made from changes, and never half."""

from __future__ import annotations

import pytest
from stub_machine import Machine

# A Python that makes environments, and is the interpreter of those it made.
PYTHON = """
me=${BASH_SOURCE[0]}
case "$*" in
    "-m venv "*)
        mkdir -p "$3/bin"
        cp "$me" "$3/bin/python"
        cp "$me" "$3/bin/pip"
        echo "$3" >"$3/prefix" ;;
    *"import sys; print(sys.prefix)"*) cat "$(dirname "$me")/../prefix" ;;
    *"pip "*"--requirement"*) [[ ! -e no-network ]] || exit 1 ;;
    *"pip "*"--editable"*)
        printf '#!/bin/bash\\n' >"$(dirname "$me")/linerate"
        chmod +x "$(dirname "$me")/linerate" ;;
esac
"""


@pytest.fixture
def checkout(machine: Machine) -> Machine:
    machine.link("chmod", "cp", "mkdir")
    machine.stub("python3.11", PYTHON)
    for name in ("requirements.txt", "requirements-dev.txt", "pyproject.toml"):
        (machine.checkout / name).write_text(f"# {name}\n")
    return machine


def set_up(machine: Machine) -> tuple[int, int]:
    """Runs it; says how often it made an environment and called pip."""
    machine.log.unlink(missing_ok=True)
    result = machine.run("scripts/setup-python")
    assert result.returncode == 0, result.stderr
    calls = machine.calls("python3.11")
    return (
        sum("-m venv" in call for call in calls),
        sum("-m pip" in call for call in calls),
    )


def test_the_second_time_there_is_nothing_to_do(checkout: Machine) -> None:
    assert set_up(checkout) == (1, 2)
    assert (checkout.checkout / ".venv" / "bin" / "linerate").exists()
    assert set_up(checkout) == (0, 0)
    assert checkout.run("scripts/setup-python").stdout == ""


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "pyproject.toml"])
def test_a_change_of_what_it_was_made_from_updates_it(checkout: Machine, name: str) -> None:
    set_up(checkout)
    (checkout.checkout / name).write_text("# something else\n")
    assert set_up(checkout) == (0, 2)


def test_a_checkout_that_moved_gets_a_new_environment(checkout: Machine) -> None:
    set_up(checkout)
    checkout.checkout = checkout.checkout.rename(checkout.checkout.with_name("moved"))
    assert set_up(checkout) == (1, 2)


def test_a_lost_command_is_brought_back(checkout: Machine) -> None:
    set_up(checkout)
    (checkout.checkout / ".venv" / "bin" / "linerate").unlink()
    assert set_up(checkout) == (0, 2)


def test_a_failed_install_is_tried_again(checkout: Machine) -> None:
    (checkout.checkout / "no-network").touch()
    result = checkout.run("scripts/setup-python")
    assert result.returncode == 1
    assert "pip could not install" in result.stderr
    (checkout.checkout / "no-network").unlink()
    assert set_up(checkout) == (0, 2)


def test_no_python_is_said_with_the_next_step(checkout: Machine) -> None:
    checkout.stub("python3.11", "exit 1")
    result = checkout.run("scripts/setup-python")
    assert result.returncode == 1
    assert "make setup" in result.stderr
    assert not (checkout.checkout / ".venv").exists()


def test_a_chosen_python_is_the_only_one_tried(checkout: Machine) -> None:
    result = checkout.run("scripts/setup-python", PYTHON="python3.99")
    assert result.returncode == 1
