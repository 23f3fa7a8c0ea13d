"""The file in which a process that lets requests in tells of those it refused.

How many, by class and reason, and how much work they would have been lately.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from headway_runtime.exchange.process_files import file_name, find_files, remove_of_gone
from headway_runtime.exchange.twin_block import TwinBlockFormat, TwinBlockWriter
from headway_runtime.policy import MAX_CLASSES
from headway_runtime.scheduling.admission.refusal import RefusalReason
from headway_runtime.scheduling.timing.forgetting import MEMORY_S, kept

Counts = dict[tuple[str, str], int]
"""Requests refused, by class and reason."""

QUARANTINED = ("", "Quarantined")
"""What is refused whatever its class, since engines died of it."""

MAX_COUNTS = MAX_CLASSES * len(RefusalReason) + 1

_COUNT = struct.Struct("<64s24sQ")
_WORK = struct.Struct("<dd")
_FORMAT = TwinBlockFormat(b"HEADWAYD", version=2, body_bytes=_WORK.size + MAX_COUNTS * _COUNT.size)
KIND = "door"


class RefusalCounts:
    """Counts refusals, from 0 when the process starts.

    Args:
        run_dir: the directory shared with the sidecar. Files of processes that are gone are removed
            from it: a container that starts again has other ids.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, run_dir: Path) -> None:
        remove_of_gone(run_dir, KIND)
        self._counts: Counts = {}
        self._work = _Work(0.0, 0.0)
        self._writer = TwinBlockWriter(run_dir / file_name(KIND, os.getpid()), _FORMAT)

    def refused(
        self, class_name: str, reason: str, work_s: float = 0.0, now_s: float = 0.0
    ) -> None:
        """One request more was refused.

        Args:
            class_name: its class.
            reason: why.
            work_s: engine-seconds that it would have been.
            now_s: now, in seconds since the epoch.
        """
        self._work = _Work(now_s, self._work.left_s(now_s) + work_s)
        key = class_name, reason
        # Taken out and put in again: the last one is the one that counted last.
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > MAX_COUNTS:
            # Classes of policies that are gone: what has not counted for longest.
            del self._counts[next(iter(self._counts))]
        self._writer.write(_pack(self._counts, self._work))

    def close(self) -> None:
        """Release the file, which stays for readers."""
        self._writer.close()


def read_counts(run_dir: Path) -> Counts:
    """Requests refused in this pod. A file that cannot be read counts nothing."""
    total: Counts = {}
    for path in find_files(run_dir, KIND).values():
        for key, count in _read(path):
            total[key] = total.get(key, 0) + count
    return total


def read_refused_work(run_dir: Path, now_s: float) -> float:
    """Engine-seconds a second of work that was refused in this pod lately.

    What is forgotten is forgotten as fast as what engines were offered. A request that is sent
    again and refused again counts again.
    """
    bodies = map(_body, find_files(run_dir, KIND).values())
    works = [_Work(*_WORK.unpack_from(body)) for body in bodies if body]
    return sum(each.left_s(now_s) for each in works) / MEMORY_S


class _Work(NamedTuple):
    """Work that was refused until a moment, what is longer ago counting for less."""

    at_s: float
    sum_s: float

    def left_s(self, now_s: float) -> float:
        """What is left of it."""
        return self.sum_s * kept(now_s - self.at_s) if self.sum_s > 0 else 0.0


def _body(path: Path) -> bytes | None:
    try:
        with path.open("rb", buffering=0) as file:
            return _FORMAT.read(file.fileno())
    except OSError:
        return None


def _read(path: Path) -> Iterable[tuple[tuple[str, str], int]]:
    body = _body(path)
    if body is None:
        return
    for name, reason, count in _COUNT.iter_unpack(body[_WORK.size :]):
        if count:
            yield (_text(name), _text(reason)), count


def _pack(counts: Counts, work: _Work) -> bytes:
    return _WORK.pack(*work) + b"".join(
        _COUNT.pack(name.encode(), reason.encode(), count)
        for (name, reason), count in counts.items()
    )


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
