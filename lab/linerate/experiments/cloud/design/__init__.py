# SPDX-License-Identifier: BSD-3-Clause
"""What a cloud run measures: factors, levels, designs from TOML, the plan and its time."""
