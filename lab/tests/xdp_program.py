# SPDX-License-Identifier: BSD-3-Clause
"""A program on XDP for tests, as a user's is: `xdp_program.py MULTIPLICATIONS RX TX`.

Until a signal ends it, it redirects what comes to either interface to the other. Before that each
packet is worth so many multiplications, each of which waits for the one before. It makes the system
calls itself, so that no compiler and no library is needed; its bpf_links end with it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import socket
import struct
import sys

_BPF = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _MAP_UPDATE_ELEM, _PROG_LOAD, _LINK_CREATE = 0, 2, 5, 28
_DEVMAP, _XDP, _ATTACH_XDP, _IN_THE_DRIVER = 14, 6, 37, 4
_REDIRECT_MAP = 51


def bpf(command: int, attributes: bytes) -> int:
    """The descriptor that the call returns; raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(attributes)
    found = libc.syscall(_BPF[platform.machine()], command, text, len(attributes))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf({command}): {os.strerror(number)}")
    return int(found)


def _instruction(code: int, registers: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("<BBhi", code, registers, 0, immediate)


def load(devmap: int, to: int, multiplications: int) -> int:
    """Load an XDP program that redirects every packet to this entry of the map."""
    program = [
        _instruction(0xB7, 0, 3),  # r0 = 3
        *[_instruction(0x27, 0, 5)] * multiplications,  # r0 *= 5
        _instruction(0x18, 0x11, devmap),  # r1 = the map
        _instruction(0),
        _instruction(0xB7, 2, to),  # r2 = the key
        _instruction(0xB7, 3, 0),  # r3 = no flags
        _instruction(0x85, 0, _REDIRECT_MAP),
        _instruction(0x95),  # return r0
    ]
    text = ctypes.create_string_buffer(b"".join(program))
    licence = ctypes.create_string_buffer(b"GPL")
    places = (ctypes.addressof(text), ctypes.addressof(licence))
    return bpf(_PROG_LOAD, struct.pack("<IIQQ24x", _XDP, len(program), *places))


def new_map() -> int:
    """Make a map for two interfaces."""
    return bpf(_MAP_CREATE, struct.pack("<IIIII", _DEVMAP, 4, 4, 2, 0))


def main() -> None:
    multiplications, *names = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    devmap = new_map()
    interfaces = [socket.if_nametoindex(name) for name in names]
    for place, interface in enumerate(interfaces):
        pair = ctypes.create_string_buffer(struct.pack("<II", place, interface))
        at = ctypes.addressof(pair)
        bpf(_MAP_UPDATE_ELEM, struct.pack("<I4xQQQ", devmap, at, at + 4, 0))
    for place, interface in enumerate(interfaces):
        program = load(devmap, 1 - place, int(multiplications))
        bpf(_LINK_CREATE, struct.pack("<IIII", program, interface, _ATTACH_XDP, _IN_THE_DRIVER))
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
