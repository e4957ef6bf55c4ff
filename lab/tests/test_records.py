# SPDX-License-Identifier: BSD-3-Clause
"""Records: complete lines, absent figures, and the schema in the repository."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import by_schema
import jsonschema
import pytest
from conftest import probed, simulated_trial
from pydantic import ValidationError
from trials import made_trial

from linerate.cli import schemas
from linerate.host.errors import OutputError, RunError
from linerate.records import trial as records
from linerate.records.cells import Cell
from linerate.records.outcome import Outcome, Slice
from linerate.records.trial import Invalid, RecordWriter, Trial, WrongOutcomeError


def example(link: str = "memif", position: int = 0) -> Trial:
    return simulated_trial(
        random.Random(1), "rust-l2fwd", "rust-l2fwd", Cell(link, 64, 1), block=0, position=position
    )


@pytest.mark.parametrize("name", list(schemas.FILES))
def test_schema_files_match_the_classes(name: str) -> None:
    expected = json.loads(schemas.text(name))
    assert schemas.stored(name) == expected, "run: python -m linerate.cli.schemas"
    jsonschema.Draft202012Validator.check_schema(expected)


def test_a_line_validates_and_comes_back() -> None:
    line = records.dump(example())
    assert "\n" not in line
    by_schema.check(json.loads(line), "trial-2.json")
    assert records.parse(line) == example()


def test_absent_is_absent() -> None:
    data = json.loads(records.dump(example("null")))
    for name in ("attempted", "received", "refused", "unattributed", "invalid", "late"):
        assert name not in data


def test_figures() -> None:
    trial = example("null")
    assert trial.frames.forwarder_rx is not None
    assert trial.program.tsc_hz is not None
    assert trial.window_cycles_per_packet == pytest.approx(
        trial.program.tsc_hz * 0.3 / trial.frames.forwarder_rx
    )
    assert (trial.frames.average_rx_burst, trial.frames.busy_cycles_per_packet) == (None, None)
    seen = records.parse(records.dump(probed(trial)))
    assert seen.frames.average_rx_burst == pytest.approx(32, rel=0.001)
    assert seen.frames.busy_cycles_per_packet == pytest.approx(40.1, rel=0.001)


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    whole = records.dump(example())
    path.write_text(whole + "\n" + whole[:50])
    assert len(records.read(path)) == 1
    writer = RecordWriter(path)
    writer.append(example(position=1))
    writer.close()
    assert [trial.valid for trial in records.read(path)] == [True, True]
    assert path.read_text() == f"{whole}\n{records.dump(example(position=1))}\n"


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
for position in range(3):
    try:
        writer.append(example(position=position))
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


# -- outcomes ------------------------------------------------------------------------------------


class Drinks(Outcome):
    """An outcome of an experiment outside of the lab."""

    kind: str = "drinks"
    cups: int


def test_an_experiment_owns_its_outcome() -> None:
    trial = made_trial(outcome=Drinks(cups=3))
    line = records.dump(trial)
    assert json.loads(line)["outcome"] == {"kind": "drinks", "cups": 3}
    again = records.parse(line)
    assert again == trial
    assert isinstance(again.outcome, Drinks)
    assert not again.has_frames
    with pytest.raises(WrongOutcomeError, match="has no frames, but an outcome of kind 'drinks'"):
        _ = again.frames


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"kind": "drinks"}, "outcome.cups: Field required"),
        ({"kind": "drinks", "cups": 1, "mugs": 1}, "outcome.mugs: Extra inputs"),
        ({"kind": "teas"}, "kind 'teas' is unknown (known: "),
        ({"cups": 1}, "kind None is unknown"),
        (3, "outcome: "),
        (None, "it has neither an outcome nor a reason"),
    ],
)
def test_an_outcome_is_of_one_kind(tmp_path: Path, outcome: object, message: str) -> None:
    data = json.loads(records.dump(made_trial()))
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(data | {"outcome": outcome}) + "\n")
    with pytest.raises(RunError, match=re.escape(message)):
        records.read(path)


def test_a_kind_is_that_of_its_class() -> None:
    with pytest.raises(ValidationError, match="'cups' is not 'drinks'"):
        Drinks(kind="cups", cups=1)


def test_figures_of_a_trial_that_failed_at_once_are_absent() -> None:
    trial = records.parse(records.dump(failed()))
    assert trial.outcome is None
    assert (trial.frames.received_pps, trial.frames.polling) == (None, None)
    with pytest.raises(ValidationError, match="frozen"):
        trial.frames.received = 3


def failed() -> Trial:
    trial = made_trial(invalid="it ended", invalid_code="ended")
    trial.outcome = None
    return trial


def slices(*disturbed_by: list[str]) -> list[Slice]:
    """Return slices of a millisecond each."""
    return [
        Slice(begin_ns=n * 10**6, end_ns=(n + 1) * 10**6, disturbed_by=names)
        for n, names in enumerate(disturbed_by)
    ]


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], None),
        (slices([], []), None),
        (slices(["rustc"], []), None),
        (
            slices(["rustc"], [], ["late", "rustc"]),
            "33% of the window was undisturbed; disturbed by: rustc, late",
        ),
        (slices(["late"]), "only 0% of the window"),
        ([Slice(begin_ns=5, end_ns=5, disturbed_by=["late"])], None),
    ],
)
def test_a_window_counts_while_enough_of_it_was_undisturbed(
    parts: list[Slice], why: str | None
) -> None:
    trial = records.parse(records.dump(made_trial(received=3, slices=parts)))
    assert trial.frames.slices == parts
    if why is None:
        assert trial.valid
        return
    assert not trial.valid
    assert trial.invalid_code == "starved"
    assert why in (trial.invalid_why or "")
    # The first reason for its rejection comes first.
    trial.reject("ended", "it ended")
    assert trial.invalid == trial.rejected == Invalid(code="ended", why="it ended")


def test_a_trial_is_found_by_its_fields() -> None:
    trial = made_trial(arm="b", link="null", size=128, attempt=2)
    assert [records.field(trial, name) for name in ("arm", "link", "size", "attempt")] == [
        "b", "null", 128, 2,
    ]  # fmt: skip
    with pytest.raises(AttributeError):
        records.field(trial, "colour")
