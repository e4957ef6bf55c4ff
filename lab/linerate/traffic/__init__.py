# SPDX-License-Identifier: BSD-3-Clause
"""Who sends frames: our generator and others, by the Open Traffic Generator API; and the books."""
