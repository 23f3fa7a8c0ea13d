"""Limits on how many requests of a class run, carried out by vLLM's own scheduler."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from typing import Any

import pytest
from vllm.v1.request import RequestStatus
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.executors.vllm.waiting_queue import MOVES_PER_STEP
from headway_runtime.policy import Mode, TrafficClass
from tests.contract.engines import policy

pytestmark = pytest.mark.filterwarnings("default")

CHAT = TrafficClass("chat", ttft_ms=500)


def limited(counter: int = 1, limit: int | None = 2, **fields: Any) -> Any:
    batch = TrafficClass("batch", deadline_s=60, max_running=limit)
    return policy(counter, classes=(CHAT, batch), **fields)


def running(engine: Any) -> Counter[str]:
    return Counter(name.partition("-")[0] for name in engine.running)


def send(engine: Any, kind: str, count: int, **other: Any) -> None:
    for _ in range(count):
        number = len(engine.scheduler.requests) + len(engine.steps)
        traffic_class = None if kind == "none" else kind
        engine.add(f"{kind}-{number}", traffic_class, arrival_s=float(number), **other)


def serve(engine: Any, limit: int = 2) -> None:
    """Steps to the end, in none of which the limit is exceeded."""
    for _ in engine.run():
        assert running(engine)["batch"] <= limit
        if engine.record.step:
            assert engine.record.decision == Decision.ACT


def test_a_limit_holds_and_everybody_is_served(make: Any) -> None:
    engine = make(limited())
    send(engine, "batch", 9, output_tokens=5)
    serve(engine)
    assert len(engine.admitted) == 9


def test_others_pass_a_class_that_is_full(make: Any) -> None:
    engine = make(limited())
    send(engine, "batch", 5, output_tokens=30)
    send(engine, "none", 3, output_tokens=30)
    send(engine, "chat", 2, output_tokens=30)
    engine.step()
    assert running(engine) == {"batch": 2, "none": 3, "chat": 2}
    engine.step()
    assert running(engine) == {"batch": 2, "none": 3, "chat": 2}


def test_the_most_urgent_of_a_class_goes_first_when_room_comes(make: Any) -> None:
    engine = make(limited(limit=1))
    send(engine, "batch", 3, output_tokens=3)
    serve(engine, limit=1)
    assert engine.admitted == ["batch-0", "batch-1", "batch-2"]


def test_a_held_class_keeps_its_place_by_urgency_against_others(make: Any) -> None:
    engine = make(limited(limit=1, max_batch_size=1))
    send(engine, "batch", 2, output_tokens=3)
    send(engine, "none", 1, output_tokens=3)
    serve(engine, limit=1)
    # With one place in all, nobody passes anybody: deadlines go first.
    assert engine.admitted == ["batch-0", "batch-1", "none-2"]


def test_limit_and_batch_size_and_budget_hold_together(make: Any) -> None:
    engine = make(limited(max_batch_size=4, token_budget=64))
    for kind in ("batch", "none", "chat") * 5:
        send(engine, kind, 1, output_tokens=6)
    for output in engine.run():
        assert running(engine)["batch"] <= 2
        assert len(engine.running) <= 4
        assert output.total_num_scheduled_tokens <= 64
    assert len(engine.admitted) == 15


def test_the_batch_is_filled_in_the_same_step(make: Any) -> None:
    engine = make(limited())
    send(engine, "batch", 20, prompt_tokens=2, output_tokens=9)
    send(engine, "none", 20, prompt_tokens=2, output_tokens=9)
    for _ in range(3):
        engine.step()
    # One of the 16 slots is kept for requests with a TTFT.
    assert running(engine) == {"batch": 2, "none": 13}


def test_preempted_requests_count_as_not_running_and_come_back(make: Any) -> None:
    engine = make(limited(), blocks=14)
    send(engine, "batch", 4, prompt_tokens=40, output_tokens=60)
    send(engine, "none", 4, prompt_tokens=40, output_tokens=60)
    serve(engine)
    assert engine.record.preemptions_total > 0
    assert set(engine.admitted) == {f"{'batch' if n < 4 else 'none'}-{n}" for n in range(8)}


def test_requests_preempted_all_at_once_are_admitted_within_the_limit(make: Any) -> None:
    engine = make(limited(limit=4))
    send(engine, "batch", 6, output_tokens=40)
    send(engine, "none", 2, output_tokens=40)
    for _ in range(3):
        engine.step()
    engine.scheduler.reset_prefix_cache(reset_running_requests=True)
    assert engine.running == []
    engine.publish(limited(2, limit=1))
    serve(engine, limit=1)
    assert engine.record.failed_total == 0


def test_a_lowered_limit_takes_nobody_out(make: Any) -> None:
    engine = make(limited(limit=4))
    send(engine, "batch", 8, output_tokens=20)
    engine.step()
    engine.publish(limited(2, limit=1))
    output = engine.step()
    assert running(engine)["batch"] == 4
    assert sum(output.num_scheduled_tokens.values()) == 4
    for _ in engine.run():
        assert running(engine)["batch"] in (0, 1, 4)
    assert len(engine.admitted) == 8


def test_a_raised_limit_takes_effect_at_the_next_step(make: Any) -> None:
    engine = make(limited(limit=1))
    send(engine, "batch", 8, output_tokens=20)
    engine.step()
    engine.publish(limited(2, limit=5))
    engine.step()
    assert running(engine)["batch"] == 5
    engine.publish(limited(3, limit=None))
    engine.step()
    assert running(engine)["batch"] == 8


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.OFF])
def test_shadow_and_off_leave_vllms_own_order_alone(make: Any, mode: Mode) -> None:
    engine = make(limited(1))
    send(engine, "batch", 5, prompt_tokens=60, output_tokens=20)
    send(engine, "none", 2, output_tokens=20)
    engine.step()
    assert engine.waiting == ["batch-2", "batch-3", "batch-4"]
    engine.publish(limited(2, mode=mode))
    engine.step()
    assert running(engine) == {"batch": 5, "none": 2}
    assert engine.admitted[-3:] == ["batch-2", "batch-3", "batch-4"]
    send(engine, "chat", 1)
    assert engine.waiting == ["chat-9"]


def test_an_engine_that_is_never_to_act_is_left_as_it_is(make: Any) -> None:
    engine = make(limited(mode=Mode.SHADOW, max_batch_size=1))
    for kind in ("batch", "batch", "batch", "none", "chat"):
        send(engine, kind, 1, output_tokens=20)
    engine.step()
    assert engine.running == ["batch-0", "batch-1", "batch-2", "none-3", "chat-4"]


def test_held_requests_that_clients_give_up_leave_the_rest_in_order(make: Any) -> None:
    engine = make(limited(limit=1))
    send(engine, "batch", 6, output_tokens=4)
    send(engine, "none", 1, output_tokens=4)
    engine.step()
    engine.scheduler.finish_requests(["batch-1", "batch-3"], RequestStatus.FINISHED_ABORTED)
    serve(engine, limit=1)
    assert engine.admitted == ["batch-0", "none-6", "batch-2", "batch-4", "batch-5"]


def test_a_step_that_the_engine_decides_alone_disturbs_nothing_for_long(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(limited(limit=1))
    send(engine, "batch", 30, output_tokens=4)
    engine.step()
    with monkeypatch.context() as broken:
        broken.setattr(engine.scheduler._headway, "planner", lambda *_: 1 / 0)
        engine.step()
    assert engine.record.decision == Decision.FAILED
    assert running(engine)["batch"] > 1
    while running(engine)["batch"] > 1:
        engine.step()
    serve(engine, limit=1)
    assert len(engine.admitted) == 30


class Grammar(StructuredOutputGrammar):  # type: ignore[misc]
    """A grammar that takes every token."""

    def accept_tokens(self, *_: Any) -> bool:
        return True

    def is_terminated(self) -> bool:
        return False


# Of the rest nothing is called without a model.
Grammar.__abstractmethods__ = frozenset()


def test_requests_that_wait_for_their_grammar_are_held_back_too(make: Any) -> None:
    engine = make(limited(limit=1))
    grammars: list[Future[Any]] = [Future() for _ in range(3)]
    send(engine, "batch", 1, output_tokens=3)
    for grammar in grammars:
        send(engine, "batch", 1, output_tokens=3, grammar=grammar)
    send(engine, "chat", 1, output_tokens=3)
    engine.step()
    assert running(engine) == {"batch": 1, "chat": 1}
    for grammar in grammars:
        grammar.set_result(Grammar())
    serve(engine, limit=1)
    assert engine.admitted == ["chat-4", "batch-0", "batch-1", "batch-2", "batch-3"]


def test_a_request_whose_grammar_takes_long_holds_nobody_else_up(make: Any) -> None:
    engine = make(limited())
    grammar: Future[Any] = Future()
    send(engine, "batch", 1, output_tokens=3, grammar=grammar)
    send(engine, "batch", 2, output_tokens=3)
    send(engine, "none", 1, output_tokens=3)
    for _ in range(20):
        engine.step()
        assert running(engine)["batch"] <= 2
    assert engine.admitted == ["batch-1", "none-3", "batch-2"]
    grammar.set_result(Grammar())
    serve(engine)
    assert engine.admitted[-1] == "batch-0"


def test_what_vllm_passes_over_lets_nobody_slip_through(make: Any) -> None:
    engine = make(limited(limit=1))
    send(engine, "batch", 3, output_tokens=9)
    engine.step()
    grammar: Future[Any] = Future()
    send(engine, "chat", 1, output_tokens=3, grammar=grammar)
    for _ in range(4):
        engine.step()
        assert running(engine) == {"batch": 1}
    grammar.set_result(Grammar())
    engine.step()
    assert running(engine) == {"batch": 1, "chat": 1}


def test_a_grammar_that_cannot_be_compiled_fails_its_request_and_no_other(make: Any) -> None:
    engine = make(limited(limit=1))
    grammar: Future[Any] = Future()
    grammar.set_exception(ValueError("no grammar"))
    send(engine, "batch", 1, grammar=grammar)
    send(engine, "batch", 3, output_tokens=3)
    serve(engine, limit=1)
    assert engine.admitted == ["batch-1", "batch-2", "batch-3"]
    assert engine.totals["batch"][0] == 4


def test_paused_sessions_stay_out_of_the_way(make: Any) -> None:
    engine = make(limited(limit=1))
    engine.add("batch-session", "batch", output_tokens=2, resumable=True)
    while engine.scheduler.num_waiting_for_streaming_input == 0:
        engine.step()
    send(engine, "batch", 2)
    send(engine, "none", 1)
    for _ in engine.run():
        assert running(engine)["batch"] <= 1
    assert len(engine.admitted) == 4


def test_holding_back_stays_cheap_with_ten_thousand_waiting(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(limited(limit=2))
    for number in range(10_000):
        kind = "batch" if number % 2 else "none"
        traffic_class = None if kind == "none" else kind
        name = f"{kind}-{number}"
        engine.add(name, traffic_class, arrival_s=float(number), output_tokens=500)
    for _ in range(10_000 // MOVES_PER_STEP + 1):
        engine.step()
    looked_at = []
    classify = Classifier.traffic_class

    def count(self: Classifier, request: Any) -> Any:
        looked_at.append(request.request_id)
        return classify(self, request)

    monkeypatch.setattr(Classifier, "traffic_class", count)
    for number in range(100):
        engine.scheduler.finish_requests(engine.running[0], RequestStatus.FINISHED_ABORTED)
        engine.add(f"late-{number}", "batch", arrival_s=20_000.0, output_tokens=500)
        engine.step()
    # A newcomer and twice the 14 that a bisection looks at; the front, and each lane's first.
    assert 100 <= len(looked_at) <= 100 * 45
    assert running(engine)["batch"] <= 2
    assert engine.record.failed_total == 0
