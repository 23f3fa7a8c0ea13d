"""Outcomes of requests, made by hand."""

from __future__ import annotations

from typing import Any

from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.policy import TrafficClass

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=100)
BATCH = TrafficClass("batch", deadline_s=10)


def outcome(*token_s: float, **fields: Any) -> Outcome:
    """A complete request of class chat that was sent at 0 and got its tokens at these times."""
    defaults: dict[str, Any] = {
        "class_name": "chat",
        "prompt_tokens": 100,
        "output_tokens": len(token_s),
        "planned_s": 0.0,
        "sent_s": 0.0,
        "ending": Ending.COMPLETE,
        "ended_s": token_s[-1] if token_s else 0.0,
    }
    return Outcome(**{**defaults, **fields}, token_s=token_s)
