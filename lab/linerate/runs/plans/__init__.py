# SPDX-License-Identifier: BSD-3-Clause
"""The parts of session plans: steps, and randomised blocks."""
