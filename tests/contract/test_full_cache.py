"""Engines whose KV cache is full, whose clients leave, and requests that it cannot hold."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.step_record import Decision
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.plan import StepPlan
from tests.contract.engines import BLOCK_TOKENS, policy

CHAT = TrafficClass("chat", ttft_ms=60_000, tpot_ms=40)
BATCH = TrafficClass("batch", deadline_s=600)
CLASSES = (CHAT, BATCH)
BLOCKS = 41
"""One of them is vLLM's own, for nothing."""
CAPACITY_TOKENS = (BLOCKS - 1) * BLOCK_TOKENS


class Clients:
    """Clients that always want more than fits; some of them leave."""

    def __init__(self, engine: Any, seed: int) -> None:
        self.engine = engine
        self._random = Random(seed)  # noqa: S311 - the same chance every time
        self.sent = self.left = 0

    def send(self, most: int = 24) -> None:
        while len(self.engine.scheduler.requests) < most:
            self.engine.add(
                f"r{self.sent}",
                self._random.choice(("chat", "batch", None)),
                prompt_tokens=self._random.randint(1, 300),
                output_tokens=self._random.randint(1, 80),
                arrival_s=float(self.sent),
            )
            self.sent += 1

    def leave(self, chance: float = 0.05) -> None:
        """With this chance up to three of them leave, whatever their requests are at."""
        if self._random.random() < chance:
            names = sorted(self.engine.scheduler.requests)
            gone = self._random.sample(names, k=min(len(names), self._random.randint(1, 3)))
            self.engine.scheduler.finish_requests(gone, RequestStatus.FINISHED_ABORTED)
            self.left += len(gone)


def usage(engine: Any) -> float:
    return float(engine.scheduler.kv_cache_manager.usage)


def limits(engine: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(engine.scheduler).items() if "max_num" in name}


def assert_as_planned(output: Any, plan: StepPlan) -> None:
    tokens = output.num_scheduled_tokens
    assert sum(tokens.values()) == output.total_num_scheduled_tokens <= plan.limits.token_budget
    for name, chunk in plan.chunks.items():
        assert tokens.get(name, 0) <= chunk


def assert_nothing_is_left(engine: Any) -> None:
    executor = engine.scheduler._headway._executor
    assert usage(engine) == 0
    assert engine.under_way == 0
    assert engine.record.failed_total == 0
    assert not executor._work._requests
    assert not executor._work._prefills
    assert len(executor._work._decodes) == 0


@pytest.mark.parametrize("ahead", [False, True], ids=["steps one by one", "steps ahead"])
def test_plans_hold_for_thousands_of_steps_with_all_blocks_taken(
    make: Any, plans: list[StepPlan], ahead: Any
) -> None:
    engine = make(policy(classes=CLASSES, max_batch_size=12), blocks=BLOCKS)
    clients, before = Clients(engine, seed=17), limits(engine)
    full = standing = 0
    in_flight: list[Any] = []
    for _ in range(4000):
        clients.send()
        in_flight.append(engine.schedule())
        assert_as_planned(in_flight[-1], plans[-1])
        assert limits(engine) == before
        assert len(engine.running) <= 12
        full += usage(engine) == 1
        standing = 0 if in_flight[-1].total_num_scheduled_tokens else standing + 1
        assert standing < 4
        # Also those leave whose tokens are just being computed.
        clients.leave()
        if len(in_flight) > ahead:
            engine.finish(in_flight.pop(0))
    for output in in_flight:
        engine.finish(output)
    assert full > 100
    assert engine.record.preemptions_total > 20
    assert clients.left > 100
    assert clients.sent - clients.left > 100
    assert {each.decision for each in engine.statistics(1000).records} == {Decision.ACT}
    for _ in engine.run(5000):
        pass
    assert_nothing_is_left(engine)


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.OFF])
def test_shadow_and_off_schedule_what_vllm_would(make: Any, mode: Mode) -> None:
    shown = []
    for scheduler_class in (None, AsyncScheduler):
        other = {} if scheduler_class is None else {"scheduler_class": scheduler_class}
        settings = {"mode": mode, "token_budget": 32, "max_batch_size": 2}
        engine = make(policy(classes=CLASSES, **settings), blocks=BLOCKS, **other)
        clients = Clients(engine, seed=23)
        steps = []
        for _ in range(1500):
            clients.send()
            output = engine.step()
            steps.append((list(output.num_scheduled_tokens.items()), output.preempted_req_ids))
            clients.leave()
        shown.append(steps)
    assert shown[0] == shown[1]
    assert any(preempted for _, preempted in shown[0])


def test_clients_that_all_leave_at_once_leave_nothing_behind(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=BLOCKS)
    clients = Clients(engine, seed=3)
    for _ in range(20):
        clients.send()
        output = engine.schedule()
        names = list(engine.scheduler.requests)
        engine.scheduler.finish_requests(names, RequestStatus.FINISHED_ABORTED)
        engine.finish(output)
        engine.step()
        assert_nothing_is_left(engine)
    engine.add("next", "chat")
    for _ in engine.run():
        pass
    assert engine.admitted[-1] == "next"


def test_a_client_that_leaves_makes_room_at_the_next_step(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=BLOCKS)
    engine.add("large", "chat", prompt_tokens=CAPACITY_TOKENS - 100, output_tokens=90)
    for _ in range(3):
        engine.step()
    engine.add("next", "chat", prompt_tokens=200)
    for _ in range(5):
        engine.step()
    assert engine.waiting == ["next"]
    engine.scheduler.finish_requests("large", RequestStatus.FINISHED_ABORTED)
    assert engine.step().num_scheduled_tokens == {"next": 200}


def test_what_is_more_urgent_passes_a_request_larger_than_the_kv_cache(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=BLOCKS)
    engine.add("before", "batch", prompt_tokens=100, output_tokens=30, arrival_s=0)
    engine.step()
    engine.add("too-large", "batch", prompt_tokens=CAPACITY_TOKENS + 300, arrival_s=1)
    chats = [f"chat-{number}" for number in range(5)]
    for number, name in enumerate((*chats, "behind")):
        engine.add(name, name.partition("-")[0], output_tokens=20, arrival_s=2 + number)
    for _ in range(200):
        engine.step()
    assert set(engine.admitted) >= {"before", *chats}
    assert "too-large" in engine.scheduler.requests
    assert engine.running == []
    # vLLM starts no engine whose KV cache holds less than its longest request. If there is one
    # nevertheless, all that is less urgent waits, as in vLLM itself, until its client gives up.
    engine.scheduler.finish_requests("too-large", RequestStatus.FINISHED_ABORTED)
    for _ in engine.run(100):
        pass
    assert engine.admitted[-1] == "behind"
    assert_nothing_is_left(engine)


def test_an_answer_that_outgrows_the_kv_cache_ends_with_its_client(make: Any) -> None:
    engine = make(policy(classes=CLASSES), blocks=BLOCKS)
    engine.add("grows", "batch", prompt_tokens=400, output_tokens=CAPACITY_TOKENS, arrival_s=0)
    engine.step()
    for number in range(6):
        kind = "batch" if number % 2 else "chat"
        engine.add(f"r{number}", kind, output_tokens=100, arrival_s=1 + number)
    for _ in range(600):
        engine.step()
    assert engine.record.preemptions_total > 0
    assert engine.waiting[0] == "grows"
    assert engine.running == []
    engine.scheduler.finish_requests("grows", RequestStatus.FINISHED_ABORTED)
    for _ in engine.run(600):
        pass
    assert {each.decision for each in engine.statistics(1000).records} == {Decision.ACT}
    assert_nothing_is_left(engine)
