# SPDX-License-Identifier: BSD-3-Clause
"""The engine, which runs the plan of any experiment step by step."""
