# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `rfc2544`: what can each forwarder do without loss, and how does it behave there?

The unit is one search of one forwarder: the process is started, every test is made with it, and it
ends. Units are interleaved in randomised blocks, the baseline twice, and the best reference peer
with them, so that compared units meet the same state of the machine.
"""
