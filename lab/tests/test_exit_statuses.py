# SPDX-License-Identifier: BSD-3-Clause
"""The exit status is 4 if this machine cannot do something, and 2 if the request was wrong."""

from __future__ import annotations

import pytest

from linerate.experiments.paths import available as paths_here
from linerate.experiments.paths.options import PATHS
from linerate.forwarders import FORWARDERS
from linerate.host.errors import LabError, MissingError
from linerate.host.exit_status import ExitStatus
from linerate.links import eal
from linerate.links.eal import Memory


def test_hugepages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eal, "hugepage_memory_mib", lambda: 0)
    with pytest.raises(LabError, match="--hugepages yes: 0 MiB") as refused:
        Memory.choose("yes")
    assert refused.value.exit_code == ExitStatus.CANNOT_RUN


def test_a_machine_without_any_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingError("testpmd is not installed")

    for name in PATHS:
        monkeypatch.setattr(FORWARDERS[name], "prepare", missing)
    with pytest.raises(LabError, match="this machine has none of the paths") as refused:
        paths_here.available(["veth"])
    assert refused.value.exit_code == ExitStatus.CANNOT_RUN
