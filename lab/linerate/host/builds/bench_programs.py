# SPDX-License-Identifier: BSD-3-Clause
"""Programs of `bench/`, built by their own Makefiles when they are first needed.

Each lies in a directory named by a digest of its sources, compiler, flags and DPDK, so that none of
another state is ever taken for it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
from pathlib import Path

from linerate.host.builds.make import locked, make
from linerate.host.builds.plugins import plugin_directory
from linerate.host.errors import MissingError
from linerate.host.machine import dpdk_version, first_line
from linerate.host.places import build_directory, project_root

COMPILER = "cc"
# valgrind knows no AVX-512, and the driver is loaded into what it counts.
PLUGIN_FLAGS = "-march=native" + (" -mno-avx512f" if platform.machine() == "x86_64" else "")


@functools.cache
def _build(name: str, product: str, place: Path, cflags: str, compiler: str = COMPILER) -> Path:
    """Make `product` of `bench/NAME` below `place`, once for each state of what it is made of."""
    source = project_root() / "bench" / name
    if not (source / "Makefile").is_file():
        raise MissingError(f"{source} is not there", "run the lab from a checkout")
    digest = hashlib.sha256()
    for path in sorted(each for each in source.iterdir() if each.is_file()):
        digest.update(path.read_bytes())
    made_with = [first_line(compiler, "--version"), dpdk_version(), cflags]
    digest.update(json.dumps(made_with).encode())
    out = place / f"{name.replace('/', '-')}-{digest.hexdigest()[:16]}"
    with locked(out, f"bench/{name}"):
        make(f"bench/{name}", source, [f"OUT={out}", f"CC={compiler}", f"CFLAGS={cflags}"])
    return out / product


def bench_program(name: str, product: str) -> Path:
    return _build(name, product, build_directory(), "")


def built_library(name: str, product: str, compiler: str, cflags: str) -> Path:
    """The same program part by several compilers and flags, each in a place of its own."""
    return _build(name, product, build_directory(), cflags, compiler)


def nearfree_obstacle() -> str | None:
    """Why the driver cannot be had here: DPDK's driver interface changes with every release."""
    version = dpdk_version()
    if (version or "").startswith("22.11"):
        return None
    return f"the driver of bench/nearfree is for DPDK 22.11, not {version}"


def nearfree_plugin() -> Path:
    return _build("nearfree", "librte_net_nearfree.so", plugin_directory(), PLUGIN_FLAGS)
