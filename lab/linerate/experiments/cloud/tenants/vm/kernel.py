# SPDX-License-Identifier: BSD-3-Clause
"""The guests' kernel: Debian's for clouds, downloaded by apt and extracted, never installed.

Lifecycle: extracted once for each version, below the lab's build directory, completely or not at
all, by one lab at a time. If apt cannot download one, the last extracted one is used.
"""

from __future__ import annotations

import lzma
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.cloud.tenants.packages import told
from linerate.host.builds.make import locked
from linerate.host.errors import LabError, MachineError, MissingError

META_PACKAGE = "linux-image-cloud-amd64"
# The drivers of the guest's disk and interface, and of their bus.
MODULES = ("virtio_pci", "virtio_blk", "virtio_net")
_DOWNLOAD_S, _EXTRACT_S = 300.0, 120.0
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_UPDATE = "apt-get update; guests need Debian's amd64 packages"
# The names of modules, in the order in which they are loaded.
_ORDER = "modules"


@dataclass(frozen=True)
class Kernel:
    """`image`: for QEMU's -kernel. `modules`: files in the order in which they are loaded."""

    package: str
    version: str
    image: Path
    modules: tuple[Path, ...]


@dataclass(frozen=True)
class Package:
    name: str
    version: str


def candidate() -> Package | None:
    """Return the package that the meta-package depends on; None if apt knows none."""
    printed = told("apt-cache", "show", "--no-all-versions", META_PACKAGE) or ""
    found = re.search(r"^Depends:.*\b(linux-image-[\w.+-]+) \(= ([^)\s]+)\)", printed, re.MULTILINE)
    return Package(found[1], found[2]) if found else None


def extracted(directory: Path) -> list[Path]:
    """Return the kernels that exist already, the newest last."""
    found = [path.parent for path in directory.glob(f"kernel-*/{_ORDER}")]
    return sorted(found, key=lambda path: path.stat().st_mtime)


def get(directory: Path) -> Kernel:
    """Return the kernel; downloads it into `directory` if its version does not exist yet."""
    try:
        return _newest(directory)
    except MissingError:
        if known := extracted(directory):
            return _read(known[-1])
        raise


def _newest(directory: Path) -> Kernel:
    package = candidate()
    if package is None:
        raise MissingError(f"apt knows no package {META_PACKAGE}", _UPDATE)
    target = directory / f"kernel-{package.name}_{package.version.replace(':', '%3a')}"
    if not (target / _ORDER).is_file():
        with locked(directory, "the guests' kernel"):
            if not (target / _ORDER).is_file():
                _extract(package, target)
    return _read(target)


def _read(directory: Path) -> Kernel:
    name, _, version = directory.name.removeprefix("kernel-").partition("_")
    modules = (directory / _ORDER).read_text().split()
    return Kernel(
        name,
        version.replace("%3a", ":"),
        directory / "vmlinuz",
        tuple(directory / f"{module}.ko" for module in modules),
    )


def _extract(package: Package, target: Path) -> None:
    """Extract it beside the target and move it there."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".kernel-") as work:
        download, content, made = (Path(work) / name for name in ("deb", "content", "made"))
        download.mkdir()
        made.mkdir()
        wanted = f"{package.name}={package.version}"
        told("apt-get", "-q", "download", wanted, cwd=download, timeout_s=_DOWNLOAD_S)
        archive = next(download.glob("*.deb"), None)
        if archive is None:
            raise MissingError(f"apt-get download {wanted} brought nothing", _UPDATE)
        if told("dpkg-deb", "-x", str(archive), str(content), timeout_s=_EXTRACT_S) is None:
            raise LabError(f"{archive.name} cannot be extracted", "free some space")
        image = next(content.glob("boot/vmlinuz-*"), None)
        if image is None:
            raise MachineError(f"{package.name} has no kernel image")
        shutil.copy(image, made / "vmlinuz")
        # In /usr on releases that have no other place any more.
        tree = next((p for p in content.glob("**/lib/modules/*") if p.is_dir()), content)
        files, builtin = module_files(tree)
        order = load_order(MODULES, files, builtin)
        for name, binary in order.items():
            (made / f"{name}.ko").write_bytes(binary)
        (made / _ORDER).write_text("".join(f"{name}\n" for name in order))
        made.rename(target)


def module_files(tree: Path) -> tuple[dict[str, Path], frozenset[str]]:
    """Return modules below /lib/modules/RELEASE by name, and the names of those built in."""
    files = {_name(path): path for path in tree.rglob("*.ko*")}
    listed = tree / "modules.builtin"
    lines = listed.read_text().split() if listed.is_file() else []
    return files, frozenset(_name(Path(line)) for line in lines)


def load_order(
    wanted: Iterable[str], files: Mapping[str, Path], builtin: frozenset[str] = frozenset()
) -> dict[str, bytes]:
    """Return modules with all their dependencies, each after its dependencies, without built-in
    ones.

    The modules' own entry is read (`depends=`): modules.dep is made only when a kernel is
    installed.
    """
    order: dict[str, bytes] = {}
    under_way: set[str] = set()

    def add(name: str) -> None:
        if name in order or name in builtin:
            return
        if name in under_way:
            raise MachineError(f"kernel module {name} depends on itself")
        if name not in files:
            raise MachineError(f"the guests' kernel has no module {name}")
        under_way.add(name)
        binary = _unpacked(files[name])
        found = _DEPENDS.search(binary)
        for needed in filter(None, found[1].decode().split(",") if found else []):
            add(needed.replace("-", "_"))
        order[name] = binary

    for name in wanted:
        add(name)
    return order


def _name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _unpacked(path: Path) -> bytes:
    if path.suffix == ".ko":
        return path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    raise MachineError(f"kernel module {path.name}: this compression is not known")
