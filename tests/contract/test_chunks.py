"""Planned chunks and budgets against what vLLM schedules, step by step."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm import journal
from headway_runtime.executors.vllm.work_support import work_watch
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.timing import decode_clock
from tests.contract.engines import policy

CHAT = TrafficClass("chat", ttft_ms=60_000, tpot_ms=40)
BATCH = TrafficClass("batch", deadline_s=600)
CLASSES = (CHAT, BATCH)


def work_of(engine: Any) -> Any:
    return engine.scheduler._headway._executor._work


def test_an_urgent_prompt_overtakes_a_running_one(make: Any, plans: list[StepPlan]) -> None:
    engine = make(policy(classes=CLASSES))
    engine.add("batch", "batch", prompt_tokens=2000)
    assert engine.step().num_scheduled_tokens == {"batch": 256}
    engine.add("chat", "chat", prompt_tokens=300)
    assert engine.step().num_scheduled_tokens == {"chat": 256}
    assert plans[-1].chunks == {"batch": 0}
    assert engine.step().num_scheduled_tokens == {"chat": 44, "batch": 212}
    assert plans[-1].chunks == {"chat": 44, "batch": 212}
    assert set(engine.running) == {"batch", "chat"}


def test_chunks_are_forgotten_after_the_step(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    engine.add("batch", "batch", prompt_tokens=2000)
    engine.step()
    engine.add("chat", "chat", prompt_tokens=300)
    engine.step()
    assert (
        not {"_reserve_prefill_lookahead", "_mamba_block_aligned_split"}
        & vars(engine.scheduler).keys()
    )
    assert not engine.scheduler.need_mamba_block_aligned_split
    engine.publish(policy(2, classes=CLASSES, mode=Mode.OFF))
    assert engine.step().num_scheduled_tokens == {"batch": 256}


def test_every_decode_gets_its_token_and_every_chunk_is_as_planned(
    make: Any, plans: list[StepPlan]
) -> None:
    engine, random = make(policy(classes=CLASSES), blocks=400), Random(3)  # noqa: S311 - no secret
    for number in range(60):
        name = random.choice(("chat", "batch"))
        engine.add(
            f"r{number}",
            name,
            prompt_tokens=random.randint(1, 700),
            output_tokens=random.randint(1, 60),
        )
    for _ in range(3000):
        if not engine.scheduler.has_requests():
            break
        decoding = [
            each.request_id
            for each in engine.scheduler.running
            if each.num_computed_tokens >= each.num_prompt_tokens and each.num_output_tokens
        ]
        output = engine.step()
        tokens, plan = output.num_scheduled_tokens, plans[-1]
        assert output.total_num_scheduled_tokens <= plan.limits.token_budget
        preempted = output.preempted_req_ids or set()
        for name, chunk in plan.chunks.items():
            assert tokens.get(name, 0) <= chunk
            if not preempted:
                assert tokens.get(name, 0) == chunk
        if not preempted:
            assert all(tokens.get(name) == 1 for name in decoding)
        if random.random() < 0.02 and engine.running:
            engine.scheduler.finish_requests(engine.running[0], RequestStatus.FINISHED_ABORTED)
    assert not engine.scheduler.has_requests()
    assert engine.record.failed_total == 0
    assert len(work_of(engine)._decodes) == 0
    assert not work_of(engine)._prefills
    assert not work_of(engine)._requests


def test_what_it_follows_is_what_runs(make: Any) -> None:
    engine, random = make(policy(classes=CLASSES), blocks=150), Random(5)  # noqa: S311 - no secret
    for number in range(40):
        engine.add(f"r{number}", "chat", prompt_tokens=random.randint(1, 400), output_tokens=50)
    preemptions = 0
    for _ in range(600):
        if not engine.scheduler.has_requests():
            break
        output = engine.step()
        preemptions += len(output.preempted_req_ids or ())
        followed = work_of(engine)
        decodes = [
            each
            for each in engine.scheduler.running
            if each.num_computed_tokens >= each.num_tokens - 1 and each.num_output_tokens
        ]
        assert len(followed._decodes) == len(decodes)
        context = sum(each.num_computed_tokens for each in decodes)
        assert followed._decodes.context_tokens == context
        prefills = {each.request_id for each in engine.scheduler.running} - {
            each.request_id for each in decodes
        }
        assert set(followed._prefills) == prefills
    assert preemptions
    assert not engine.scheduler.has_requests()


def test_a_step_is_lowered_for_tokens_that_are_due(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long this machine pauses between two steps, the token is still worth hurrying for.
    monkeypatch.setattr(decode_clock, "HOPELESS_S", 60.0)
    engine = make(policy(classes=CLASSES))
    engine.add("chat", "chat", prompt_tokens=16, output_tokens=500)
    engine.step()
    work = work_of(engine)
    # A machine on which a prompt token takes 10 ms.
    slow = work.clock.step_time._mixed
    slow.coefficients = replace(slow.coefficients, prefill_token_s=0.01)
    engine.add("batch", "batch", prompt_tokens=2000)
    output = engine.step()
    assert output.num_scheduled_tokens.get("batch", 0) < 64
    assert engine.record.decision == Decision.ACT
    assert engine.record.planned_token_budget < 256


def test_draft_tokens_leave_budgets_to_the_policy(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    engine.scheduler.num_spec_tokens = 2
    assert work_watch(engine.scheduler) is None


def test_a_prompt_that_gets_no_blocks_holds_up_nobody(make: Any, plans: list[StepPlan]) -> None:
    engine = make(policy(classes=CLASSES), blocks=70)
    engine.add("batch", "batch", prompt_tokens=1000)
    engine.step()
    engine.step()
    engine.add("chat", "chat", prompt_tokens=700)
    stood_still = sum(not output.total_num_scheduled_tokens for output in engine.run())
    assert plans[2].chunks == {"batch": 0}
    assert plans[2].admits
    assert stood_still <= 2
    assert engine.admitted == ["batch", "chat"]


def test_chunks_and_budgets_hold_under_full_kv_blocks_with_aborts(
    make: Any, plans: list[StepPlan]
) -> None:
    engine, random = make(policy(classes=CLASSES), blocks=60), Random(11)  # noqa: S311 - no secret
    sent = ended = standing = 0
    for _ in range(3000):
        while len(engine.scheduler.requests) < 20:
            engine.add(
                f"r{sent}",
                random.choice(("chat", "batch")),
                prompt_tokens=random.randint(1, 500),
                output_tokens=random.randint(1, 80),
            )
            sent += 1
        output = engine.step()
        assert output.total_num_scheduled_tokens <= plans[-1].limits.token_budget
        standing = 0 if output.total_num_scheduled_tokens else standing + 1
        assert standing < 3
        if random.random() < 0.05:
            name = random.choice(list(engine.scheduler.requests))
            engine.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
            ended += 1
    assert engine.record.preemptions_total > 20
    assert engine.record.failed_total == 0
    assert sent - ended > 200


def test_without_statistics_what_has_ended_is_forgotten_too(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(classes=CLASSES))
    monkeypatch.setattr(journal.Journal, "finished", _broken)
    for number in range(5):
        engine.add(f"r{number}", "chat", prompt_tokens=100, output_tokens=3)
    for _ in engine.run():
        pass
    assert not work_of(engine)._requests
    assert len(work_of(engine)._decodes) == 0


def _broken(*_: Any) -> Any:
    raise OSError("no space left")


def test_a_running_prompt_that_will_be_late_gives_way(make: Any, plans: list[StepPlan]) -> None:
    long = TrafficClass("long", ttft_ms=100_000, tpot_ms=40)
    engine = make(policy(classes=(CHAT, long)))
    engine.add("long", "long", prompt_tokens=2000, arrival_s=-60.0)
    assert engine.step().num_scheduled_tokens == {"long": 256}
    engine.publish(policy(2, classes=(CHAT, replace(long, ttft_ms=30_000))))
    engine.step()
    assert not plans[-1].late_prefills
    for number in range(3):
        engine.add(f"chat{number}", "chat", prompt_tokens=120, arrival_s=-1.0)
    first = engine.step().num_scheduled_tokens
    assert plans[-1].late_prefills == ("long",)
    assert plans[-1].late == ()
    assert first == {"chat0": 120, "chat1": 120, "chat2": 16}
    engine.step()
    assert not plans[-1].late_prefills
    (told,) = [each for each in work_of(engine)._prefills.values() if each.is_late]
    assert told.request.request_id == "long"
    for _ in engine.run():
        pass
    assert len(engine.admitted) == 4
