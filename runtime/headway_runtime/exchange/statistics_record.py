"""What the engine tells about itself: one record a step, a header, and its present load.

Each of the three is a fixed-size block that ends in a CRC-32, so that a reader that looks while the
engine writes refuses what it sees instead of believing it.
"""

from __future__ import annotations

import enum
import struct
import zlib
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

FORMAT_VERSION = 1
MAGIC = b"HEADWAYS"

_CRC = struct.Struct("<I")


class TornBlockError(Exception):
    """A block whose checksum does not match: being written, or never written."""


class EngineState(enum.IntEnum):
    """What the plug-in does in this engine."""

    STOCK = 0
    """It only records: something about the engine is not supported, see the stock reason."""
    ACTIVE = 1
    """It carries out the policy."""
    STOPPED = 2
    """The engine has shut down."""


class Decision(enum.IntEnum):
    """Who decided a step."""

    STOCK = 0
    """The engine: the plug-in does not plan here."""
    NO_POLICY = 1
    """The engine: there is no readable policy yet."""
    OFF = 2
    """The engine: the policy says Off."""
    SHADOW = 3
    """The engine; a plan was made and recorded."""
    ACT = 4
    """The plan."""
    FAILED = 5
    """The engine: planning raised an error."""
    LATE = 6
    """The engine: planning took longer than its deadline."""
    BREAKER = 7
    """The engine: planning is paused after repeated failures."""


@dataclass(frozen=True)
class Header:
    """Who writes the file, and how the engine was started.

    Attributes:
        pid: process id in the engine container.
        process_started_ticks: start of that process in clock ticks since boot, so that a reused
            process id is not taken for it.
        rank: data parallel rank.
        state: what the plug-in does, an :class:`EngineState`.
        token_budget_ceiling: token budget the engine was started with.
        max_batch_ceiling: batch size the engine was started with.
        slots: records the ring holds.
        refused_policies: policy files that were not taken since the engine started.
        stock_reason: why the state is STOCK; empty otherwise.
        engine_version: version of vLLM.
    """

    pid: int
    process_started_ticks: int
    rank: int
    state: int
    token_budget_ceiling: int
    max_batch_ceiling: int
    slots: int
    refused_policies: int
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
    """

    wall_time_ns: int
    steps: int
    running: int
    waiting: int


@dataclass(frozen=True)
class StepRecord:
    """One step. Names ending in ``_total`` count since the engine started.

    Attributes:
        step: number of the step, from 1.
        wall_time_ns: when it ended, nanoseconds since the epoch.
        generation: first part of the stamp of the policy it ran under; all three are 0 without one.
        epoch: second part.
        counter: third part.
        decision: who decided it, a :class:`Decision`.
        breaker_open: 1 while planning is paused.
        planned_token_budget: token budget of the plan, 0 without a plan.
        planned_max_batch: batch size of the plan, 0 without a plan.
        moved_requests: waiting requests the plan put in order.
        token_budget: token budget the engine ran with.
        max_batch: batch size the engine ran with.
        scheduled_tokens: tokens the step processed.
        running: requests running after it.
        waiting: requests waiting after it.
        kv_usage_ppm: share of KV blocks in use, parts per million.
        plan_ns: time from the step's start until the plan was in force.
        plugin_ns: all time the plug-in took for it.
        step_ns: time from its start, or from the end of the step before when that was later, to
            its end.
        scheduled_tokens_total: tokens processed.
        generated_tokens_total: tokens generated.
        preemptions_total: running requests that lost their KV blocks.
        plan_ns_total: sum of ``plan_ns``.
        plugin_ns_total: sum of ``plugin_ns``.
        step_ns_total: sum of ``step_ns``.
        failed_total: steps decided FAILED.
        late_total: steps decided LATE.
        breaker_total: steps decided BREAKER.
    """

    step: int
    wall_time_ns: int
    generation: int
    epoch: int
    counter: int
    decision: int
    breaker_open: int
    planned_token_budget: int
    planned_max_batch: int
    moved_requests: int
    token_budget: int
    max_batch: int
    scheduled_tokens: int
    running: int
    waiting: int
    kv_usage_ppm: int
    plan_ns: int
    plugin_ns: int
    step_ns: int
    scheduled_tokens_total: int
    generated_tokens_total: int
    preemptions_total: int
    plan_ns_total: int
    plugin_ns_total: int
    step_ns_total: int
    failed_total: int
    late_total: int
    breaker_total: int


_HEADER = struct.Struct("<8sH6x QQIIQQQQ 96s 48s")
_LOAD = struct.Struct("<QQII")
_RECORD = struct.Struct("<QQQQQ BB6x IIIIIIIII4x QQQQQQQQQQQQ")

HEADER_BYTES = _HEADER.size + _CRC.size
LOAD_BYTES = _LOAD.size + _CRC.size
RECORD_BYTES = _RECORD.size + _CRC.size

_record_values = attrgetter(*(field.name for field in fields(StepRecord)))
_header_values = attrgetter(*(field.name for field in fields(Header)))


def pack_record(record: StepRecord) -> bytes:
    """The block of a step record."""
    return _seal(_RECORD.pack(*_record_values(record)))


def unpack_record(block: bytes) -> StepRecord:
    """The record of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    return StepRecord(*_open(_RECORD, block))


def pack_load(load: Load) -> bytes:
    """The block of the present load."""
    return _seal(_LOAD.pack(load.wall_time_ns, load.steps, load.running, load.waiting))


def unpack_load(block: bytes) -> Load:
    """The load of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    return Load(*_open(_LOAD, block))


def pack_header(header: Header) -> bytes:
    """The block of a header; texts are cut to what fits."""
    *numbers, stock_reason, engine_version = _header_values(header)
    texts = (stock_reason.encode()[:96], engine_version.encode()[:48])
    return _seal(_HEADER.pack(MAGIC, FORMAT_VERSION, *numbers, *texts))


def unpack_header(block: bytes) -> Header:
    """The header of a block.

    Raises:
        TornBlockError: the checksum does not match.
        ValueError: written by another release in a format this one cannot read.
    """
    magic, version, *values = _open(_HEADER, block)
    if magic != MAGIC or version != FORMAT_VERSION:
        raise ValueError("statistics file of another format")
    return Header(*values[:-2], *(_text(value) for value in values[-2:]))


def _seal(body: bytes) -> bytes:
    return body + _CRC.pack(zlib.crc32(body))


def _open(layout: struct.Struct, block: bytes) -> tuple[Any, ...]:
    body, checksum = block[: layout.size], block[layout.size :]
    if len(checksum) != _CRC.size or _CRC.unpack(checksum)[0] != zlib.crc32(body):
        raise TornBlockError
    return layout.unpack(body)


def _text(value: Any) -> str:
    return bytes(value).rstrip(b"\0").decode(errors="replace")
