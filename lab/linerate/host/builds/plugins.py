# SPDX-License-Identifier: BSD-3-Clause
"""Plugins for EAL's `-d` option: where they may be stored, and the probe."""

from __future__ import annotations

import functools
import hashlib
import shutil
import stat
import tempfile
from pathlib import Path

from linerate.host.builds.make import locked
from linerate.host.errors import LabError
from linerate.host.places import build_directory, rust_binary, user_cache

PROBE = "liblinerate_probe.so"


def writable_by_all(path: Path) -> Path | None:
    """Return the first of a file or directory and its parents that everybody may write to, or None.

    EAL (`verify_perms` in eal_common_options.c) then refuses a plugin, after following symbolic
    links, even if the directory has the sticky bit. A path that does not exist yet counts as safe:
    it would be made with better permissions.
    """
    existing = path.resolve()
    while not existing.exists():
        existing = existing.parent
    every = (existing, *existing.parents)
    return next((each for each in every if each.stat().st_mode & stat.S_IWOTH), None)


def plugin_directory() -> Path:
    """Return `build/` of the checkout, or the user's cache where EAL would refuse plugins in
    `build/`.
    """
    places = tuple(dict.fromkeys((build_directory(), user_cache())))
    for place in places:
        if writable_by_all(place) is None:
            return place
    raise LabError(
        f"EAL would refuse a plugin in {' or '.join(map(str, places))}: "
        "everybody may write to a directory above",
        "set XDG_CACHE_HOME to a directory of your own",
    )


@functools.cache
def probe_plugin() -> Path:
    """Return the path of the probe that `make build` made, or of a copy where EAL refuses that
    path.
    """
    built = rust_binary(PROBE)
    if writable_by_all(built) is None:
        return built
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    out = plugin_directory() / f"probe-{digest[:16]}"
    with locked(out, "a copy of the probe"):
        if not (out / PROBE).is_file():
            with tempfile.TemporaryDirectory(dir=out) as work:
                shutil.copy2(built, work)
                (Path(work) / PROBE).rename(out / PROBE)
    return out / PROBE
