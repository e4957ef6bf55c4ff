# SPDX-License-Identifier: BSD-3-Clause
"""TRex profiles as configurations of the Open Traffic Generator (OTG): `linerate trex-convert`.

`profile` runs the profile in a process of its own, which hands over what the profile describes;
everything else here reads that description and trusts nothing in it.
"""
