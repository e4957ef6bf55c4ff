# SPDX-License-Identifier: BSD-3-Clause
"""What labs make or change outside their processes, and how whoever comes next undoes it."""
