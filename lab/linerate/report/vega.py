# SPDX-License-Identifier: BSD-3-Clause
"""The script that draws the charts of a page: Vega, Vega-Lite and vega-embed in one.

`vl_convert` makes it, which takes two seconds, so it is kept in a file for the next report. Each
page has the whole script in it and lets it run, so a file is taken only if its content is what this
version of `vl_convert` makes, by its digest here; any other is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import vl_convert

from linerate.host import foreign
from linerate.host.places import build_directory

# SHA-256 of what each version of vl-convert-python makes: that of requirements.txt is here
# (lab/tests/test_report_script.py). Scripts of other versions are made for each report anew.
DIGESTS = {
    "1.9.0.post1": "3425bd951a44d478d0505c6b5d1e8d57656b6e9a4da7bfe88a718ce61d76e572",
}
_MOST_BYTES = 16 * foreign.MIB  # 1 MB


def script() -> str:
    """The script as it is kept, or made now."""
    made_by = version("vl-convert-python")
    kept = build_directory() / f"vega-{made_by}.js"
    with contextlib.suppress(OSError):
        found = foreign.content(kept, _MOST_BYTES)
        if _is_pinned(found, made_by):
            return found.decode()
    # Its type stub says that the snippet is required; it is not.
    made = str(cast(Any, vl_convert).javascript_bundle())
    if _is_pinned(made.encode(), made_by):
        with contextlib.suppress(OSError):  # then the next report makes it again
            _keep(kept, made.encode())
    return made


def _is_pinned(content: bytes, made_by: str) -> bool:
    return hashlib.sha256(content).hexdigest() == DIGESTS.get(made_by)


def _keep(path: Path, content: bytes) -> None:
    """Whole or not at all: others may read and write it at the same time. What was there, of
    whatever kind, goes; a link is not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
        try:
            new.write(content)
            new.flush()
            Path(new.name).chmod(0o644)
            Path(new.name).replace(path)
        except OSError:
            Path(new.name).unlink()
            raise
