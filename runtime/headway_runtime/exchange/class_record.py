"""What the engine tells about each class of traffic: how many requests, and how well they did.

Times over targets are counted in windows of 15 s, this one and the one before it, so that a reader
sees what happened in the last 15 to 30 s without anything being stored per request.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway_runtime.exchange.block import CRC_BYTES, seal, unseal
from headway_runtime.exchange.histogram import BUCKETS

WINDOW_NS = 15 * 10**9

_ZEROS = (0,) * BUCKETS
_HEAD = struct.Struct("<64s Q Q Q Q")
_COUNT_BYTES = 4
_HISTOGRAMS = 4

CLASS_BYTES = _HEAD.size + _HISTOGRAMS * BUCKETS * _COUNT_BYTES + CRC_BYTES


@dataclass(frozen=True)
class Windows:
    """Counts of ratios, by bucket.

    Attributes:
        current: of the window that began last.
        previous: of the window before it.
    """

    current: Sequence[int] = _ZEROS
    previous: Sequence[int] = _ZEROS

    @property
    def both(self) -> list[int]:
        """Counts of both together."""
        return [sum(pair) for pair in zip(self.current, self.previous, strict=True)]


@dataclass(frozen=True)
class ClassRecord:
    """One class of traffic in one engine.

    Attributes:
        name: the class.
        revision: how often it was written; of two copies the higher one is newer.
        requests_total: requests that ended, those their clients gave up left out.
        attained_total: those of them that met every objective of the class.
        window_start_ns: when the current window began, nanoseconds since the epoch.
        ttft: time to first token over its target.
        tpot: mean time per output token over its target.
    """

    name: str
    revision: int = 0
    requests_total: int = 0
    attained_total: int = 0
    window_start_ns: int = 0
    ttft: Windows = Windows()
    tpot: Windows = Windows()

    def at(self, now_ns: int) -> ClassRecord:
        """The same with windows as they are at this time: what has grown too old is left out."""
        age_ns = now_ns - self.window_start_ns
        if age_ns < WINDOW_NS:
            return self
        fresh = age_ns < 2 * WINDOW_NS

        def aged(windows: Windows) -> Windows:
            return Windows(previous=windows.current) if fresh else Windows()

        start_ns = now_ns - now_ns % WINDOW_NS
        return replace(self, window_start_ns=start_ns, ttft=aged(self.ttft), tpot=aged(self.tpot))


def pack_class(record: ClassRecord) -> bytes:
    """The block of a class's record."""
    head = _HEAD.pack(
        record.name.encode(),
        record.revision,
        record.requests_total,
        record.attained_total,
        record.window_start_ns,
    )
    counts = (record.ttft.current, record.ttft.previous, record.tpot.current, record.tpot.previous)
    return seal(head + b"".join(array("I", each).tobytes() for each in counts))


def unpack_class(block: bytes) -> ClassRecord:
    """The record of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    body = unseal(block, CLASS_BYTES - CRC_BYTES)
    name, revision, requests, attained, window_start_ns = _HEAD.unpack_from(body)
    counts = array("I")
    counts.frombytes(body[_HEAD.size :])
    one, two, three, four = (
        tuple(counts[start : start + BUCKETS]) for start in range(0, len(counts), BUCKETS)
    )
    return ClassRecord(
        bytes(name).rstrip(b"\0").decode(errors="replace"),
        revision,
        requests,
        attained,
        window_start_ns,
        ttft=Windows(one, two),
        tpot=Windows(three, four),
    )
