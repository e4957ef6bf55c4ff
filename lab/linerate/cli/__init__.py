# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate`."""

from linerate.cli.entry import main as main
