# SPDX-License-Identifier: BSD-3-Clause
"""Senders of frames: our generator and others, by the Open Traffic Generator API; and the books of
a trial.
"""
