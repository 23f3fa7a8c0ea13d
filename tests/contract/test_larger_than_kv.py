"""Requests that need more KV blocks than there are, alone or together, stop nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from vllm.v1.request import RequestStatus

from headway_runtime.policy import Mode, TrafficClass
from tests.contract.engines import Engine, policy

CLASSES = (TrafficClass("chat", ttft_ms=60_000, tpot_ms=40), TrafficClass("batch", deadline_s=600))


@pytest.mark.parametrize("prompt_tokens", [400, 460, 900])  # the KV cache holds 480
def test_chats_are_served_beside_a_batch_request_that_never_fits(
    make: Any, prompt_tokens: int
) -> None:
    engine = make(policy(classes=CLASSES), blocks=31)
    engine.add("a", "batch", prompt_tokens=100, output_tokens=30)
    engine.step()
    engine.add("too-large", "batch", prompt_tokens=prompt_tokens)
    for number in range(140):
        engine.add(f"chat{number}", "chat", prompt_tokens=60, output_tokens=20)
        for _ in range(10):
            engine.step()
    for _ in range(300):
        engine.step()
    assert len([name for name in engine.admitted if name.startswith("chat")]) == 140
    assert ("too-large" in engine.scheduler.requests) == (prompt_tokens > 480)


def test_it_waits_behind_all_others_and_its_client_may_leave(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=31)
    engine.add("too-large", "chat", prompt_tokens=900)
    engine.add("batch", "batch", prompt_tokens=40)
    for _ in range(20):
        engine.step()
    assert engine.admitted == ["batch"]
    engine.add("later", "batch", prompt_tokens=40)
    engine.step()
    assert engine.admitted == ["batch", "later"]
    engine.scheduler.finish_requests("too-large", RequestStatus.FINISHED_ABORTED)
    list(engine.run())
    assert not engine.waiting


def test_a_preempted_answer_that_outgrew_the_cache_does_not_stop_chats(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=41)
    engine.add("grows", "batch", prompt_tokens=400, output_tokens=640, arrival_s=0)
    engine.step()
    for number in range(4):
        engine.add(f"chat-{number}", "chat", output_tokens=200, arrival_s=1 + number)
    for _ in range(3000):
        engine.step()
    assert not [name for name in engine.scheduler.requests if name.startswith("chat")]


def flooded(make: Any, mode: Mode) -> tuple[Engine, list[str]]:
    """Batch answers fill the KV cache while chats come; who was preempted meanwhile."""
    engine = make(policy(classes=CLASSES, mode=mode), blocks=61)
    for number in range(8):
        engine.add(f"batch{number}", "batch", prompt_tokens=64, output_tokens=300)
    preempted: list[str] = []
    for number in range(300):
        if number % 15 == 10:
            engine.add(f"chat{number}", "chat", prompt_tokens=40, output_tokens=60)
        preempted += engine.step().preempted_req_ids or ()
    return engine, preempted


def test_where_blocks_run_out_batch_work_loses_its_own_first(make: Any) -> None:
    engine, preempted = flooded(make, Mode.ACT)
    assert len(preempted) > 3
    assert not [name for name in preempted if name.startswith("chat")]
    chats = [name for name in engine.admitted if name.startswith("chat")]
    assert len(chats) >= 18
    # The engine by itself preempts whoever came last.
    _, by_itself = flooded(make, Mode.SHADOW)
    assert [name for name in by_itself if name.startswith("chat")]
