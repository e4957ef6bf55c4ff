# SPDX-License-Identifier: BSD-3-Clause
"""The program that runs a profile: `python -I main.py < request.json > answer.json`.

Lifecycle: this process runs no line of the profile. It forks one that does, in namespaces of its
own where the system allows them, takes what that one writes up to a limit, and kills it when its
time is over. The answer is one JSON object: `streams` for each port, or `error`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

# Started by its path, isolated from the user's environment: the lab is not on Python's path.
sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from linerate.traffic.trex.profile import confinement

# Seconds of wall time: scapy alone takes more than ten to import on a busy machine.
LONGEST_S = 90.0
# Bytes of the description, and of what the profile prints.
MOST_DESCRIPTION, MOST_PRINTED = 64 << 20, 64 << 10


def main() -> None:
    request = json.loads(sys.stdin.read())
    missing = confinement.leave_namespaces()
    description, describe = os.pipe()
    printed, to_print = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(description)
        os.close(printed)
        _run(request, describe, to_print)
    os.close(describe)
    os.close(to_print)
    answer = _take(pid, description, printed)
    answer["missing"] = [*missing, *answer.get("missing", [])]
    json.dump(answer, sys.stdout)


def _run(request: dict[str, Any], describe: int, to_print: int) -> None:
    """The forked process; ends it."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(to_print, 1)
        os.dup2(to_print, 2)
        from linerate.traffic.trex.profile import run  # noqa: PLC0415 - scapy, in this process only

        answer = run.described(request)
        with os.fdopen(describe, "w") as file:
            json.dump(answer, file)
        status = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _take(pid: int, description: int, printed: int) -> dict[str, Any]:
    """What the forked process wrote. It has ended when this returns."""
    found = {description: bytearray(), printed: bytearray()}
    end = time.monotonic() + LONGEST_S
    error = None
    try:
        waiting = {description, printed}
        # Who prints may leave that open in no other process: it starts none.
        while waiting and not error:
            left = end - time.monotonic()
            ready = select.select(list(waiting), [], [], max(left, 0))[0]
            if not ready:
                error = f"no end within {LONGEST_S:g} s"
            for each in ready:
                part = os.read(each, 1 << 16)
                if not part:
                    waiting.discard(each)
                elif each == printed:
                    del found[each][: max(0, len(found[each]) + len(part) - MOST_PRINTED)]
                    found[each] += part[-MOST_PRINTED:]
                else:
                    found[each] += part
                    if len(found[each]) > MOST_DESCRIPTION:
                        error = f"its streams take more than {MOST_DESCRIPTION >> 20} MiB"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    answer: dict[str, Any] = {}
    if error is None:
        try:
            answer = json.loads(found[description].decode())
            if not isinstance(answer, dict) or not isinstance(answer.get("missing"), list):
                raise ValueError("no description")
        except (ValueError, RecursionError):
            answer = {}
            error = _ending(status)
    if error is not None:
        answer["error"] = error
    answer["printed"] = found[printed].decode(errors="replace")
    return answer


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGKILL, signal.SIGXCPU):
            return f"more than {confinement.CPU_S} s of CPU time, or killed"
        return f"ended by signal {signal.Signals(number).name}"
    return "ended before it had described its streams"


if __name__ == "__main__":
    main()
