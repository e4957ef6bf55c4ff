# SPDX-License-Identifier: BSD-3-Clause
"""The experiments, a package for each; `runs.registry` names them."""
