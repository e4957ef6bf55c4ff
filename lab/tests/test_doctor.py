# SPDX-License-Identifier: BSD-3-Clause
"""The doctor: every finding says what it means, and how to fix it if that is possible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from linerate.cli import doctor
from linerate.cli.doctor import Finding, as_json, can_run, examine
from linerate.host.builds import c_examples


def test_it_looks_at_everything() -> None:
    findings = examine()
    areas = {finding.area for finding in findings}
    assert areas >= {
        "dpdk",
        "build",
        "python",
        "cpu",
        "memory",
        "privileges",
        "kvm",
        "xdp",
        "tenants",
        "leftovers",
    }
    names = {finding.name for finding in findings}
    assert names >= {
        "CPUs",
        "leases",
        "TSC",
        "turbo",
        "frequency governor",
        "hugepages",
        "NUMA",
        "bpffs",
        "containers",
    }
    for finding in findings:
        assert finding.meaning
        assert finding.state == "ok" or finding.mend or finding.name == "TSC"


def test_json() -> None:
    data = json.loads(as_json(examine()))
    assert isinstance(data["can_run_demo"], bool)
    assert {"area", "name", "state", "detail", "meaning", "mend", "needed"} == set(
        data["findings"][0]
    )


def test_only_what_is_needed_stops_the_demo() -> None:
    needed = Finding("dpdk", "libraries", "missing", "", "x", "apt", needed=True)
    optional = Finding("kvm", "/dev/kvm", "missing", "", "x")
    assert can_run([optional])
    assert not can_run([needed, optional])


def test_missing_examples_tell_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(c_examples, "PLACES", (tmp_path,))
    finding = next(f for f in examine() if f.name == "C examples")
    assert finding.state == "missing"
    assert finding.mend is not None
    assert "dpdk-doc" in finding.mend


def test_show_prints_the_mending_command() -> None:
    console = Console(record=True, width=100, file=None)
    with console.capture() as captured:
        doctor.show([Finding("dpdk", "x", "missing", "not found", "why", "do this")], console)
    assert "do this" in captured.get()


def test_a_probe_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Finding]:
        raise OSError("boom")

    monkeypatch.setattr(doctor, "SECTIONS", (broken,))
    assert [finding.detail for finding in examine()] == ["boom"]
