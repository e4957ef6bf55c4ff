# SPDX-License-Identifier: BSD-3-Clause
"""The page of an rfc2544 run."""
