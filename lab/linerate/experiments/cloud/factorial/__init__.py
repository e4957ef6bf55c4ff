# SPDX-License-Identifier: BSD-3-Clause
"""Factorial experiments in randomised complete blocks: which factors matter, and how much.

Pure functions on data; nothing here measures, reads files or prints. The data flow: `design`
(observations) -> `effects` (main effects and interactions), `whole` (does a factor matter at all),
`contrasts` (between levels), `losses` (the same where most values are 0), `trends` (over ordered
levels) -> `takeaways`, `generated` and `hypotheses` (statements with verdicts). `synthetic` makes
data whose truth is known.

The unit is an independent run: one value for each cell and block. Missing values stay missing and
are counted; nothing is imputed.
"""
