# SPDX-License-Identifier: BSD-3-Clause
"""Clients of older releases of the model configure, send, capture and read figures.

Their checks of versions are on. Each release of snappi has a virtual environment below `build/`,
made the first time, with its own wheel; its libraries are those of this environment. gosnappi is
built where Go is installed.
"""

from __future__ import annotations

import json
import shutil
import site
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from harness import Generator

from linerate.host.builds.make import locked
from linerate.host.places import build_directory

pytest_plugins = ["rig"]

CLIENTS = Path(__file__).parent / "clients"
PINNED = dict(
    line.split(maxsplit=1)
    for line in (CLIENTS / "releases.txt").read_text().splitlines()
    if not line.startswith("#")
)
OWN = "snappi==1.62.0"  # of this environment
FRAMES, SIZE = 500, 128
# On a busy machine. gosnappi is one package of half a million lines.
INSTALL_S, BUILD_S, RUN_S = 240.0, 1800.0, 60.0


def environment(release: str) -> Path:
    """The Python of an environment that has this release; installed unless it is there."""
    if release == OWN:
        return Path(sys.executable)
    place = build_directory() / "clients" / release.replace("==", "-")
    python = place / "bin" / "python"
    stamp = place / "made-from"
    with locked(place.parent, release):
        if not (stamp.is_file() and stamp.read_text() == f"{sys.prefix} {PINNED[release]}"):
            shutil.rmtree(place, ignore_errors=True)
            _make(place, python, release)
            stamp.write_text(f"{sys.prefix} {PINNED[release]}")
    return python


def _make(place: Path, python: Path, release: str) -> None:
    made = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(made, timeout=INSTALL_S, capture_output=True, check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pinned:
        pinned.write(f"{release} {PINNED[release]}\n")
        pinned.flush()
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        pip += ["--python", str(python), "install", "--quiet", "--no-deps", "--no-compile"]
        done = subprocess.run(
            [*pip, "--require-hashes", "--requirement", pinned.name],
            timeout=INSTALL_S,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        pytest.skip(f"{release} could not be installed: {done.stderr.strip()[-300:]}")
    (packages,) = place.glob("lib/python*/site-packages")
    # Behind its own: snappi is the release's, all else as here.
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()) + "\n")


def check(told: dict[str, Any], release: str) -> None:
    """All figures are there, and right."""
    # 1.33.4 is a client of the model's 1.33.0.
    assert told["release"].split(".")[:2] == release.split(".")[:2]
    flow, port = told["flow"], told["port"]
    assert (flow["transmit"], int(flow["frames_tx"]), int(flow["frames_rx"])) == (
        "stopped",
        FRAMES,
        FRAMES,
    )
    assert (int(flow["bytes_rx"]), flow["loss"]) == (FRAMES * SIZE, 0)
    # None if all frames were disturbed, as on a busy machine.
    assert flow.get("latency", {}).get("minimum_ns", 1) > 0
    assert int(port["frames_rx"]) == FRAMES
    ignored = {warning.partition(": ")[0] for warning in told["warnings"]}
    assert {"options.port_options.location_preemption", "layer1[0].auto_negotiate"} <= ignored
    assert told["same"], "the configuration came back changed"
    # Each frame with its FCS.
    assert told["captured"] > FRAMES * SIZE


# The oldest and the newest first; those between them take as long and rarely tell more.
BETWEEN = [pytest.param(each, marks=pytest.mark.second_tier) for each in list(PINNED)[1:]]


@pytest.mark.parametrize("release", [next(iter(PINNED)), OWN, *BETWEEN])
def test_snappi(running: Generator, release: str) -> None:
    python = environment(release)
    done = subprocess.run(
        [str(python), str(CLIENTS / "by_snappi.py"), running.url],
        timeout=RUN_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # Old releases print warnings there, too.
    told = json.loads(done.stdout.splitlines()[-1])
    check(told, release.partition("==")[2])
    if release != "snappi==1.3.0":  # whose ports have no such column
        assert int(told["port"]["last_change"]) > 0


@pytest.mark.second_tier
@pytest.mark.parametrize("release", ["1.58.0", "1.61.0"])
def test_gosnappi(running: Generator, release: str) -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    program = built(release)
    done = subprocess.run(
        [str(program), running.url], timeout=RUN_S, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    check(told, release)
    assert told["port"]["last_change"] > 0


def built(release: str) -> Path:
    """The client with this release of gosnappi, compiled unless it is there."""
    source = CLIENTS / "gosnappi"
    place = build_directory() / "clients" / f"gosnappi-{release}"
    program, stamp = place / "by-gosnappi", place / "made-from"
    files = {
        "main.go": source / "main.go",
        "go.mod": source / f"{release}.mod",
        "go.sum": source / f"{release}.sum",
    }
    wanted = "\n".join(path.read_text() for path in files.values())
    with locked(place.parent, f"gosnappi {release}"):
        if stamp.is_file() and stamp.read_text() == wanted:
            return program
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, path in files.items():
            shutil.copy(path, place / name)
        done = subprocess.run(
            ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", program.name, "."],
            cwd=place,
            timeout=BUILD_S,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"gosnappi {release} could not be built: {done.stderr.strip()[-300:]}")
        stamp.write_text(wanted)
    return program
