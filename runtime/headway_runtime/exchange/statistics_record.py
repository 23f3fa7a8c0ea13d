"""What the engine tells about itself: a header, and its present load. Blocks of a fixed size."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from headway_runtime.exchange.block import CRC_BYTES, seal, unseal

FORMAT_VERSION = 5
MAGIC = b"HEADWAYS"

NOT_TOLD = 2**32 - 1
"""In place of a ratio in parts per million that is not known."""


class EngineState(enum.IntEnum):
    """What the plug-in does in this engine."""

    STOCK = 0
    """It only records: something about the engine is not supported, see the stock reason."""
    ACTIVE = 1
    """It carries out the policy."""
    STOPPED = 2
    """The engine has shut down."""


@dataclass(frozen=True)
class Header:
    """Who writes the file, and how the engine was started.

    Attributes:
        pid: process id in the engine container.
        process_started_ticks: start of that process in clock ticks since boot, so that a reused
            process id is not taken for it.
        container_started_ticks: start of the engine container's first process, likewise.
        rank: data parallel rank.
        state: what the plug-in does, an :class:`EngineState`.
        token_budget_ceiling: token budget the engine was started with.
        max_batch_ceiling: batch size the engine was started with.
        slots: records the ring holds.
        refused_policies: policy files that were not taken since the engine started.
        set_aside_requests: requests that were left to vLLM's own order since the engine started.
        stock_reason: why the state is STOCK; empty otherwise.
        engine_version: version of vLLM.
    """

    pid: int
    process_started_ticks: int
    container_started_ticks: int
    rank: int
    state: int
    token_budget_ceiling: int
    max_batch_ceiling: int
    slots: int
    refused_policies: int
    set_aside_requests: int
    stock_reason: str
    engine_version: str


@dataclass(frozen=True)
class Load:
    """What the engine has in hand right now; written when a step starts and when it ends.

    Attributes:
        wall_time_ns: when it was written, nanoseconds since the epoch.
        steps: records written so far.
        running: requests running.
        waiting: requests waiting.
        gpu_utilisation_ppm: share of time in which the GPUs were busy, parts per million; mean over
            the engine's GPUs.
        memory_bandwidth_ppm: share of time in which their memory was read or written.
        sampled_ns: when these two were sampled, nanoseconds since the epoch; 0 if never.
        token_load_ppm: engine-seconds of work offered each second, parts per million; NOT_TOLD
            where that is not known.
        step_overhead_ppm: share of a step that passes whatever is done, likewise.
        program_stretch_ppm: mean time of programs over the time since their calls were first
            served, likewise.
    """

    wall_time_ns: int
    steps: int
    running: int
    waiting: int
    gpu_utilisation_ppm: int = 0
    memory_bandwidth_ppm: int = 0
    sampled_ns: int = 0
    token_load_ppm: int = NOT_TOLD
    step_overhead_ppm: int = NOT_TOLD
    program_stretch_ppm: int = NOT_TOLD


_HEADER = struct.Struct("<8sH6x QQQIIQQQQQ 96s 48s")
_LOAD = struct.Struct("<QQIIIIQIII")

HEADER_BYTES = _HEADER.size + CRC_BYTES
LOAD_BYTES = _LOAD.size + CRC_BYTES

_header_values = attrgetter(*(field.name for field in fields(Header)))
_load_values = attrgetter(*(field.name for field in fields(Load)))


def ppm(ratio: float) -> int:
    """A ratio that is not negative in parts per million, at most what a block can tell."""
    return min(NOT_TOLD - 1, int(ratio * 1_000_000))


def pack_load(load: Load) -> bytes:
    """The block of the present load."""
    return seal(_LOAD.pack(*_load_values(load)))


def unpack_load(block: bytes) -> Load:
    """The load of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    return Load(*_LOAD.unpack(unseal(block, _LOAD.size)))


def pack_header(header: Header) -> bytes:
    """The block of a header; texts are cut to what fits."""
    *numbers, stock_reason, engine_version = _header_values(header)
    texts = (stock_reason.encode()[:96], engine_version.encode()[:48])
    return seal(_HEADER.pack(MAGIC, FORMAT_VERSION, *numbers, *texts))


def unpack_header(block: bytes) -> Header:
    """The header of a block.

    Raises:
        TornBlockError: the checksum does not match.
        ValueError: written by another release in a format this one cannot read.
    """
    magic, version, *values = _HEADER.unpack(unseal(block, _HEADER.size))
    if magic != MAGIC or version != FORMAT_VERSION:
        raise ValueError("statistics file of another format")
    return Header(*values[:-2], *(_text(value) for value in values[-2:]))


def _text(value: Any) -> str:
    return bytes(value).rstrip(b"\0").decode(errors="replace")
