# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are all started before the first is measured: they share a core, or take turns."""
