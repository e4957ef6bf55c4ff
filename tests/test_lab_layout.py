# SPDX-License-Identifier: BSD-3-Clause
"""The lab's packages are layers without import cycles, and folders are small. What is done to a
machine goes through a `Host`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict

import pytest
from lab_imports import LAB, circles, graph

# From the lowest: each may import from those before it.
LAYERS = (
    "host", "records", "telemetry", "links", "traffic", "forwarders", "trial", "verdict", "runs",
    "report", "experiments", "cli",
)  # fmt: skip
# Entries of a folder.
MOST = 15


def layer(module: str) -> int:
    """Return the package's layer; the lab's own name and entry point are above all."""
    parts = module.split(".")
    if len(parts) == 1:
        return -1
    return LAYERS.index(parts[1]) if parts[1] in LAYERS else len(LAYERS)


def test_every_package_is_a_layer() -> None:
    packages = {path.name for path in LAB.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(LAYERS)


def test_imports_lead_down() -> None:
    upward = [
        f"{module} imports {target}"
        for module, targets in graph().items()
        for target in sorted(targets)
        if layer(target) > layer(module)
    ]
    assert upward == []


def test_there_is_no_circle_of_modules() -> None:
    assert circles(graph()) == []


def test_there_is_no_circle_of_packages() -> None:
    """Nor of the folders inside a package."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph().items():
        for target in targets:
            one, other = module.rpartition(".")[0], target.rpartition(".")[0]
            if one != other and not one.startswith(f"{other}.") and not other.startswith(f"{one}."):
                edges[one].add(other)
    assert circles(edges) == []


def test_no_folder_has_more_entries_than_can_be_seen_at_a_glance() -> None:
    folders = [
        path for path in (LAB, *LAB.rglob("*")) if path.is_dir() and path.name != "__pycache__"
    ]
    crowded = {
        str(folder.relative_to(LAB.parent)): count
        for folder in folders
        if (count := sum(each.name != "__pycache__" for each in folder.iterdir())) > MOST
    }
    assert crowded == {}


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert circles(edges) == [["a", "b", "c"]]


# -- hosts -------------------------------------------------------------------------------------

# The kernel's own files, which another machine has others of.
KERNELS = re.compile(r"/(proc|sys)(/|$)")
# Besides methods of a host, what takes one: `LOCAL` unless it is given another.
TAKE_A_HOST = {"text_of", "netns.set_value"}
HOSTS = {"LOCAL", "host", "_host", "namespace"}
EXCEPTIONS = {
    "experiments/cloud/tenants/container.py": {"/proc/self/fd/3"},  # opened inside the container
    "experiments/cloud/tenants/disk_image.py": {"/proc/"},  # of the lab's own file, for a tenant
    # The program that runs somebody's profile: what it may read, and the end of what it forked.
    "traffic/trex/profile/confinement.py": {"/proc/self/fd/", "/proc/net"},
    "traffic/trex/profile/main.py": {"os.kill"},
    "experiments/duel/baseline.py": {"/proc/self/fd/"},  # of the file that it writes
    "records/output_paths.py": {"/proc/self/fd/"},  # of a directory that it writes into
}


def is_of_a_host(call: ast.Call) -> bool:
    if ast.unparse(call.func) in TAKE_A_HOST:
        return True
    # Also what is only called later: `undo.callback(netns.set_value, host, PATH)`.
    if any(isinstance(each, ast.Attribute) and ast.unparse(each) in TAKE_A_HOST
           for each in call.args):  # fmt: skip
        return True
    return isinstance(call.func, ast.Attribute) and (
        ast.unparse(call.func.value).rpartition(".")[2] in HOSTS
    )


def past_the_host(text: str) -> list[str]:
    """Return what a module does to a machine without a `Host`."""
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [f"import {each.name}" for each in node.names if each.name == "subprocess"]
        elif isinstance(node, ast.ImportFrom) and node.module == "subprocess":
            found.append("from subprocess import")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.kill", "os.killpg"):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Child", "process.Child"):
            found.append("Child")
    asked = {
        id(inside)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and is_of_a_host(call)
        for argument in call.args
        for inside in ast.walk(argument)
    }
    found += [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        # Not in the middle of a sentence, as in a docstring or a hint.
        and KERNELS.match(node.value)
        and id(node) not in asked
    ]
    return found


def test_what_is_done_to_a_machine_goes_through_a_host() -> None:
    past = {
        name: found
        for path in sorted(LAB.rglob("*.py"))
        if not (name := str(path.relative_to(LAB))).startswith("host/")
        if (found := set(past_the_host(path.read_text())) - EXCEPTIONS.get(name, set()))
    }
    assert past == {}


def test_the_exceptions_are_needed() -> None:
    for name, allowed in EXCEPTIONS.items():
        assert allowed <= set(past_the_host((LAB / name).read_text()))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('Path("/proc/stat").read_text()', ["/proc/stat"]),
        ('PLACE = "/sys/class/net"', ["/sys/class/net"]),
        ('open(f"/proc/{pid}/stat")', ["/proc/"]),
        ("import subprocess", ["import subprocess"]),
        ("os.kill(pid, 9)", ["os.kill"]),
        ("with Child(command, run) as child: ...", ["Child"]),
        ('host.read_text(Path("/proc/stat"))', []),
        ('LOCAL.glob("/proc", "*")', []),
        ('self._host.read_text(f"/proc/{pid}/stat")', []),
        ('"""Reads /proc/stat."""', []),
    ],
)
def test_what_goes_past_a_host_is_found(text: str, found: list[str]) -> None:
    assert past_the_host(text) == found


# -- files of others ---------------------------------------------------------------------------

# Who reads files otherwise than by `linerate.host.foreign`, and whose they are. What a host reads
# is the kernel's or a package's.
OWN_FILES = {
    "experiments/cloud/design/design_file.py": "the designs that come with the lab",
    "forwarders/registry.py": "the definitions that come with the lab",
    "host/process.py": "a child's log and namespace; the kernel's",
    "host/host.py": "the kernel's, for a host",
    "host/leftovers/traces.py": "the kernel's",
    "host/sampler.py": "the kernel's; runs on hosts without the lab",
    "host/cores/lock_holders.py": "the kernel's",
    "host/cores/switches.py": "the kernel's",
    "host/leftovers/xdp_programs.py": "the kernel's",
    "host/builds/bench_programs.py": "the lab's sources",
    "host/builds/c_examples.py": "DPDK's sources, as the lab builds them",
    "host/builds/plugins.py": "the lab's build",
    "experiments/cloud/tenants/vm/guest.py": "the lab's sources, and modules of the kernel",
    "experiments/cloud/tenants/vm/kernel.py": "modules of the kernel",
    "experiments/instructions/callgrind.py": "valgrind's, in the run's own directory",
    "experiments/instructions/profile.py": "valgrind's, in the run's own directory",
    "experiments/latency/packet_sender.py": "the lab's sender's, in the run's own directory",
    "traffic/frame_files.py": "the lab's generator's, in the run's own directory",
    "traffic/generator.py": "the token of the lab's generator, in the run's own directory",
}
READS = ("read_text", "read_bytes")


def read_past_foreign(text: str) -> list[str]:
    """Return calls that read a file, except the lab's own resources and what a host reads."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in ("open", "json.load", "tomllib.load") or (
            name.endswith(".open") and (not node.args or any(_mode(each) for each in node.args))
        ):
            if not any(_mode(each).startswith(("w", "a", "x")) for each in node.args):
                found.append(name)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            source = ast.unparse(node.func.value)
            if "resources.files" not in source and source.rpartition(".")[2] not in HOSTS:
                found.append(name)
    return found


def _mode(argument: ast.expr) -> str:
    value = argument.value if isinstance(argument, ast.Constant) else ""
    return value if isinstance(value, str) and re.fullmatch("[rwax][bt+]*", value) else ""


def test_files_of_others_are_read_in_one_place() -> None:
    """That place has a size limit and does not wait for pipes or devices."""
    past = {
        name: found
        for path in sorted(LAB.rglob("*.py"))
        if (name := str(path.relative_to(LAB))) != "host/foreign.py"
        if (found := read_past_foreign(path.read_text()))
    }
    assert {name: found for name, found in past.items() if name not in OWN_FILES} == {}
    assert set(OWN_FILES) <= set(past)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("path.read_text()", ["path.read_text"]),
        ("(directory / NAME).read_bytes()", ["(directory / NAME).read_bytes"]),
        ('path.open("rb")', ["path.open"]),
        ('path.open(errors="replace")', ["path.open"]),
        ("open(path)", ["open"]),
        ('path.open("w")', []),
        ("link.open(context)", []),
        ('resources.files("x").joinpath(name).read_text()', []),
        ("LOCAL.read_bytes(path)", []),
        ("foreign.text(path, foreign.MOST_RUN)", []),
    ],
)
def test_what_reads_a_file_is_found(text: str, found: list[str]) -> None:
    assert read_past_foreign(text) == found


def test_the_sampler_imports_nothing_of_the_lab_s_nor_of_others() -> None:
    tree = ast.parse((LAB / "host" / "sampler.py").read_text())
    names = [each.name for node in ast.walk(tree) if isinstance(node, ast.Import)
             for each in node.names]  # fmt: skip
    names += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
