"""The file through which an engine lets those who let requests in know how long they would wait.

An engine that has nothing to do writes nothing. So a board on which nobody waits is good for a
while, and one on which somebody waits only while it is fresh: what it was
written by has stopped, or is in a step that takes far too long, and nobody is refused for that.
"""

from __future__ import annotations

import math
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from headway_runtime.exchange.twin_block import TwinBlockFormat, TwinBlockWriter
from headway_runtime.policy import MAX_CLASSES
from headway_runtime.scheduling.admission.refusal import Board, ClassWait

FRESH_S = 2.0
"""So long a board on which somebody waits is believed, in seconds."""

IDLE_FRESH_S = 60.0
"""So long a board is believed on which nobody waits. Not for ever: who writes it may have failed,
and then what was let in since would grow with every request."""

IDLE_WAIT_S = 0.1
"""What is left of a step may be on the last board of an engine that is idle."""

LOOK_PERIOD_S = 1.0
"""A reader notices within this time that the file was replaced."""

MAX_HEAVY = 16
"""Most heavy tenants; those there are beyond are told from light ones no more."""

MAX_NAME_BYTES = 63

_HEAD = struct.Struct("<ddddHHI")
_CLASS = struct.Struct("<64sI4xdd")
_HEAVY = struct.Struct("<64s")
_FORMAT = TwinBlockFormat(
    b"HEADWAYA",
    version=3,
    body_bytes=_HEAD.size + MAX_CLASSES * _CLASS.size + MAX_HEAVY * _HEAVY.size,
)
_LONGEST_WAIT_S = 86_400.0
_MOST_WAITING = 2**32 - 1


def file_name(rank: int) -> str:
    """Name of the board of the engine process with this data parallel rank."""
    return f"admission-{rank}.bin"


class AdmissionBoardWriter:
    """Writes an engine's board.

    Args:
        path: where; an older file there is replaced.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._writer = TwinBlockWriter(path, _FORMAT)

    def write(self, board: Board) -> None:
        """Replace the board. To be called at the end of the last step before the engine is idle."""
        self._writer.write(pack_board(board))

    def close(self) -> None:
        """Release the file, which stays for readers."""
        self._writer.close()


class AdmissionBoardReader:
    """Reads an engine's board at the cost of one system call.

    Args:
        path: where it is, or will be.
        clock: tells the time, in seconds since the epoch.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._descriptor: int | None = None
        self._inode = 0
        self._looked_s = 0.0
        self._body: bytes | None = None
        self._board: Board | None = None

    def read(self) -> Board | None:
        """The board; None where there is none that may be believed. Never fails."""
        now_s = self._clock()
        try:
            body = self._read(now_s)
        except OSError:
            self.close()
            return None
        if body != self._body:
            self._body, self._board = body, None if body is None else unpack_board(body)
        board = self._board
        return board if board is not None and _is_good(board, now_s) else None

    def close(self) -> None:
        """Release the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _read(self, now_s: float) -> bytes | None:
        if self._descriptor is None:
            self._open(now_s)
        elif abs(now_s - self._looked_s) >= LOOK_PERIOD_S:
            self._looked_s = now_s
            if self._path.stat().st_ino != self._inode:
                self.close()
                self._open(now_s)
        return None if self._descriptor is None else _FORMAT.read(self._descriptor)

    def _open(self, now_s: float) -> None:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._inode = os.fstat(self._descriptor).st_ino
        self._looked_s = now_s


def pack_board(board: Board) -> bytes:
    """The bytes of a board; names that are too long and entries too many are left out."""
    classes = [
        _CLASS.pack(
            name.encode(),
            min(each.waiting, _MOST_WAITING),
            _bounded(each.wait_s),
            _bounded(each.light_wait_s),
        )
        for name, each in board.classes.items()
        if _fits(name)
    ][:MAX_CLASSES]
    heavy = [_HEAVY.pack(name.encode()) for name in sorted(board.heavy) if _fits(name)][:MAX_HEAVY]
    free = min(board.free_slots, _MOST_WAITING)
    seconds = board.prompt_token_s, board.prompt_token_work_s, board.answer_work_s
    numbers = board.written_s, *map(_bounded, seconds), len(classes), len(heavy), free
    return _HEAD.pack(*numbers) + b"".join(classes) + b"".join(heavy)


def unpack_board(body: bytes) -> Board:
    """The board of these bytes."""
    written_s, token_s, token_work_s, answer_s, classes, heavy, free_slots = _HEAD.unpack_from(body)
    heavy_at = _HEAD.size + classes * _CLASS.size
    end = heavy_at + heavy * _HEAVY.size
    return Board(
        written_s,
        token_s,
        {
            _text(name): ClassWait(*values)
            for name, *values in _CLASS.iter_unpack(body[_HEAD.size : heavy_at])
        },
        frozenset(_text(name) for (name,) in _HEAVY.iter_unpack(body[heavy_at:end])),
        free_slots,
        token_work_s,
        answer_s,
    )


def _is_good(board: Board, now_s: float) -> bool:
    age_s = abs(now_s - board.written_s)
    if age_s <= FRESH_S:
        return True
    known = board.classes.values()
    is_idle = not any(each.waiting or each.wait_s > IDLE_WAIT_S for each in known)
    return is_idle and age_s <= IDLE_FRESH_S


def _bounded(seconds: float) -> float:
    """What can be calculated with; what is no number says nothing."""
    return 0.0 if math.isnan(seconds) else max(0.0, min(_LONGEST_WAIT_S, seconds))


def _fits(name: str) -> bool:
    # All of them are ASCII: the policy's format and the door see to it.
    return len(name) <= MAX_NAME_BYTES and name.isascii()


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("ascii", errors="replace")
