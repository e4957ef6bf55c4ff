# SPDX-License-Identifier: BSD-3-Clause
"""The facts about an ELF program's loading that the lab needs before it runs the program.

Reads only the program headers and the dynamic section, and only of 64-bit little-endian files:
those that DPDK runs on. Section headers may be stripped, these cannot be.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.host import foreign
from linerate.host.host import LOCAL, Host

MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_TAG = struct.Struct("<qQ")
_NOTE = struct.Struct("<III")
_LOAD, _DYNAMIC, _INTERPRETER, _NOTES = 1, 2, 3, 4
# Header fields with the position and number of sections, which only debuggers need.
_OF_SECTIONS = (slice(40, 48), slice(58, 64))
_BUILD_ID = 3, b"GNU\0"
_DT_STRTAB, _DT_STRSZ = 5, 10
_LIST_TIMEOUT_S = 20.0
# EAL says at its start whether it is linked statically or not; the text is a part of it.
_SAID_BY_EAL = b"linkage of DPDK"
_EAL = "librte_eal.so"


class UnreadableError(Exception):
    """Not an ELF file that this module understands."""


@dataclass(frozen=True)
class Elf:
    """`names`: every word of the dynamic string table, symbols and libraries among them.

    `loader`: the dynamic loader; None for a shared object and for a static program.
    """

    path: Path
    loader: str | None
    dynamic: bool
    names: frozenset[bytes]


def read(path: Path) -> Elf:
    """Read an ELF file. Raises `UnreadableError` for other files, `OSError` if reading fails."""
    content = _content(path)
    try:
        return _read(path, content)
    except (struct.error, ValueError, OverflowError) as error:
        raise UnreadableError(f"{path}: {error}") from error


def _content(path: Path) -> bytes:
    content = foreign.content(path, foreign.MOST_PROGRAM)
    # ELFCLASS64, ELFDATA2LSB
    if content[:6] != MAGIC + b"\x02\x01":
        raise UnreadableError(f"{path} is not a 64-bit little-endian ELF file")
    return content


def _read(path: Path, content: bytes) -> Elf:
    segments = _segments(content)
    loader: str | None = None
    names: frozenset[bytes] = frozenset()
    dynamic = False
    for kind, _, offset, _, _, length, _, _ in segments:
        if kind == _INTERPRETER:
            loader = content[offset : offset + length].split(b"\0")[0].decode()
        elif kind == _DYNAMIC:
            dynamic = True
            tags = dict(_tags(content[offset : offset + length]))
            start = _file_offset(segments, tags.get(_DT_STRTAB, 0))
            table = content[start : start + tags.get(_DT_STRSZ, 0)]
            names = frozenset(table.split(b"\0"))
    return Elf(path, loader, dynamic, names)


def _segments(content: bytes | bytearray) -> list[tuple[int, ...]]:
    """The program headers; raises `struct.error`."""
    header = _HEADER.unpack_from(content)
    at, size, number = header[5], header[9], header[10]
    return [_SEGMENT.unpack_from(content, at + index * size) for index in range(number)]


def loaded_digest(path: Path) -> str:
    """Return the SHA-256 of the parts of a file that are loaded. Two builds of the same sources in
    different directories have the same digest, although their debug data and so their build IDs
    differ.

    Raises `UnreadableError` if the file is not ELF, `OSError` if reading fails.
    """
    content = bytearray(_content(path))
    try:
        segments = _segments(content)
        for kind, _, offset, _, _, length, _, _ in segments:
            if kind == _NOTES:
                _forget_build_id(content, offset, offset + length)
    except (struct.error, ValueError, OverflowError) as error:
        raise UnreadableError(f"{path}: {error}") from error
    for each in _OF_SECTIONS:
        content[each] = bytes(each.stop - each.start)
    found = hashlib.sha256()
    for segment in segments:
        if segment[0] == _LOAD:
            found.update(_SEGMENT.pack(*segment))
            found.update(content[segment[2] : segment[2] + segment[5]])
    return found.hexdigest()


def _forget_build_id(content: bytearray, at: int, end: int) -> None:
    while at + _NOTE.size <= end:
        name_size, size, kind = _NOTE.unpack_from(content, at)
        name = at + _NOTE.size
        start = name + _aligned(name_size)
        if (kind, bytes(content[name : name + name_size])) == _BUILD_ID:
            content[start : start + size] = bytes(size)
        at = start + _aligned(size)


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _tags(section: bytes) -> Iterator[tuple[int, int]]:
    whole = len(section) - len(section) % _TAG.size
    for tag, value in _TAG.iter_unpack(section[:whole]):
        if tag == 0:
            return
        yield tag, value


def _file_offset(segments: list[tuple[int, ...]], address: int) -> int:
    for kind, _, offset, virtual, _, length, _, _ in segments:
        if kind == _LOAD and virtual <= address < virtual + length:
            return offset + address - virtual
    raise ValueError(f"address {address:#x} is in no segment")


def libraries(
    program: Elf, environment: Mapping[str, str] | None = None, host: Host = LOCAL
) -> list[Path] | None:
    """Return the shared objects that the program would be loaded with, in this environment.

    `environment`: default: the host's own. Asks the program's own loader, as ldd does, which lists
    them and runs none of their code. None when it cannot tell.
    """
    if program.loader is None:
        return None
    argv = [program.loader, "--list", str(program.path)]
    if environment is not None:
        words = (f"{name}={value}" for name, value in environment.items())
        argv = ["env", "--ignore-environment", *words, *argv]
    try:
        done = host.run(argv, timeout_s=_LIST_TIMEOUT_S)
    except OSError:
        return None
    if "not found" in done.output or done.exit_code:
        return None
    return [Path(found) for found in re.findall(r"(?:=> )?(/\S+) \(0x", done.output)]


def holds_eal(path: Path) -> bool:
    """Return True if DPDK's EAL is linked into this file itself. Raises `OSError` if reading
    fails.
    """
    content = foreign.content(path, foreign.MOST_PROGRAM)
    return content.startswith(MAGIC) and _SAID_BY_EAL in content


def loaded_eal(path: Path) -> str | None:
    """Return the EAL that a program is loaded with in the lab's environment, such as
    `librte_eal.so.23`.

    None if it cannot be known, for instance for a script. Raises `OSError` if reading fails.
    """
    try:
        names = [found.name for found in libraries(read(path)) or ()]
    except UnreadableError:
        return None
    return next((name for name in names if name.startswith(_EAL)), None)


def needed_eal(plugin: Path) -> str | None:
    """Return the EAL that a plugin was linked with, or None. Raises `UnreadableError`,
    `OSError`.
    """
    needed = _EAL.encode()
    names = (name for name in read(plugin).names if name.startswith(needed))
    return next((name.decode() for name in names), None)
