"""What vLLM tells of a request's first token and of its end, whatever way it ends."""

from __future__ import annotations

import random
import time
from concurrent.futures import Future
from typing import Any

import pytest
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.histogram import bucket_of
from headway_runtime.policy import Mode, TrafficClass
from tests.contract.engines import policy

pytestmark = pytest.mark.filterwarnings("default")

CHAT = TrafficClass("chat", ttft_ms=600_000, tpot_ms=600_000)
HASTY = TrafficClass("hasty", ttft_ms=1)
FREE = TrafficClass("free")
CLASSES = (CHAT, HASTY, FREE)


def send(engine: Any, name: str, kind: str, age_s: float = 1.0, **other: Any) -> None:
    engine.add(name, kind, arrival_s=time.time() - engine.began_s - age_s, **other)


def finish(engine: Any, names: Any, status: Any = RequestStatus.FINISHED_ABORTED) -> Any:
    return engine.scheduler.finish_requests(names, status)


@pytest.mark.parametrize("mode", Mode)
def test_requests_are_held_against_their_objectives(make: Any, mode: Mode) -> None:
    engine = make(policy(classes=CLASSES, mode=mode))
    for kind in ("chat", "hasty", "free"):
        send(engine, kind, kind)
    engine.add("none")
    for _ in engine.run():
        pass
    assert engine.totals == {"chat": (1, 1), "hasty": (1, 0), "free": (1, 1)}
    assert engine.under_way == 0


def test_time_to_first_token_is_from_the_arrival_that_the_front_end_saw(make: Any) -> None:
    engine = make(policy(classes=(TrafficClass("chat", ttft_ms=100_000),)))
    send(engine, "r", "chat", age_s=50.0)
    engine.step()
    [record] = engine.statistics().classes
    [bucket] = [bucket for bucket, count in enumerate(record.ttft.both) if count]
    assert bucket_of(0.5) <= bucket <= bucket_of(1.5)


def test_a_prompt_in_chunks_has_its_first_token_after_the_last_of_them(make: Any) -> None:
    engine = make(policy(classes=CLASSES, token_budget=32))
    send(engine, "r", "chat", prompt_tokens=100)
    seen = []
    for _ in engine.run():
        [record] = [each for each in engine.statistics().classes if each.name == "chat"]
        seen.append(sum(record.ttft.both))
    assert seen[:4] == [0, 0, 0, 1]
    assert sum(record.tpot.both) == seen[-1] == 1


def test_tokens_count_once_each_with_overlapping_steps(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "r", "chat", output_tokens=5)
    ahead = engine.schedule()
    while engine.scheduler.has_requests():
        behind, ahead = ahead, engine.schedule()
        engine.finish(behind)
    engine.finish(ahead)
    assert (engine.totals["chat"], engine.under_way) == ((1, 1), 0)
    assert engine.record.generated_tokens_total == 5


def test_aborts_by_clients_are_left_out(make: Any) -> None:
    engine = make(policy(classes=CLASSES, max_batch_size=1))
    for name in ("running", "waiting"):
        send(engine, name, "free", output_tokens=50)
    engine.step()
    finish(engine, ["running", "waiting", "unknown"])
    engine.step()
    assert (engine.totals["free"], engine.under_way) == ((0, 0), 0)


def test_names_that_can_be_read_only_once_are_read_by_the_engine(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "r", "free")
    finish(engine, iter(["r"]), RequestStatus.FINISHED_ERROR)
    assert engine.totals["free"] == (1, 0)


def test_what_the_engine_gives_up_is_missed(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    for name in ("a", "b"):
        send(engine, name, "free", output_tokens=50)
    engine.step()
    finish(engine, None)
    assert (engine.totals["free"], engine.under_way) == ((2, 0), 0)


def test_errors_are_missed(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    grammar: Future[Any] = Future()
    grammar.set_exception(ValueError("no grammar"))
    send(engine, "bad", "free", grammar=grammar)
    send(engine, "good", "free", output_tokens=50)
    engine.step()
    assert (engine.totals["free"], engine.under_way) == ((1, 0), 1)


def test_a_request_that_met_its_stop_string_has_ended_well(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "r", "free", output_tokens=50, stop=["x"])
    engine.step()
    finish(engine, "r")
    assert engine.totals["free"] == (1, 1)


def test_a_preempted_request_is_followed_to_its_end(make: Any) -> None:
    engine = make(policy(classes=CLASSES, token_budget=128), blocks=14)
    for number in range(6):
        send(engine, f"r{number}", "chat", prompt_tokens=40, output_tokens=60)
    for _ in engine.run():
        pass
    assert engine.record.preemptions_total > 0
    assert (engine.totals["chat"], engine.under_way) == ((6, 6), 0)
    [record] = [each for each in engine.statistics().classes if each.name == "chat"]
    assert sum(record.ttft.both) == sum(record.tpot.both) == 6


def test_a_paused_session_is_left_out(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    send(engine, "session", "free", output_tokens=2, resumable=True)
    while engine.scheduler.num_waiting_for_streaming_input == 0:
        engine.step()
    assert (engine.totals["free"], engine.under_way) == ((0, 0), 1)
    finish(engine, ["session"])
    assert (engine.totals["free"], engine.under_way) == ((0, 0), 0)


def test_a_change_of_policy_keeps_the_totals_of_classes_that_stay(make: Any) -> None:
    engine = make(policy(1, classes=CLASSES))
    send(engine, "r", "free")
    for _ in engine.run():
        pass
    engine.publish(policy(2, classes=(TrafficClass("new"), FREE)))
    send(engine, "s", "free")
    for _ in engine.run():
        pass
    assert engine.totals == {"new": (0, 0), "free": (2, 2)}


def test_an_engine_that_runs_stock_is_measured_too(make: Any) -> None:
    def priority(configuration: Any) -> None:
        configuration.scheduler_config.policy = "priority"

    engine = make(policy(classes=CLASSES), prepare=priority)
    send(engine, "r", "free")
    while engine.scheduler.has_requests():
        engine.step()
    assert engine.totals["free"] == (1, 1)


def test_without_an_nvidia_gpu_none_is_sampled(make: Any) -> None:
    engine = make(policy())
    engine.add("r")
    engine.step()
    assert engine.statistics().load.sampled_ns == 0


def test_after_thousands_of_requests_that_end_in_any_way_nothing_is_left(make: Any) -> None:
    """Ends by length, abort, error, stop string and by the engine; waiting, running, preempted."""
    chance = random.Random(7)  # noqa: S311 - the same chance every time
    limited = (CHAT, HASTY, TrafficClass("free", max_running=3))
    engine = make(policy(1, classes=limited), blocks=60)
    alive: list[str] = []
    for number in range(3000):
        name = f"r{number}"
        kind = chance.choice(["chat", "hasty", "free", "unknown"])
        stop = {"stop": ["x"]} if chance.random() < 0.1 else {}
        send(engine, name, kind, output_tokens=chance.randint(1, 40), **stop)
        alive.append(name)
        if chance.random() < 0.4:
            engine.step()
        if chance.random() < 0.5:
            status = chance.choice([RequestStatus.FINISHED_ABORTED, RequestStatus.FINISHED_ERROR])
            finish(engine, chance.sample(alive, k=min(len(alive), chance.randint(1, 3))), status)
        if chance.random() < 0.01:
            finish(engine, None)
        if chance.random() < 0.01:
            engine.scheduler.reset_prefix_cache(reset_running_requests=True)
        if chance.random() < 0.02:
            modes = [Mode.ACT, Mode.ACT, Mode.SHADOW, Mode.OFF]
            engine.publish(policy(number + 2, classes=limited, mode=chance.choice(modes)))
        alive = [each for each in alive if each in engine.scheduler.requests]
        assert engine.under_way <= len(alive)
    for _ in engine.run(5000):
        pass
    assert engine.under_way == 0
    assert engine.scheduler._headway._executor.room._queue._lanes._lane_of == {}
    assert engine.record.failed_total == 0
    for requests, attained in engine.totals.values():
        assert 0 <= attained <= requests
        assert requests > 100


def test_a_request_that_ends_in_a_way_of_its_own_is_forgotten(make: Any) -> None:
    engine = make(policy(classes=CLASSES))
    for number in range(2000):
        send(engine, f"r{number}", "free")
        # Past the plug-in, as a later version might.
        Scheduler.finish_requests(engine.scheduler, f"r{number}", RequestStatus.FINISHED_ABORTED)
    assert engine.under_way < 600
