# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are started before the first is measured: they share a core, or take turns."""
