# SPDX-License-Identifier: BSD-3-Clause
"""docs/safety.md is true: unsafe code is where it says, as much as it says, under its rules."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
UNSAFE = {
    "crates/dpdk",
    "crates/dpdk-sys",
    "crates/graph",
    "crates/forwarders-kernel",
    "crates/measure",
    "crates/probe",
}


def surface(path: Path) -> tuple[int, int, int]:
    """Return the unsafe blocks, functions and impls of a Rust file."""
    code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    patterns = (
        r"\bunsafe\s*\{",
        r'\bunsafe\s+(?:extern\s+"C"\s+)?fn\s+\w',
        r"\bunsafe\s+impl\b",
    )
    blocks, functions, impls = (len(re.findall(pattern, code)) for pattern in patterns)
    return blocks, functions, impls


def test_the_unsafe_surface_is_what_the_page_lists() -> None:
    row = re.compile(r"^\| `(crates/[^`]+\.rs)` \| (\d+) \| (\d+) \| (\d+) \| \S", re.MULTILINE)
    listed = {
        path: (int(blocks), int(functions), int(impls))
        for path, blocks, functions, impls in row.findall(TEXT)
    }
    found = {
        str(path.relative_to(ROOT)): counts
        for path in ROOT.glob("crates/*/src/**/*.rs")
        if any(counts := surface(path))
    }
    assert listed
    assert listed == found


def test_other_crates_forbid_unsafe_code() -> None:
    roots = [
        path
        for pattern in ("src/lib.rs", "src/main.rs", "src/bin/*.rs")
        for path in ROOT.glob(f"crates/*/{pattern}")
        if str(path.relative_to(ROOT).parents[-3]) not in UNSAFE
    ]
    assert len(roots) > 3
    assert not [root for root in roots if "#![forbid(unsafe_code)]" not in root.read_text()]


def test_the_rules_for_unsafe_code_are_denied_in_every_crate() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["lints"]
    assert workspace["rust"]["unsafe_op_in_unsafe_fn"] == "deny"
    assert workspace["clippy"]["undocumented_unsafe_blocks"] == "deny"
    assert workspace["clippy"]["missing_safety_doc"] == "deny"
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text())["lints"] == {"workspace": True}, manifest
    exceptions = [
        str(path.relative_to(ROOT))
        for path in ROOT.glob("crates/*/src/**/*.rs")
        if re.search(r"undocumented_unsafe_blocks|unsafe_op_in_unsafe_fn", path.read_text())
    ]
    assert exceptions == ["crates/dpdk-sys/src/lib.rs"], "bindgen's output only"


def test_what_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:crates|tests|scripts|docs)/[\w./-]+)`", TEXT))
    assert not {path for path in named if not (ROOT / path).exists()}
    holes = (ROOT / "crates/dpdk/tests/holes.rs").read_text()
    functions = set(re.findall(r"`(no_\w+)`", TEXT))
    assert functions == set(re.findall(r"^fn (no_\w+)", holes, re.MULTILINE))
    programs = ROOT / "crates/dpdk/tests/ownership"
    assert all(list(programs.glob(name)) for name in re.findall(r"`([a-z_*]+\.rs)`", TEXT))


def test_every_row_about_drivers_has_its_test() -> None:
    section = TEXT.split("## Drivers\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| net_")]
    assert len(rows) > 20
    named = {path.stem for path in (ROOT / "crates/dpdk/src/port/driver").glob("*.rs")} - {"mod"}
    assert named == {
        name.removeprefix("net_") for row in rows for name in re.findall(r"net_\w+", row[0])
    } - {"bonding", "failsafe"}
    for driver, _, _, here, tested in rows:
        found = re.fullmatch(r" `(\w+)` in `([\w./]+)` ", tested)
        if found is None:
            # What nobody can try is said so.
            assert tested.startswith(" none"), (driver, tested)
            continue
        function, path = found.groups()
        keyword = "def" if path.endswith(".py") else "fn"
        assert f"{keyword} {function}" in (ROOT / path).read_text(), (driver, tested)
        assert here.strip(), driver
