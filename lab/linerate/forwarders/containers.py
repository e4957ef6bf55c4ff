# SPDX-License-Identifier: BSD-3-Clause
"""Programs in containers: a command line that begins with an engine (`podman run ...`).

The engine starts the program in a process tree of its own, so the lab finds it by its telemetry:
the socket's directory, and the variable that names it, must be in the container.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from linerate.forwarders.definition import Definition
from linerate.host.process import base_directory

_ENGINES = ("podman", "docker", "nerdctl")
# Keys of --mount for a directory on the host and in the container.
_MOUNT_KEYS = ("source", "src", "target", "destination", "dst")


def engine_of(definition: Definition) -> str | None:
    """Return the container engine that a command line begins with, or None."""
    words = shlex.split(definition.command or "")
    start = words[: words.index("run")] if "run" in words else []
    return next((Path(word).name for word in start if Path(word).name in _ENGINES), None)


def container_misfit(definition: Definition) -> tuple[str, str] | None:
    """Return why the lab could not find a program in its container, and what helps; None if it can,
    or if there is no container.
    """
    engine = engine_of(definition)
    if engine is None:
        return None
    if not definition.has_telemetry:
        return (
            "a program in a container is found by its telemetry, and this has none",
            "start it outside of the container",
        )
    words = shlex.split(definition.command or "")
    base = base_directory().resolve()
    if not any(base.is_relative_to(path) for path in _mounted(words)):
        lacking = f"{base}, where the telemetry socket is made,"
    elif not any("RUNTIME_DIRECTORY" in word or word == "--env-host" for word in words):
        lacking = "the variable RUNTIME_DIRECTORY, which names the telemetry socket's directory,"
    else:
        return None
    return (
        f"{lacking} is not in the container",
        f"{engine} run --rm -v {base}:{base} -e RUNTIME_DIRECTORY ...",
    )


def _mounted(words: list[str]) -> Iterator[str]:
    """Yield the directories that a container mounts under the same names as on the host."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        option, _, value = word.partition("=")
        value = value or after
        if option in ("-v", "--volume"):
            source, _, rest = value.partition(":")
            if rest.partition(":")[0] == source:
                yield source
        elif option == "--mount":
            parts = dict(part.partition("=")[::2] for part in value.split(","))
            found = {parts[key] for key in _MOUNT_KEYS if key in parts}
            if len(found) == 1:
                yield found.pop()
