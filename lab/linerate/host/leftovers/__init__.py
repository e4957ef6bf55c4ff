# SPDX-License-Identifier: BSD-3-Clause
"""Everything that labs make or change outside their processes, and how the next lab undoes it."""
