# SPDX-License-Identifier: BSD-3-Clause
"""The design of a cloud run: factors, levels, designs from TOML, the plan and its time."""
