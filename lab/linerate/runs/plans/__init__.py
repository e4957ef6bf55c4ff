# SPDX-License-Identifier: BSD-3-Clause
"""What plans of sessions are made of: steps, and randomised blocks."""
