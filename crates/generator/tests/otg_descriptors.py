# SPDX-License-Identifier: BSD-3-Clause
"""The model's protobuf messages and methods, as the generator reads them for gRPC.

    .venv/bin/python crates/generator/tests/otg_descriptors.py      writes src/otg/grpc/otg.fds

They are those of snappi's own module, as a FileDescriptorSet (descriptor.proto of protobuf): names,
numbers and types, without comments.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf import descriptor_pb2, empty_pb2
from snappi import otg_pb2

FILE = Path(__file__).parents[1] / "src" / "otg" / "grpc" / "otg.fds"
UNUSED = "google/protobuf/descriptor.proto"


def descriptors() -> bytes:
    """Return the set, always the same bytes for one release of snappi."""
    files = descriptor_pb2.FileDescriptorSet()
    empty_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    model = files.file.add()
    otg_pb2.DESCRIPTOR.CopyToProto(model)
    model.dependency.remove(UNUSED)
    return bytes(files.SerializeToString(deterministic=True))


if __name__ == "__main__":
    FILE.write_bytes(descriptors())
