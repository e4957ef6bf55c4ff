# SPDX-License-Identifier: BSD-3-Clause
"""Executes a profile, in a process that has given up its rights, and describes its streams."""

from __future__ import annotations

import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from linerate.traffic.trex.profile import api, confinement, packets, streams
from linerate.traffic.trex.profile.errors import ProfileError
from linerate.traffic.trex.profile.lines import Lines

# By these names profiles import TRex's stateless API.
_API = ("trex_stl_lib.api", "trex.stl.api", "trex_stl_lib", "trex.stl", "trex")
# Those that come with TRex import one of these to find the API; it has nothing in it.
_PATHS = ("stl_path", "stf_path")


def described(request: dict[str, Any]) -> dict[str, Any]:
    """`request`: `path`, `source`, `tunables` (`named` values and `words`), `ports`.

    Returns `streams`, a list for each port, or `error` with the `line` where it is known.
    """
    path = request["path"]
    Lines.path = path
    readable = [*confinement.python_files(), Path(path).parent]
    missing = confinement.restrict_files(readable)
    sys.path.insert(0, str(Path(path).parent))
    confinement.keep_reachable()
    packets.import_scapy()
    _provide_modules()
    is_nobody = confinement.confine()
    sys.argv = [path]
    try:
        module = ModuleType("profile")
        module.__file__ = path
        sys.modules["profile"] = module
        exec(compile(request["source"], path, "exec", dont_inherit=True), module.__dict__)
        register = getattr(module, "register", None)
        if register is None:
            raise ProfileError("has no function register(), so it is no TRex profile")
        found = [
            [each.description() for each in _streams(register(), port, request["tunables"])]
            for port in range(request["ports"])
        ]
    except BaseException as error:
        said = _message(error, path)
        if is_nobody and isinstance(error, (ModuleNotFoundError, PermissionError)):
            said += "; it is run as nobody, who has to be able to read what it needs"
        return {"error": said, "line": _line(error, path), "missing": missing}
    return {"streams": found, "missing": missing}


def _provide_modules() -> None:
    for name in _API:
        module = ModuleType(name)
        module.__path__ = []
        module.__dict__.update(api.names())
        sys.modules[name] = module
    for name in _PATHS:
        sys.modules[name] = ModuleType(name)
    for name in _API[:2]:
        package, _, short = name.rpartition(".")
        setattr(sys.modules[package], short, sys.modules[name])
    sys.modules["trex"].stl = sys.modules["trex.stl"]  # type: ignore[attr-defined]


def _streams(profile: Any, port: int, tunables: dict[str, Any]) -> list[streams.STLStream]:
    """Those of one port. TRex gives ports 0, 2, ... direction 0, and 1, 3, ... direction 1."""
    method = getattr(profile, "get_streams", None)
    if method is None:
        raise ProfileError("what register() returns has no method get_streams()")
    taken = inspect.signature(method).parameters
    by_name: dict[str, Any] = dict(tunables["named"])
    words = list(tunables["words"])
    further: dict[str, Any] = {}
    for name, value in by_name.items():
        if name in taken:
            further[name] = value
        elif "tunables" in taken:
            words += [f"--{name}", str(value)]
        else:
            known = ", ".join(each for each in taken if each not in ("direction", "kwargs"))
            raise ProfileError(f"has no tunable {name}; it has: {known or 'none'}")
    if words and "tunables" not in taken:
        raise ProfileError(f"takes tunables as NAME=VALUE, not {words[0]}")
    for name, value in (("direction", port % 2), ("port_id", port), ("tunables", words)):
        if name in taken or any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            further.setdefault(name, value)
    found = method(**further)
    if isinstance(found, streams.STLProfile):
        found = found.get_streams()
    if isinstance(found, streams.STLStream):
        found = [found]
    if not isinstance(found, (list, tuple)):
        raise ProfileError("get_streams() returns no list of streams")
    for each in found:
        if not isinstance(each, streams.STLStream):
            raise ProfileError(f"get_streams() returns a {type(each).__name__} among its streams")
    return list(found)


def _message(error: BaseException, path: str) -> str:
    if isinstance(error, ProfileError):
        return str(error)
    if isinstance(error, SystemExit):
        return "ends the program; are the tunables right?"
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"SyntaxError: {error.msg}"
    said = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "scapy":
        said += f"; {packets.HOW_TO_INSTALL}"
    elif isinstance(error, NameError) and packets.is_missing():
        said += f"; scapy is not installed: {packets.HOW_TO_INSTALL}"
    elif isinstance(error, ModuleNotFoundError) and "astf" in (error.name or ""):
        said += "; stateful profiles cannot be converted"
    return said


def _line(error: BaseException, path: str) -> int | None:
    """The last line of the profile on the way to the error."""
    if isinstance(error, ProfileError) and error.line:
        return error.line
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)
             if each.filename == path]  # fmt: skip
    return lines[-1] if lines else None
