"""Blocks of a statistics file."""

from __future__ import annotations

from headway_runtime.exchange.statistics_record import EngineState, Header

HEADER = Header(
    pid=7,
    process_started_ticks=11,
    container_started_ticks=10,
    rank=0,
    state=int(EngineState.ACTIVE),
    token_budget_ceiling=2048,
    max_batch_ceiling=64,
    slots=8,
    refused_policies=0,
    set_aside_requests=0,
    stock_reason="",
    engine_version="0.32.0",
)


def flip(block: bytes, bit: int) -> bytes:
    changed = bytearray(block)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
