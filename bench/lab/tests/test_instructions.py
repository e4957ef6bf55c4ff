# SPDX-License-Identifier: BSD-3-Clause
"""Instructions by object file, read from callgrind's output."""

from pathlib import Path

from linerate_bench.instructions import costs

# Two objects that call each other, names given once and by number afterwards, positions absolute
# and relative, and what a call cost in all, which belongs to neither line's object.
PROFILE = """\
# callgrind format
version: 1
events: Ir
ob=(1) /opt/l2fwd
fl=(1) main.c
fn=(1) main
16 400
+2 50
cob=(2) /opt/driver.so
cfn=(2) receive
calls=100 3
18 7200
* 5
ob=(2)
fn=(2)
3 7000
-1 200
cob=(1)
cfn=(3) back
calls=1 9
2 11
ob=(1)
fn=(3)
9 11

totals: 7666
"""


def test_calls_are_counted_where_they_arose(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.write_text(PROFILE)
    assert costs(profile) == {"/opt/l2fwd": 466, "/opt/driver.so": 7200}


def test_an_empty_profile_has_no_costs(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.write_text("")
    assert costs(profile) == {}
