"""The file of request histories that one engine process writes and the sidecar reads.

Layout: header block, a table of requests under way at offset 4096, then a ring of those that have
ended. The writer is the engine's only thread and never waits; readers take a copy and check it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headway_runtime.exchange import memory_file
from headway_runtime.exchange.block import CRC_BYTES, TornBlockError, seal, unseal
from headway_runtime.exchange.history_record import (
    RECORD_BYTES,
    Key,
    pack_history,
    unpack_history,
    unpack_key,
)
from headway_runtime.scheduling.history.summary import RequestSummary

FORMAT_VERSION = 1
MAGIC = b"HEADWAYR"

UNDER_WAY = 1024
"""Requests under way that are told at once."""

ENDED = 4096
"""Requests that have ended: the last ones. Both together are 2.5 MiB."""

_RECORDS_OFFSET = 4096
_EMPTY = bytes(RECORD_BYTES)
_HEADER = struct.Struct("<8sH6x QQ QQ")
_READ_ATTEMPTS = 5


class HistoryFileError(Exception):
    """A file of histories that cannot be read: foreign, of another release, or cut short."""


class Header(NamedTuple):
    """How the file is laid out, and what is missing in it.

    Attributes:
        under_way: slots for requests under way.
        ended: slots for requests that have ended.
        lost: histories that were dropped, since what became of their requests made no sense.
        dropped_spans: requests that have ended without their span, since too many did at once.
    """

    under_way: int = UNDER_WAY
    ended: int = ENDED
    lost: int = 0
    dropped_spans: int = 0


_HEADER_OF_A_NEW_FILE = Header()


def file_name(rank: int) -> str:
    """Name of the file of the engine process with this data parallel rank."""
    return f"requests-{rank}.bin"


def find_files(run_dir: Path) -> list[Path]:
    """Files of histories in the shared directory, by name."""
    return sorted(run_dir.glob("requests-*.bin"))


class HistoryWriter:
    """Writes one engine's histories.

    Args:
        path: where; an older file there is replaced.
        header: how many are kept.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, header: Header = _HEADER_OF_A_NEW_FILE) -> None:
        self._header = header
        self._serial = 0
        size = _RECORDS_OFFSET + (header.under_way + header.ended) * RECORD_BYTES
        block = _pack_header(header)
        self._memory = memory_file.create(
            path, size, lambda memory: memory.__setitem__(slice(0, len(block)), block)
        )
        self._ended_records = 0
        self._free = list(range(header.under_way))

    def begin(self) -> int | None:
        """A slot for a request under way; None while all are taken."""
        return self._free.pop() if self._free else None

    def write(self, slot: int, told: RequestSummary) -> None:
        """Tell of a request under way in its slot."""
        self._serial += 1
        self._write(slot, pack_history(self._serial, told))

    def end(self, slot: int) -> None:
        """Empty the slot of a request that is under way no more."""
        self._write(slot, _EMPTY)
        self._free.append(slot)

    def append(self, told: RequestSummary) -> None:
        """Tell of a request that has ended."""
        self._serial += 1
        slot = self._header.under_way + self._ended_records % self._header.ended
        self._write(slot, pack_history(self._serial, told))
        self._ended_records += 1

    def missing(self, lost: int, dropped_spans: int) -> None:
        """Tell how many are missing."""
        self._header = self._header._replace(lost=lost, dropped_spans=dropped_spans)
        block = _pack_header(self._header)
        self._memory[: len(block)] = block

    def close(self) -> None:
        """Release the mapping; the file stays for readers."""
        self._memory.close()

    def _write(self, slot: int, block: bytes) -> None:
        offset = _RECORDS_OFFSET + slot * RECORD_BYTES
        self._memory[offset : offset + RECORD_BYTES] = block


class Histories:
    """A copy of one file, to be searched.

    Attributes:
        header: what is missing in it.

    Args:
        path: the file.

    Raises:
        OSError: there is none, or it cannot be read.
        HistoryFileError: it is none of this release.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        for _ in range(_READ_ATTEMPTS):
            self._copy = path.read_bytes()
            try:
                self.header = _unpack_header(self._copy)
            except TornBlockError:
                continue
            return
        raise HistoryFileError("no whole header")

    def keys(self) -> Iterator[tuple[int, Key]]:
        """Offsets of the records that were written, and what their requests are found by."""
        records = self.header.under_way + self.header.ended
        end = min(len(self._copy), _RECORDS_OFFSET + records * RECORD_BYTES)
        for offset in range(_RECORDS_OFFSET, end - RECORD_BYTES + 1, RECORD_BYTES):
            key = unpack_key(self._copy, offset)
            if key.serial:
                yield offset, key

    def summary(self, offset: int) -> RequestSummary | None:
        """The record at an offset; None when it is being written or was emptied meanwhile."""
        block = self._copy[offset : offset + RECORD_BYTES]
        for _ in range(_READ_ATTEMPTS):
            try:
                return unpack_history(block)
            except TornBlockError:  # noqa: PERF203 - the exception is the rare case
                # Being written just now: that takes a microsecond, so look again.
                block = self._read(offset)
        return None

    def _read(self, offset: int) -> bytes:
        with self._path.open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(RECORD_BYTES)


def _pack_header(header: Header) -> bytes:
    return seal(_HEADER.pack(MAGIC, FORMAT_VERSION, *header))


def _unpack_header(copy: bytes) -> Header:
    magic, version, *values = _HEADER.unpack(unseal(copy[: _HEADER.size + CRC_BYTES], _HEADER.size))
    if magic != MAGIC or version != FORMAT_VERSION:
        raise HistoryFileError("file of histories of another format")
    return Header(*values)
