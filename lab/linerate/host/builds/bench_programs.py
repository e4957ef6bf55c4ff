# SPDX-License-Identifier: BSD-3-Clause
"""Programs of `bench/` and drivers of `drivers/`, built by their own Makefiles when first needed.

Each build lies in a directory named by a digest of its sources, compiler, flags and DPDK, so that a
build of another state is never used.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from pathlib import Path

from linerate.host.builds.make import announce, locked, make
from linerate.host.builds.plugins import plugin_directory
from linerate.host.errors import MissingError
from linerate.host.machine import dpdk_version, first_line
from linerate.host.places import build_directory, project_root

COMPILER = "cc"
# The releases whose driver interface is in drivers/nearfree/driver_abi.h.
RELEASES = ("22.11", "24.11", "25.11")
# valgrind does not know AVX-512, and loads the driver, too.
PLUGIN_FLAGS = "-march=native" + (" -mno-avx512f" if platform.machine() == "x86_64" else "")


@functools.cache
def _build(name: str, product: str, place: Path, cflags: str, compiler: str = COMPILER) -> Path:
    """Make `product` of the folder `name` below `place`, once for each state of its sources."""
    source = project_root() / name
    if not (source / "Makefile").is_file():
        raise MissingError(f"{source} is not there", "run the lab from a checkout")
    digest = hashlib.sha256()
    for path in sorted(each for each in source.iterdir() if each.is_file()):
        digest.update(path.read_bytes())
    made_with = [first_line(compiler, "--version"), dpdk_version(), cflags]
    digest.update(json.dumps(made_with).encode())
    kind = name.partition("/")[2].replace("/", "-")
    out = place / f"{kind}-{digest.hexdigest()[:16]}"
    with locked(out, name):
        if not (out / product).is_file():
            announce(name, compiler, cflags)
        make(name, source, [f"OUT={out}", f"CC={compiler}", f"CFLAGS={cflags}"])
    return out / product


def bench_program(name: str, product: str) -> Path:
    return _build(f"bench/{name}", product, build_directory(), "")


def built_library(name: str, product: str, compiler: str, cflags: str) -> Path:
    """Build the same library with this compiler and these flags, in a directory of its own."""
    return _build(f"bench/{name}", product, build_directory(), cflags, compiler)


def nearfree_obstacle() -> str | None:
    """Return why the driver cannot be built here: DPDK's driver interface changes with every
    release.
    """
    version = dpdk_version()
    if (version or "").startswith(RELEASES):
        return None
    return f"the driver of drivers/nearfree is for DPDK {', '.join(RELEASES)}, not {version}"


def nearfree_plugin() -> Path:
    return _build("drivers/nearfree", "librte_net_nearfree.so", plugin_directory(), PLUGIN_FLAGS)
