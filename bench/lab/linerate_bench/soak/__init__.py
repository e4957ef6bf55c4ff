# SPDX-License-Identifier: BSD-3-Clause
"""Promises that are counted: frames that are not lost, programs that leave nothing behind.

`make soak` runs parts in turns and appends what each turn counted to a file, so that hours add up
over days. docs/reliability.md says what is promised and what was counted.
"""
