# SPDX-License-Identifier: BSD-3-Clause
"""What of a stream has no counterpart."""

from __future__ import annotations


class RefusalError(Exception):
    """`line`: of the profile, where it is another than the stream's."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
