# SPDX-License-Identifier: BSD-3-Clause
"""`linerate run EXPERIMENT`: the options of each experiment, and what they come to.

A module for each. What takes long to import is imported by a command when it is called.
"""

from __future__ import annotations

import typer

from linerate.cli.run_commands.cloud import cloud
from linerate.cli.run_commands.graph import graph
from linerate.cli.run_commands.l3fwd import l3fwd
from linerate.cli.run_commands.latency import latency
from linerate.cli.run_commands.overload import overload
from linerate.cli.run_commands.paths import paths
from linerate.cli.run_commands.rfc2544 import rfc2544

run_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run an experiment.")
for command in (overload, paths, rfc2544, latency, graph, l3fwd, cloud):
    run_app.command()(command)
