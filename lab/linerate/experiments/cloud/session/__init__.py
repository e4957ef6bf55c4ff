# SPDX-License-Identifier: BSD-3-Clause
"""One session of a cloud run: cells, tenants beside the forwarder, readings of both."""
