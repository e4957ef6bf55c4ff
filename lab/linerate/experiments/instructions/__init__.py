# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet: why is one program slower than another? By valgrind's callgrind."""
