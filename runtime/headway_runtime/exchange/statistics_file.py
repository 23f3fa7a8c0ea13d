"""The file of statistics that one engine process writes and the sidecar reads.

Layout: header block, load block at offset 1024, table of classes at offset 4096, then the ring of
step records. The writer is the engine's only thread and never waits; readers take a copy and check
it. Each class has two blocks that are written in turn, so that one is always whole: totals that
were missing for a moment would look like totals that began again.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from headway_runtime.exchange.block import TornBlockError
from headway_runtime.exchange.class_record import (
    CLASS_BYTES,
    ClassRecord,
    pack_class,
    unpack_class,
)
from headway_runtime.exchange.statistics_record import (
    HEADER_BYTES,
    LOAD_BYTES,
    Header,
    Load,
    pack_header,
    pack_load,
    unpack_header,
    unpack_load,
)
from headway_runtime.exchange.step_record import (
    RECORD_BYTES,
    StepRecord,
    pack_record,
    unpack_record,
)
from headway_runtime.policy import MAX_CLASSES

SLOTS = 1024
"""Records kept: 8 s of steps of 8 ms."""

_LOAD_OFFSET = 1024
_CLASSES_OFFSET = 4096
_COPIES = 2
_RING_OFFSET = _CLASSES_OFFSET + MAX_CLASSES * _COPIES * CLASS_BYTES
_READ_ATTEMPTS = 5

_Value = TypeVar("_Value")


class StatisticsFileError(Exception):
    """A statistics file that cannot be read: foreign, of another release, or cut short."""


def file_name(rank: int) -> str:
    """Name of the file of the engine process with this data parallel rank."""
    return f"engine-{rank}.statistics"


def find_files(run_dir: Path) -> list[Path]:
    """Statistics files in the shared directory, by name."""
    return sorted(run_dir.glob("engine-*.statistics"))


def process_started_ticks(pid: int) -> int | None:
    """When a process here started, in clock ticks since boot; None when there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The second field is the command's name in parentheses and may contain anything.
    return int(status.rpartition(")")[2].split()[19])


def container_started_ticks() -> int:
    """When the first process of this container started; 0 where that cannot be known."""
    return process_started_ticks(1) or 0


class StatisticsWriter:
    """Writes one engine's statistics.

    Args:
        path: where; an older file there is replaced.
        header: what to say about the engine.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._slots = header.slots
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self._memory = _map(temporary, _RING_OFFSET + header.slots * RECORD_BYTES)
            self.write_header(header)
            self.write_load(Load(wall_time_ns=0, steps=0, running=0, waiting=0))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def write_header(self, header: Header) -> None:
        """Replace the header."""
        self._write(0, pack_header(header))

    def write_load(self, load: Load) -> None:
        """Replace the present load."""
        self._write(_LOAD_OFFSET, pack_load(load))

    def write_class(self, slot: int, record: ClassRecord) -> None:
        """Replace the record of the class in a slot; its revision must be the next one."""
        self._write(_class_offset(slot, record.revision % _COPIES), pack_class(record))

    def append(self, record: StepRecord) -> None:
        """Add a record; records are numbered 1, 2, 3 ... without a gap."""
        slot = record.step % self._slots
        self._write(_RING_OFFSET + slot * RECORD_BYTES, pack_record(record))

    def close(self) -> None:
        """Release the mapping; the file stays for readers."""
        self._memory.close()

    def _write(self, offset: int, block: bytes) -> None:
        self._memory[offset : offset + len(block)] = block


def _class_offset(slot: int, copy: int) -> int:
    return _CLASSES_OFFSET + (slot * _COPIES + copy) * CLASS_BYTES


def _map(path: Path, size: int) -> mmap.mmap:
    """A new file in memory. It has all its pages: for want of one a later write would be fatal."""
    with path.open("w+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), 0)


@dataclass(frozen=True)
class EngineStatistics:
    """A consistent look at one statistics file.

    Attributes:
        header: about the engine.
        load: what it has in hand.
        records: the newest step records that were whole, oldest first.
        classes: its classes of traffic; empty unless they were asked for.
    """

    header: Header
    load: Load
    records: tuple[StepRecord, ...]
    classes: tuple[ClassRecord, ...] = ()

    @property
    def latest(self) -> StepRecord | None:
        """The newest record, None before the first step."""
        return self.records[-1] if self.records else None


def read(path: Path, records: int, *, with_classes: bool = False) -> EngineStatistics:
    """Read a statistics file with up to ``records`` of its newest records.

    Raises:
        OSError: there is none, or it cannot be read.
        StatisticsFileError: it is none of this release, or stayed torn.
    """
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        header = _read_whole(descriptor, 0, HEADER_BYTES, unpack_header)
        load = _read_whole(descriptor, _LOAD_OFFSET, LOAD_BYTES, unpack_load)
        wanted = range(max(1, load.steps - records + 1), load.steps + 1)
        found = (_read_record(descriptor, step, header.slots) for step in wanted)
        return EngineStatistics(
            header,
            load,
            tuple(each for each in found if each is not None),
            _read_classes(descriptor) if with_classes else (),
        )


def _read_whole(
    descriptor: int, offset: int, length: int, unpack: Callable[[bytes], _Value]
) -> _Value:
    for _ in range(_READ_ATTEMPTS):
        try:
            return unpack(os.pread(descriptor, length, offset))
        except TornBlockError:  # noqa: PERF203 - the exception is the rare case
            # Being written just now: that takes a microsecond, so look again.
            continue
        except ValueError as error:
            raise StatisticsFileError(str(error)) from None
    raise StatisticsFileError("no whole block")


def _read_classes(descriptor: int) -> tuple[ClassRecord, ...]:
    found = (_read_class(descriptor, slot) for slot in range(MAX_CLASSES))
    return tuple(each for each in found if each is not None and each.name)


def _read_class(descriptor: int, slot: int) -> ClassRecord | None:
    """The newer of the two copies; None where none was ever written."""
    newest: ClassRecord | None = None
    for copy in range(_COPIES):
        try:
            record = unpack_class(os.pread(descriptor, CLASS_BYTES, _class_offset(slot, copy)))
        except TornBlockError:
            continue
        if newest is None or record.revision > newest.revision:
            newest = record
    return newest


def _read_record(descriptor: int, step: int, slots: int) -> StepRecord | None:
    offset = _RING_OFFSET + step % max(1, slots) * RECORD_BYTES
    try:
        record = unpack_record(os.pread(descriptor, RECORD_BYTES, offset))
    except TornBlockError:
        return None
    # Another number means that the writer has lapped this reader.
    return record if record.step == step else None
