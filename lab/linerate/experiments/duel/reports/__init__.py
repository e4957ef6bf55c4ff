# SPDX-License-Identifier: BSD-3-Clause
"""Duels as files: a page, JUnit's XML, and text for a pull request."""
