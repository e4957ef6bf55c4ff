# SPDX-License-Identifier: BSD-3-Clause
"""One trial: link, sender and forwarder, the window, and its CPU time."""
