# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders: the programs that are compared, each a definition in TOML.

A new forwarder is a table in a file below `definitions`; docs/describe-a-forwarder.md has its keys.
"""

from __future__ import annotations

from linerate.forwarders.definition import Definition
from linerate.forwarders.engine import Forwarder
from linerate.forwarders.registry import (
    FORWARDERS,
    add,
    add_folder,
    add_from_environment,
    forwarder,
    named,
)

__all__ = [
    "FORWARDERS", "Definition", "Forwarder", "add", "add_folder", "add_from_environment",
    "forwarder", "named",
]  # fmt: skip
