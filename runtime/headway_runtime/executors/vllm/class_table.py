"""Totals and histograms of the classes of traffic in this engine."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from headway_runtime.exchange.class_record import WINDOW_NS, ClassRecord, Windows
from headway_runtime.exchange.histogram import BUCKETS, bucket_of


class RollingHistogram:
    """Counts of this window and of the one before it."""

    def __init__(self) -> None:
        self._current = array("I", bytes(4 * BUCKETS))
        self._previous = array("I", bytes(4 * BUCKETS))

    def count(self, ratio: float) -> None:
        """Count a measurement over its target in the present window."""
        self._current[bucket_of(ratio)] += 1

    def rotate(self, *, adjacent: bool) -> None:
        """Begin another window; unless it is the next one, the last one is too old as well."""
        empty = array("I", bytes(4 * BUCKETS))
        self._previous = self._current if adjacent else empty[:]
        self._current = empty

    @property
    def windows(self) -> Windows:
        """The counts."""
        return Windows(self._current, self._previous)


class ClassEntry:
    """One class of traffic.

    Attributes:
        name: the class.
        requests: requests that ended.
        attained: those of them that met every objective.
        changed: whether it was changed since it was last written.
        ttft: time to first token over its target.
        tpot: mean time per output token over its target.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.attained = 0
        self.changed = True
        self.ttft = RollingHistogram()
        self.tpot = RollingHistogram()
        self._window_start_ns = 0

    def at(self, now_ns: int) -> ClassEntry:
        """The entry, to be changed now: its windows are those of this time."""
        self.changed = True
        age_ns = now_ns - self._window_start_ns
        if age_ns >= WINDOW_NS:
            for each in (self.ttft, self.tpot):
                each.rotate(adjacent=age_ns < 2 * WINDOW_NS)
            self._window_start_ns = now_ns - now_ns % WINDOW_NS
        return self

    def record(self, revision: int) -> ClassRecord:
        """What is written of it."""
        return ClassRecord(
            self.name,
            revision,
            self.requests,
            self.attained,
            self._window_start_ns,
            self.ttft.windows,
            self.tpot.windows,
        )


class ClassTable:
    """Entries of the classes of the policy in force, each in a slot of its own.

    Args:
        slots: how many classes there may be.
    """

    def __init__(self, slots: int) -> None:
        self._slots: list[ClassEntry | None] = [None] * slots
        self._revisions = [0] * slots
        self._entries: dict[str, ClassEntry] = {}
        self._emptied: set[int] = set()

    def set_classes(self, names: Iterable[str]) -> None:
        """Have an entry for each of these classes. Those that had one keep it."""
        wanted = dict.fromkeys(names)
        for slot, entry in enumerate(self._slots):
            if entry is not None and entry.name not in wanted:
                self._slots[slot] = None
                self._emptied.add(slot)
        kept = {entry.name for entry in self._slots if entry is not None}
        for name in wanted:
            if name not in kept and None in self._slots:
                self._slots[self._slots.index(None)] = ClassEntry(name)
        self._entries = {entry.name: entry for entry in self._slots if entry is not None}

    def entry(self, name: str) -> ClassEntry | None:
        """The entry of a class, None when the policy has none of this name."""
        return self._entries.get(name)

    def write_changes(self, write: Callable[[int, ClassRecord], None]) -> None:
        """Write the slots that have changed.

        Args:
            write: takes a slot's number and its record.
        """
        for slot in self._emptied:
            if self._slots[slot] is None:
                self._write(slot, ClassEntry(""), write)
        self._emptied.clear()
        for slot, entry in enumerate(self._slots):
            if entry is not None and entry.changed:
                self._write(slot, entry, write)
                entry.changed = False

    def _write(
        self, slot: int, entry: ClassEntry, write: Callable[[int, ClassRecord], None]
    ) -> None:
        self._revisions[slot] += 1
        write(slot, entry.record(self._revisions[slot]))
