# SPDX-License-Identifier: BSD-3-Clause
"""Duels: is one program slower than another? Both run on one core until that is answered."""
