"""Blocks of a fixed size that end in a CRC-32.

A reader that looks while the engine writes refuses what it sees instead of believing it.
"""

from __future__ import annotations

import struct
import zlib

CRC_BYTES = 4

_CRC = struct.Struct("<I")


class TornBlockError(Exception):
    """A block whose checksum does not match: being written, or never written."""


def seal(body: bytes) -> bytes:
    """The block with this body."""
    return body + _CRC.pack(zlib.crc32(body))


def unseal(block: bytes, body_bytes: int) -> bytes:
    """The body of a block, which is ``body_bytes`` long.

    Raises:
        TornBlockError: the block is cut short, or its checksum does not match.
    """
    body, checksum = block[:body_bytes], block[body_bytes:]
    if len(checksum) != CRC_BYTES or _CRC.unpack(checksum)[0] != zlib.crc32(body):
        raise TornBlockError
    return body
