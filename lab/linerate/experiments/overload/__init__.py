# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload`: which forwarder does more when it is flooded?"""
