# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong in a profile."""

from __future__ import annotations

from linerate.traffic.trex.profile.lines import Lines


class ProfileError(Exception):
    """`line`: of the profile, where it was executing one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.line = Lines.here()
