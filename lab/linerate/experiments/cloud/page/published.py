# SPDX-License-Identifier: BSD-3-Clause
"""The published study, as far as it is known. Shown as published, never mixed with our figures."""

from __future__ import annotations

SOURCE = (
    "Freitas, Oliveira Filho, do Carmo, Sadok and Kelner, Research, Society and Development "
    "11(12), 2022, doi 10.33448/rsd-v11i12.34200"
)
CONCLUSIONS = (
    "The effect of neighbours depends on packet size and on the kind of load; the worst is network "
    "load with small packets, where throughput falls and loss rises. Closed with nonparametric "
    "hypothesis tests."
)
UNKNOWN = (
    "Only its abstract is at hand: no test bed, level, number of repetitions or alpha is known, "
    "and no figure. The design, the levels and every number on this page are ours."
)
