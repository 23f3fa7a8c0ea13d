"""What the engine tells about each of its steps: one block of a fixed size a step."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, fields
from operator import attrgetter

from headway_runtime.exchange.block import CRC_BYTES, seal, unseal


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


_RECORD = struct.Struct("<QQQQQ BB6x IIIIIIIII4x QQQQQQQQQQQQ")

RECORD_BYTES = _RECORD.size + CRC_BYTES

_record_values = attrgetter(*(field.name for field in fields(StepRecord)))


def pack_record(record: StepRecord) -> bytes:
    """The block of a step record."""
    return seal(_RECORD.pack(*_record_values(record)))


def unpack_record(block: bytes) -> StepRecord:
    """The record of a block.

    Raises:
        TornBlockError: the checksum does not match.
    """
    return StepRecord(*_RECORD.unpack(unseal(block, _RECORD.size)))
