"""Requests and engines that planners are tried on."""

from __future__ import annotations

from typing import Any

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import Limits, StepView, TokenDue, WaitingRequest, Work

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=60)
CEILINGS = Limits(8192, 256)
NOW = 100.0
FREE = NOW + 0.01
MODEL = StepTimeModel()


def chat(name: str, tokens: int = 300, arrival_s: float = NOW, **fields: Any) -> WaitingRequest:
    """A request with a TTFT and a TPOT."""
    return WaitingRequest(name, arrival_s, CHAT, prefill_tokens=tokens, **fields)


def batch(name: str, tokens: int = 4000, arrival_s: float = NOW) -> WaitingRequest:
    """A request with a deadline only."""
    return WaitingRequest(name, arrival_s, BATCH, prefill_tokens=tokens)


def due(*in_s: float) -> tuple[TokenDue, ...]:
    """Tokens that are due so long after the engine is free, each 30 ms after the one before."""
    return tuple(TokenDue(FREE + each, 0.03) for each in in_s)


def work(**fields: Any) -> Work:
    """What is in hand; by default nothing."""
    return Work(**{"now_s": NOW, "free_s": FREE, "step_time": MODEL, **fields})


def view(in_hand: Work, waiting: Any = (), front: Any = (), **fields: Any) -> StepView:
    """An engine with these requests waiting, newcomers and settled ones."""
    return StepView(
        CEILINGS,
        CEILINGS,
        running=in_hand.decodes + len(in_hand.prefills),
        settled=[each.urgency for each in front],
        unsettled=tuple(waiting),
        front=tuple(front),
        work=in_hand,
        **fields,
    )
