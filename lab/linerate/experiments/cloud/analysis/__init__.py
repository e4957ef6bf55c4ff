# SPDX-License-Identifier: BSD-3-Clause
"""From the records of a cloud run to its statements."""
