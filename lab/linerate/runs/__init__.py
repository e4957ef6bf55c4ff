# SPDX-License-Identifier: BSD-3-Clause
"""A run of any experiment: begun, resumed, merged, compared."""
