# SPDX-License-Identifier: BSD-3-Clause
"""`impair` reports over telemetry what it did, and reports what is wrong with its options."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from linerate.host.errors import UnknownCommandError
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.telemetry.client import ask_when_known, connect, socket_path

EAL = ["--no-pci", "--no-huge", "--no-shconf", "-m", "256"]
TIMEOUT_S = 15.0


def test_counts_are_told_while_it_runs_and_close_at_the_end() -> None:
    with RunDirectory() as run:
        prefix = run.new_prefix("impair")
        argv = [str(rust_binary("impair")), *EAL, "--file-prefix", prefix]
        argv += ["--vdev", "net_null0", "--", "--drop", "4", "--reorder", "3:2", "--delay", "50"]
        command = Command("impair", tuple(argv), (0,))
        with (
            Child(command, run) as child,
            connect(socket_path(run.path, prefix), TIMEOUT_S, child.check) as telemetry,
        ):
            told = ask_when_known(telemetry, "/linerate/impair", TIMEOUT_S, child.check)
            while told["received"] < 100_000:
                child.check()
                told = telemetry.ask("/linerate/impair")
            # Its lcore counts on while this is read: no sum is exact, but no count is far off.
            assert told["dropped"] == pytest.approx(told["received"] / 4, rel=0.1)
            path = telemetry.ask("/linerate/impair,0")
            assert (path.pop("rx_port"), path.pop("tx_port")) == (0, 0)
            assert path["received"] >= told["received"]
            assert set(told) == set(path)
            for unknown in ("1", "x"):
                with pytest.raises(UnknownCommandError):
                    telemetry.ask(f"/linerate/impair,{unknown}")
            os.kill(child.pid, signal.SIGTERM)
            assert child.wait(TIMEOUT_S)
            lines = re.findall(r"^(\w+): (\d+)$", child.output(), re.MULTILINE)
            counts = {name: int(count) for name, count in lines}
    gone = counts["dropped"] + counts["tx_refused"] + counts["discarded_at_stop"]
    assert counts["received"] + counts["duplicated"] == counts["sent"] + gone
    assert counts["dropped_on_purpose"] == counts["received"] // 4


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    argv = [str(rust_binary("impair")), *EAL, "--file-prefix", "impair", "--vdev", "net_null0"]
    for options, words in (
        (["--drop", "0"], "--drop takes N, 1 to 4294967295"),
        (["--reorder", "5:0"], "--reorder takes N or N:DISTANCE"),
        (["-p", "6"], "-p names port 1, which does not exist"),
    ):
        done = subprocess.run(
            [*argv, "--", *options],
            env={"RUNTIME_DIRECTORY": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 1
        assert "impair: " in done.stderr
        assert words in done.stderr
