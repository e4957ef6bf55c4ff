# SPDX-License-Identifier: BSD-3-Clause
"""The test setup of a block: the open link and, if the link has one, the sender.

Lifecycle: a context manager. The sender is started on first use and lives for the block, so that
all arms of a block have the same one; after it has died, link and sender are made anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from linerate.links import Link, LinkContext, Wire
from linerate.traffic.sender import Sender


class LinkSetup:
    """The shared setup of the trials of one block."""

    def __init__(
        self, link: Link, context: LinkContext, start: Callable[[Wire], Sender] | None = None
    ) -> None:
        """Prepare. `start` makes the sender at the wire's other end; None if the link has none."""
        self.link = link
        self.context = context
        # Numbers the starts of programs on it, from 0.
        self.slots = itertools.count()
        self._start = start
        self._opened: AbstractContextManager[Wire] | None = None
        self._wire: Wire | None = None
        self._sender: Sender | None = None

    def ready(self) -> tuple[Wire, Sender | None]:
        """Return wire and sender for the next trial; raises `TrialError` if the sender does not
        start.
        """
        if self._sender and not self._sender.running:
            self.close()
        if self._wire is None:
            opening = self.link.open(self.context)
            self._wire = opening.__enter__()
            self._opened = opening  # not before: what did not open must not be shut
        if self._start and self._sender is None:
            self._sender = self._start(self._wire)
        return self._wire, self._sender

    @property
    def kernel_threads(self) -> set[int]:
        """The pids of the kernel threads that receive for both ends; empty while the link is
        closed.
        """
        return {thread.pid for thread in self._wire.threads} if self._wire else set()

    def resize(self, size: int) -> None:
        """Set the frame size of the next trials, on a link that is made in the same way for all
        sizes.
        """
        self.context = replace(self.context, size=size)

    def close(self) -> None:
        sender, self._sender = self._sender, None
        opened, self._opened, self._wire = self._opened, None, None
        try:
            if sender:
                sender.close()
        finally:
            if opened:
                opened.__exit__(None, None, None)

    def __enter__(self) -> LinkSetup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
