"""A small file that one process rewrites often and others read: one block, in two copies.

The writer takes turns between the copies, so that a reader always finds one that nobody is writing;
the one with the higher revision is the newer.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from headway_runtime.exchange import memory_file
from headway_runtime.exchange.block import CRC_BYTES, TornBlockError, seal, unseal

_HEAD = struct.Struct("<8sHxxxxxxQ")
_COPIES = 2
_READ_ATTEMPTS = 5


class TwinBlockFormat:
    """What a kind of file looks like.

    Args:
        magic: 8 bytes that no other kind begins with.
        version: version of the body's layout; readers take no other.
        body_bytes: length of the body.
    """

    def __init__(self, magic: bytes, version: int, body_bytes: int) -> None:
        self._magic = magic
        self._version = version
        self._block_bytes = _HEAD.size + body_bytes
        self._copy_bytes = self._block_bytes + CRC_BYTES
        self.file_bytes = _COPIES * self._copy_bytes
        self.body_bytes = body_bytes

    def offset(self, revision: int) -> int:
        """Where the copy of a revision stands."""
        return revision % _COPIES * self._copy_bytes

    def pack(self, revision: int, body: bytes) -> bytes:
        """The copy with this body, which may be shorter than there is room for."""
        head = _HEAD.pack(self._magic, self._version, revision)
        return seal(head + body.ljust(self.body_bytes, b"\0"))

    def newest(self, content: bytes) -> bytes | None:
        """The body of the newest whole copy in a file's content; None where there is none."""
        copies = [content[: self._copy_bytes], content[self._copy_bytes :]]
        for copy in sorted(copies, key=_revision, reverse=True):
            try:
                block = unseal(copy, self._block_bytes)
            except TornBlockError:
                continue
            magic, version, _ = _HEAD.unpack_from(block)
            if (magic, version) == (self._magic, self._version):
                return block[_HEAD.size :]
        return None

    def read(self, descriptor: int) -> bytes | None:
        """The body of the newest whole copy in an open file; None where it stays torn."""
        for _ in range(_READ_ATTEMPTS):
            body = self.newest(os.pread(descriptor, self.file_bytes, 0))
            if body is not None:
                return body
        return None


class TwinBlockWriter:
    """Writes such a file. Until the first write, readers find nothing in it.

    Args:
        path: where; an older file there is replaced.
        layout: of which kind.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, layout: TwinBlockFormat) -> None:
        self._layout = layout
        self._revision = 0
        self._memory = memory_file.create(path, layout.file_bytes, lambda _: None)

    def write(self, body: bytes) -> None:
        """Replace the body."""
        self._revision += 1
        offset = self._layout.offset(self._revision)
        block = self._layout.pack(self._revision, body)
        self._memory[offset : offset + len(block)] = block

    def close(self) -> None:
        """Release the mapping; the file stays for readers."""
        self._memory.close()


def _revision(copy: bytes) -> int:
    return int(_HEAD.unpack_from(copy)[2]) if len(copy) >= _HEAD.size else 0
