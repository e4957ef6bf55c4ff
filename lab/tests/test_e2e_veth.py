# SPDX-License-Identifier: BSD-3-Clause
"""Real runs over the kernel's interfaces: every frame is received or named, without DPDK too."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import need_veth
from test_e2e import LATE, STARVED, Run, check_files, disturbed, need, runtime

from linerate.host.process import NAMESPACES

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# Low enough for any machine to send on time.
RATE = "5000"
KERNEL = [
    *(f"af-packet-{io}" for io in ("read-write", "mmsg", "mmap")),
    *("af-xdp", "af-xdp-spin", "xdp-redirect", "xdp-redirect-generic"),
    *("xdp-tx", "xdp-fib", "kernel-bridge", "kernel-route"),
]
# The kernel accepts what they send, and checks later whether an interface has room.
UNTOLD = ("af-xdp", "af-xdp-spin", "xdp-redirect-generic")


@pytest.mark.second_tier
def test_forwarders_of_both_kinds_close_their_books(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator", "af-packet-fwd", "af-xdp-fwd", "xdp-fwd")
    need_veth()
    run = Run(
        runtime, tmp_path / "run", "--link", "veth", "--blocks", "1", "--no-probe", "--keep-going",
        "--forwarders", ",".join(["rust-l2fwd", "testpmd-af-xdp", *KERNEL]), "--line-rate", RATE,
    )  # fmt: skip
    code, _, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    trials = run.trials()
    assert {trial.forwarder for trial in trials} >= {"rust-l2fwd", *KERNEL}
    for trial in trials:
        assert trial.valid or disturbed(trial, LATE, STARVED), (trial.forwarder, trial.invalid)
        assert (trial.frames.forwarder_rx or 0) > 100
        # Frames that neither program received are accounted for, also in a flood.
        assert trial.frames.accepted
        assert trial.frames.unattributed == 0, (
            trial.forwarder,
            trial.request.load,
            trial.frames.link_drops,
        )
        if trial.forwarder in KERNEL:
            # They report what they had no room for, and what they did not send.
            assert "forwarder not received" not in trial.frames.link_drops, trial.frames.link_drops
            if trial.forwarder not in UNTOLD:
                assert "forwarder not sent" not in trial.frames.link_drops, trial.frames.link_drops
    # Others may test at the same time.
    assert not list(NAMESPACES.glob(f"linerate-{run.lab.pid}-*"))


# It takes between half a minute and two, depending on the machine's other work.
@pytest.mark.second_tier
def test_a_generator_on_af_xdp_reaches_forwarders_of_all_kinds(
    tmp_path: Path, runtime: Path
) -> None:
    """Its program is the one that XDP_TX needs at that end."""
    need("l2fwd", "generator", "af-packet-fwd", "xdp-fwd")
    need_veth()
    run = Run(
        runtime, tmp_path / "run", "--link", "veth-af-xdp", "--blocks", "1", "--no-probe",
        "--keep-going", "--forwarders", "rust-l2fwd,af-packet-mmsg,xdp-tx,kernel-bridge",
        "--line-rate", RATE,
    )  # fmt: skip
    code, _, errors = run.finish()
    assert code == 0, errors
    trials = run.trials()
    assert {trial.forwarder for trial in trials} >= {"xdp-tx", "kernel-bridge"}
    for trial in trials:
        assert trial.valid or disturbed(trial, LATE, STARVED), (trial.forwarder, trial.invalid)
        assert (trial.frames.forwarder_rx or 0) > 100
        assert trial.frames.unattributed == 0, (
            trial.forwarder,
            trial.request.load,
            trial.frames.link_drops,
        )
