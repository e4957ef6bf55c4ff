# SPDX-License-Identifier: BSD-3-Clause
"""A real run of experiment `paths`: two ways to access packets on a link of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import need_veth
from test_e2e import LATE, STARVED, Run, check_files, disturbed, need, runtime

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
ARMS = ("rust-l2fwd", "af-packet-mmap")


@pytest.mark.second_tier
def test_two_paths_on_one_wire(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator", "af-packet-fwd")
    need_veth()
    run = Run(
        runtime, tmp_path / "run", "--forwarders", ",".join(ARMS), "--blocks", "1",
        "--line-rate", "20000", "--no-probe", "--keep-going", experiment="paths",
    )  # fmt: skip
    code, output, errors = run.finish()
    assert code == 0, errors
    assert not list(Path("/run/netns").glob(f"linerate-{run.lab.pid}-*"))
    check_files(run)
    trials = run.trials()
    assert {trial.forwarder for trial in trials} == set(ARMS)
    assert {trial.request.pps for trial in trials} == {None, 5000.0, 10000.0, 15000.0}
    for trial in trials:
        assert trial.valid or disturbed(trial, LATE, STARVED), (trial.forwarder, trial.invalid)
        assert trial.frames.cpu_time
        cost = {each.of: each for each in trial.frames.cpu_time}
        # Kernel threads that receive for a forwarder without an XDP program also run on its core.
        assert cost["napi"].seconds > 0, trial.forwarder
        assert cost["napi"].cpus == cost["process"].cpus == cost["softirq"].cpus
        # CPU time is counted in ticks of 10 ms; few frames may take none.
        assert cost["process"].seconds > 0 or trial.request.pps
        if trial.request.load == "paced" and trial.valid:
            assert trial.frames.latency
            assert trial.frames.latency.count > 0
    summary = run.summary()
    assert summary["cells"][0]["common_pps"] == 20000
    assert [band["path"] for band in summary["bands"]] == [
        "XDP_TX", "XDP_REDIRECT", "Linux forwarding",
    ]  # fmt: skip
    assert "published: XDP_REDIRECT 0.39 of DPDK" in output
