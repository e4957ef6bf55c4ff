# SPDX-License-Identifier: BSD-3-Clause
"""Placement: which forwarder carries a required rate, on how many cores? Answered from records
only.
"""
