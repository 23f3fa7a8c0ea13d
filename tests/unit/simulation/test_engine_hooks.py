"""What a benchmark does to a simulated engine: sends late, refuses, orders the queue."""

from __future__ import annotations

from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.scheduling.admission.refusal import Refusal, RefusalReason
from headway_runtime.scheduling.view import Limits
from tests.unit.simulation.watched import Watch, engine

REFUSAL = Refusal(RefusalReason.QUEUE_FULL, 1)


def arrival(at: float, prompt_tokens: int = 100, output_tokens: int = 2) -> Arrival:
    return Arrival(at, "chat", prompt_tokens, output_tokens)


def first_tokens(watch: Watch) -> list[str]:
    """Ids in the order of first tokens."""
    return sorted(watch.tokens, key=lambda name: watch.tokens[name][0])


def test_requests_are_numbered_as_they_come_whatever_the_order_of_sending() -> None:
    made, watch = engine(arrival(0.5, 50), arrival(0.1, 60), arrival(0.5, 70), arrival(0.3, 80))
    made.run_to_the_end(10.0)
    prompts = [watch.requests[str(number)].arrival.prompt_tokens for number in range(1, 5)]
    assert prompts == [60, 80, 50, 70]


class Follower(Watch):
    """Sends another request when the first one has ended."""

    sent_at = 0.0

    def token(self, request: Request, now_s: float) -> None:
        super().token(request, now_s)
        if request.is_finished and request.request_id == "1":
            self.sent_at = now_s
            self._made.send(arrival(now_s + 0.2))
            self._made.send(arrival(now_s - 1.0))


def test_requests_can_be_sent_while_the_engine_runs() -> None:
    made, _ = engine(arrival(0.0))
    made.recorder = watch = Follower(made, made._blocks)
    made.run_to_the_end(10.0)
    assert len(watch.tokens) == 3
    # What should have come before comes at once.
    assert watch.received_at["2"] == watch.sent_at
    assert 0.2 <= watch.received_at["3"] - watch.sent_at < 0.21


def test_a_refused_request_is_told_and_never_runs() -> None:
    made, watch = engine(arrival(0.0), arrival(0.1, 777), arrival(0.2))
    asked: list[float] = []

    def door(each: Arrival, now_s: float) -> Refusal | None:
        asked.append(now_s)
        return REFUSAL if each.prompt_tokens == 777 else None

    made.door = door
    made.run_to_the_end(10.0)
    assert watch.refusals == {2: (arrival(0.1, 777), REFUSAL)}
    assert sorted(watch.tokens) == ["1", "3"]
    assert len(asked) == 3
    assert asked[1] >= 0.1


def test_an_order_is_asked_before_each_step_and_followed() -> None:
    small = Limits(100, 1)
    made, watch = engine(*(arrival(0.0, prompt) for prompt in (90, 30, 60)), ceilings=small)
    waiting: list[Request] = []

    def shortest_first() -> list[Request]:
        waiting[:] = [each for each in watch_received(made) if each.request_id not in watch.tokens]
        return sorted(waiting, key=lambda each: each.arrival.prompt_tokens)

    made.order = shortest_first
    made.run_to_the_end(10.0)
    assert first_tokens(watch) == ["2", "3", "1"]


def watch_received(made: SimulatedEngine) -> list[Request]:
    """What waits, found as only a test may."""
    return list(made._waiting._everybody)


def test_how_full_it_is_agrees_with_its_report() -> None:
    made, _ = engine(*(arrival(0.01 * number) for number in range(40)), ceilings=Limits(200, 8))
    made.run(0.3)
    told, full = made.report(), made.occupancy
    assert (full.running, full.waiting) == (told.running, told.waiting)
    assert (full.kv_usage, full.token_budget) == (told.kv_usage, told.token_budget)
    assert full.running > 0
    assert full.waiting > 0
