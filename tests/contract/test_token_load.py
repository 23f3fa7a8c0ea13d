"""How much work is offered to a real scheduler, against what it was sent and what it answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import exp
from typing import Any

import pytest
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.statistics_record import NOT_TOLD
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.timing.forgetting import MEMORY_S
from headway_runtime.scheduling.timing.pace import TPOT_MARGIN
from headway_runtime.scheduling.timing.step_shape import attention_pairs
from headway_runtime.scheduling.timing.step_time_model import Coefficients
from tests.contract.engines import BLOCK_TOKENS, policy

pytestmark = pytest.mark.filterwarnings("default")

CHAT = TrafficClass("chat", ttft_ms=60_000, tpot_ms=40)
CLASSES = (CHAT, TrafficClass("batch"))

Work = Callable[[Coefficients], float]


def work_of(engine: Any) -> Any:
    return engine.scheduler._headway._executor._work


def cost_of(engine: Any) -> Coefficients:
    cost: Coefficients = work_of(engine).clock.step_time.mixed
    return cost


def request_s(cost: Coefficients, prompt: int, answer: int, cached: int = 0) -> float:
    """Time that a request takes besides that of the steps it is in."""
    computed, decodes = prompt - cached, answer - 1
    before = sum(range(prompt, prompt + decodes))
    return (
        cost.prefill_token_s * computed
        + cost.attention_pair_s * attention_pairs(cached, computed)
        + cost.decode_s * decodes
        + cost.context_token_s * before
    )


def told(engine: Any) -> tuple[float, float]:
    load = engine.statistics().load
    assert NOT_TOLD not in (load.token_load_ppm, load.step_overhead_ppm)
    return load.token_load_ppm / 1e6, load.step_overhead_ppm / 1e6


def assert_told(engine: Any, began_s: float, work_s: float, less_s: float = 0.0) -> None:
    """It tells this work or a little less, whenever in the time since it began that was offered."""
    seen_s = time.monotonic() - began_s
    least = (work_s - less_s) * exp(-seen_s / MEMORY_S) / max(1.0, seen_s)
    assert least - 2e-6 <= told(engine)[0] <= work_s + 2e-6


@pytest.mark.parametrize("mode", Mode)
def test_what_was_sent_and_answered_is_told(make: Any, mode: Mode) -> None:
    began_s = time.monotonic()
    engine = make(policy(classes=CLASSES, mode=mode))
    sizes = [(900, 30), (500, 60), (1, 1), (64, 200)]
    for number, (prompt, answer) in enumerate(sizes):
        kind = "chat" if number % 2 else "batch"
        engine.add(f"r{number}", kind, prompt_tokens=prompt, output_tokens=answer)
    for _ in engine.run():
        pass
    cost = cost_of(engine)
    assert_told(engine, began_s, sum(request_s(cost, *each) for each in sizes))
    assert told(engine)[1] == pytest.approx(
        min(1.0, cost.step_s / ((1 - TPOT_MARGIN) * 0.04)), abs=2e-6
    )
    assert not work_of(engine).load._arrivals
    # The planner is told how many have come, and how long launches take.
    in_hand = work_of(engine).work(time.monotonic(), time.time(), 0.0)
    assert 0 < in_hand.arrivals_per_s <= len(sizes)
    assert in_hand.decode_launch_s == work_of(engine).clock.decode_launch_s


def test_tokens_count_once_with_overlapping_steps(make: Any) -> None:
    began_s = time.monotonic()
    engine = make(policy(classes=CLASSES))
    engine.add("r", "chat", prompt_tokens=300, output_tokens=50)
    ahead = engine.schedule()
    while engine.scheduler.has_requests():
        behind, ahead = ahead, engine.schedule()
        engine.finish(behind)
    engine.finish(ahead)
    assert_told(engine, began_s, request_s(cost_of(engine), 300, 50))


def test_prompts_count_when_they_come_and_answers_are_expected_of_those_that_wait(
    make: Any,
) -> None:
    began_s = time.monotonic()
    engine = make(policy(classes=CLASSES, max_batch_size=1))
    engine.add("first", "chat", prompt_tokens=100, output_tokens=21)
    for _ in engine.run():
        pass
    for number in range(5):
        engine.add(f"r{number}", "chat", prompt_tokens=200, output_tokens=400)
    engine.step()
    cost = cost_of(engine)
    sent_s = request_s(cost, 100, 21) + 5 * request_s(cost, 200, 1)
    # The answer of the one that is known took 20 decodes.
    expected_s = 4 * (request_s(cost, 100, 21) - request_s(cost, 100, 1))
    assert_told(engine, began_s, sent_s + expected_s)


def test_what_is_computed_again_was_not_offered_again(make: Any) -> None:
    began_s = time.monotonic()
    engine = make(policy(classes=CLASSES), blocks=60)
    sizes = [(400, 100)] * 2
    for number, (prompt, answer) in enumerate(sizes):
        engine.add(f"r{number}", "chat", prompt_tokens=prompt, output_tokens=answer)
    for _ in engine.run():
        pass
    preemptions = engine.record.preemptions_total
    assert preemptions > 0
    cost = cost_of(engine)
    # One token comes each time with what is computed again, without a decode.
    less_s = preemptions * (request_s(cost, 499, 2) - request_s(cost, 499, 1))
    assert_told(engine, began_s, sum(request_s(cost, *each) for each in sizes), less_s)


def test_what_was_cached_is_not_offered(make: Any) -> None:
    init_none_hash(sha256)
    began_s = time.monotonic()

    def prepare(configuration: Any) -> None:
        configuration.cache_config.enable_prefix_caching = True

    engine = make(policy(classes=CLASSES), prepare=prepare)
    hasher = get_request_block_hasher(BLOCK_TOKENS, sha256)
    sizes = [(1600, 2, 0), (1605, 2, 1600)]
    for number, (prompt, answer, cached) in enumerate(sizes):
        engine.add(
            f"r{number}",
            "chat",
            prompt_tokens=prompt,
            output_tokens=answer,
            block_hasher=hasher,
        )
        first = engine.step()
        assert first.scheduled_new_reqs[0].num_computed_tokens == cached
        for _ in engine.run():
            pass
    cost = cost_of(engine)
    assert_told(engine, began_s, sum(request_s(cost, *each) for each in sizes))


def test_a_request_that_is_given_up_was_offered(make: Any) -> None:
    began_s = time.monotonic()
    engine = make(policy(classes=CLASSES, max_batch_size=1))
    for name in ("running", "waiting"):
        engine.add(name, "chat", prompt_tokens=200, output_tokens=100)
    engine.step()
    engine.scheduler.finish_requests(["running", "waiting"], RequestStatus.FINISHED_ABORTED)
    engine.step()
    assert_told(engine, began_s, 2 * request_s(cost_of(engine), 200, 1))
    assert not work_of(engine).load._arrivals


def test_before_there_is_a_policy_nothing_is_told(make: Any) -> None:
    engine = make()
    engine.add("r")
    engine.step()
    load = engine.statistics().load
    assert (load.token_load_ppm, load.step_overhead_ppm) == (NOT_TOLD, NOT_TOLD)


def test_where_steps_have_no_length_nothing_is_told(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    engine.scheduler._headway._executor._work = None
    engine.add("r", "chat")
    engine.step()
    load = engine.statistics().load
    assert (load.token_load_ppm, load.step_overhead_ppm) == (NOT_TOLD, NOT_TOLD)
