# SPDX-License-Identifier: BSD-3-Clause
"""The lab: measures packet forwarders on the same link and says which differences are real.

A *run* is a randomised series of *trials*. A trial is one independent run of a forwarder: the
process is started, offered traffic on a link, read through DPDK telemetry, and stopped. Every trial
is one line of ``records.jsonl``; everything in ``summary.json`` and ``report.html`` is computed
from those lines.
"""

__version__ = "0.1.0"
