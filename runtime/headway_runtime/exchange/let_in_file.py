"""The file in which a process that lets requests in tells the others of those it let in last.

An engine may have several such processes. What each of them let in and the engine has not seen yet
counts for all of them. It is mapped memory, a ring of records with a checksum each: telling takes a
microsecond, and reading only as long as there are requests on their way to the engine.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from headway_runtime.exchange import memory_file
from headway_runtime.exchange.block import CRC_BYTES, TornBlockError, seal, unseal
from headway_runtime.exchange.process_files import file_name, find_files, remove_of_gone

KIND = "let-in"
SLOTS = 1024
"""Requests that are told of, the last ones: far more than one process lets in within a step."""

LOOK_PERIOD_S = 1.0
"""A process that has started is noticed within this time."""

_MAGIC = b"HEADWAYL"
_COUNT = struct.Struct("<Q")
_RECORD = struct.Struct("<dI?3x64s")
_RECORD_BYTES = _RECORD.size + CRC_BYTES
_RECORDS_OFFSET = len(_MAGIC) + _COUNT.size
_FILE_BYTES = _RECORDS_OFFSET + SLOTS * _RECORD_BYTES
_MOST_TOKENS = 2**32 - 1


class LetInRequest(NamedTuple):
    """A request that was let in.

    Attributes:
        class_name: its class; empty where it has none.
        prompt_tokens: length of its prompt, or an estimate.
        came_s: when, seconds since the epoch.
    """

    class_name: str
    prompt_tokens: int
    came_s: float


class LetInWriter:
    """Tells what this process lets in.

    Args:
        run_dir: the directory that the processes share. Files of those that are gone are removed.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, run_dir: Path) -> None:
        remove_of_gone(run_dir, KIND)
        path = run_dir / file_name(KIND, os.getpid())
        self._memory = memory_file.create(path, _FILE_BYTES, _begin)
        self._told: dict[int, LetInRequest] = {}

    def enter(self, ticket: int, request: LetInRequest) -> None:
        """A request is let in; tickets go up by one."""
        self._told.pop(ticket - SLOTS, None)
        self._told[ticket] = request
        self._write(ticket, request, is_there=True)
        # After the record: whoever sees the count finds the record.
        _COUNT.pack_into(self._memory, len(_MAGIC), ticket)

    def leave(self, ticket: int) -> None:
        """It has its answer, or nobody waits for it any more; twice is the same as once."""
        request = self._told.pop(ticket, None)
        if request is not None:
            self._write(ticket, request, is_there=False)

    def close(self) -> None:
        """Release the mapping; the file stays for readers."""
        self._memory.close()

    def _write(self, ticket: int, request: LetInRequest, *, is_there: bool) -> None:
        tokens = min(request.prompt_tokens, _MOST_TOKENS)
        values = request.came_s, tokens, is_there, request.class_name.encode()
        offset = _offset(ticket)
        self._memory[offset : offset + _RECORD_BYTES] = seal(_RECORD.pack(*values))


class OthersLetIn:
    """What the other processes let in. Never fails: what cannot be read was not let in.

    Args:
        run_dir: the directory that the processes share.
        clock: monotonic clock, seconds.
    """

    def __init__(self, run_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_dir = run_dir
        self._clock = clock
        self._looked_s = float("-inf")
        self._memories: dict[int, mmap.mmap] = {}

    def since(self, came_s: float) -> Iterator[LetInRequest]:
        """Requests that came later than this and are still there."""
        self._look()
        for memory in self._memories.values():
            yield from _newest(memory, came_s)

    def close(self) -> None:
        """Release the files."""
        for memory in self._memories.values():
            memory.close()
        self._memories.clear()

    def _look(self) -> None:
        now_s = self._clock()
        if now_s - self._looked_s < LOOK_PERIOD_S:
            return
        self._looked_s = now_s
        try:
            found = find_files(self._run_dir, KIND)
        except OSError:
            return
        for pid in self._memories.keys() - found.keys():
            self._memories.pop(pid).close()
        for pid in found.keys() - self._memories.keys() - {os.getpid()}:
            memory = _opened(found[pid])
            if memory is not None:
                self._memories[pid] = memory


def _begin(memory: mmap.mmap) -> None:
    memory[: len(_MAGIC)] = _MAGIC


def _offset(ticket: int) -> int:
    return _RECORDS_OFFSET + ticket % SLOTS * _RECORD_BYTES


def _opened(path: Path) -> mmap.mmap | None:
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    if len(memory) == _FILE_BYTES and memory[: len(_MAGIC)] == _MAGIC:
        return memory
    memory.close()
    return None


def _newest(memory: mmap.mmap, came_s: float) -> Iterator[LetInRequest]:
    """Those of one process, the last one first."""
    (last,) = _COUNT.unpack_from(memory, len(_MAGIC))
    for ticket in range(last, max(0, last - SLOTS), -1):
        offset = _offset(ticket)
        try:
            body = unseal(memory[offset : offset + _RECORD_BYTES], _RECORD.size)
        except TornBlockError:
            # Being written just now.
            continue
        at_s, tokens, is_there, name = _RECORD.unpack(body)
        if at_s <= came_s:
            return
        if is_there:
            yield LetInRequest(name.rstrip(b"\0").decode("ascii", errors="replace"), tokens, at_s)
