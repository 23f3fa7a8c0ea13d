"""The file in which an engine keeps who is under way, for the one that starts after it has died.

It is mapped memory: what was written is there however the process ends. A record is one store of a
few bytes with a checksum; half a record is none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from headway_runtime.exchange import memory_file
from headway_runtime.exchange.block import CRC_BYTES, TornBlockError, seal, unseal
from headway_runtime.exchange.fingerprint import BYTES
from headway_runtime.scheduling.quarantine.suspects import UnderWay

SLOTS = 1024
"""Requests that are written down at once; more are not suspected."""

_MAGIC = b"HEADWAYU"
_RECORD = struct.Struct(f"<{BYTES}s64sB")
_RECORD_BYTES = _RECORD.size + CRC_BYTES
_EMPTY = bytes(_RECORD_BYTES)


def file_name(rank: int) -> str:
    """Name of the file of the engine process with this data parallel rank."""
    return f"under-way-{rank}.bin"


class UnderWayWriter:
    """Writes down who is under way; nobody at first.

    Args:
        path: where; an older file there is replaced.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        def fill(memory: object) -> None:
            memory[: len(_MAGIC)] = _MAGIC  # type: ignore[index]

        self._memory = memory_file.create(path, len(_MAGIC) + SLOTS * _RECORD_BYTES, fill)
        self._free = list(range(SLOTS - 1, -1, -1))

    def begin(self, request: UnderWay) -> int | None:
        """A request is under way; the slot to go on with, None where there is no room."""
        if not self._free:
            return None
        slot = self._free.pop()
        self.write(slot, request)
        return slot

    def write(self, slot: int, request: UnderWay) -> None:
        """Tell something else of the request in a slot."""
        values = (request.fingerprint, request.tenant.encode(), request.has_token)
        self._put(slot, seal(_RECORD.pack(*values)))

    def end(self, slot: int) -> None:
        """The request in a slot is not under way any more."""
        self._put(slot, _EMPTY)
        self._free.append(slot)

    def close(self) -> None:
        """Release the mapping; the file stays for readers."""
        self._memory.close()

    def _put(self, slot: int, block: bytes) -> None:
        offset = len(_MAGIC) + slot * _RECORD_BYTES
        self._memory[offset : offset + _RECORD_BYTES] = block


def read_under_way(path: Path) -> tuple[UnderWay, ...]:
    """Who was under way when the file was left. Nobody where there is none, or another's."""
    try:
        content = path.read_bytes()
    except OSError:
        return ()
    if not content.startswith(_MAGIC):
        return ()
    return tuple(_records(content[len(_MAGIC) :]))


def _records(content: bytes) -> Iterator[UnderWay]:
    for start in range(0, len(content), _RECORD_BYTES):
        block = content[start : start + _RECORD_BYTES]
        if block == _EMPTY:
            continue
        try:
            fingerprint, tenant, has_token = _RECORD.unpack(unseal(block, _RECORD.size))
        except TornBlockError:
            continue
        name = tenant.rstrip(b"\0").decode("ascii", errors="replace")
        yield UnderWay(fingerprint, name, bool(has_token))
