# SPDX-License-Identifier: BSD-3-Clause
"""Records: whole lines, absent figures, and the schema in the repository."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import by_schema
import jsonschema
import pytest
from conftest import probed, simulated_trial

from linerate.cli import schemas
from linerate.host.errors import OutputError
from linerate.records import trial as records
from linerate.records.cells import Cell
from linerate.records.trial import RecordWriter, Trial


def example(link: str = "memif") -> Trial:
    return simulated_trial(
        random.Random(1), "rust-l2fwd", "rust-l2fwd", Cell(link, 64, 1), block=0, position=0
    )


@pytest.mark.parametrize("name", list(schemas.FILES))
def test_schema_files_match_the_classes(name: str) -> None:
    expected = json.loads(schemas.text(name))
    assert schemas.stored(name) == expected, "run: python -m linerate.cli.schemas"
    jsonschema.Draft202012Validator.check_schema(expected)


def test_a_line_validates_and_comes_back() -> None:
    line = records.dump(example())
    assert "\n" not in line
    by_schema.check(json.loads(line), "trial-1.json")
    assert Trial.model_validate_json(line) == example()


def test_absent_is_absent() -> None:
    data = json.loads(records.dump(example("null")))
    for name in ("attempted", "received", "refused", "unattributed", "invalid", "late"):
        assert name not in data


def test_figures() -> None:
    trial = example("null")
    assert trial.forwarder_rx is not None
    assert trial.tsc_hz is not None
    assert trial.window_cycles_per_packet == pytest.approx(trial.tsc_hz * 0.3 / trial.forwarder_rx)
    assert (trial.average_rx_burst, trial.busy_cycles_per_packet) == (None, None)
    seen = Trial.model_validate_json(records.dump(probed(trial)))
    assert seen.average_rx_burst == pytest.approx(32, rel=0.001)
    assert seen.busy_cycles_per_packet == pytest.approx(40.1, rel=0.001)


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    whole = records.dump(example())
    path.write_text(whole + "\n" + whole[:50])
    assert len(records.read(path)) == 1
    writer = RecordWriter(path)
    writer.append(example())
    writer.close()
    assert [trial.valid for trial in records.read(path)] == [True, True]
    assert path.read_text() == (whole + "\n") * 2


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """The file may not grow past two lines and a half: the third line is refused, not cut."""
    path = tmp_path / "records.jsonl"
    limit = int(2.5 * len(records.dump(example())))
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_records import example
from linerate.host.errors import OutputError
from linerate.records.trial import RecordWriter
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
writer = RecordWriter(Path({str(path)!r}))
for _ in range(3):
    try:
        writer.append(example())
    except OutputError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "cannot write" in done.stdout
    assert "free some space" in done.stdout
    assert path.read_text().endswith("\n")
    assert len(records.read(path)) == 2


def test_unwritable(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        RecordWriter(tmp_path / "absent" / "records.jsonl")
