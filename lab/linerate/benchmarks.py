# SPDX-License-Identifier: BSD-3-Clause
"""Programs of `bench/`, built by their own Makefiles when they are first needed."""

from __future__ import annotations

import functools
import os
import stat
import subprocess
from pathlib import Path

from linerate.compilers import NATIVE
from linerate.errors import LabError, MissingError
from linerate.forwarders.base import project_root


def may_be_loaded_from(directory: Path) -> bool:
    """EAL loads no plugin from below a directory that everybody may write to."""
    existing = directory.resolve()
    while not existing.exists():
        existing = existing.parent
    return not any(
        stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH for path in (existing, *existing.parents)
    )


def plugin_directory() -> Path:
    """`build/` of the checkout, or the user's cache where that may not hold plugins."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = (project_root() / "build" / "nearfree", cache / "linerate" / "nearfree")
    for place in places:
        if may_be_loaded_from(place):
            return place
    raise LabError(
        f"EAL would refuse a plugin in {' or '.join(map(str, places))}: "
        "everybody may write to a directory above",
        "set XDG_CACHE_HOME to a directory of your own",
    )


@functools.cache
def build(name: str, product: str, out: Path, compiler: str = "cc", cflags: str = "") -> Path:
    """Make `product` of `bench/NAME` in `out`; make does nothing when it is up to date."""
    source = project_root() / "bench" / name
    if not (source / "Makefile").is_file():
        raise MissingError(f"{source} is not there", "run the lab from a checkout")
    environment = {key: value for key, value in os.environ.items() if key != "MAKELEVEL"}
    command = ["make", "-C", str(source), f"OUT={out}", f"CC={compiler}", f"CFLAGS={cflags}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env=environment
        )
    except FileNotFoundError as error:
        raise MissingError("make is missing", "make setup") from error
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise LabError(f"bench/{name} does not build:\n{tail}", "linerate doctor")
    return out / product


def nearfree_plugin() -> Path:
    return build("nearfree", "librte_net_nearfree.so", plugin_directory(), cflags=NATIVE)
