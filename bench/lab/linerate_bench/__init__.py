# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of the project itself: its goals, its parts beside their peers, its verdicts.

Importing this package makes the forwarders in `forwarders` known to the lab.
"""

from pathlib import Path

from linerate.forwarders import add_folder

FORWARDERS = Path(__file__).with_name("forwarders")

add_folder(FORWARDERS)
