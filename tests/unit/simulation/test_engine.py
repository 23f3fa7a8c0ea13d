"""The simulated engine: does it schedule as vLLM does, and tell what a pod would tell?"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.executors.interface import Executor
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.executors.simulated.step_time import StepTime
from headway_runtime.executors.simulated.traffic import Traffic, mixed
from headway_runtime.policy import Mode, Policy, Scope, Stamp, TrafficClass
from headway_runtime.scheduling.view import Limits

CEILINGS = Limits(8192, 256)
TEN_MS = StepTime(base_us=10_000, token_us=0, request_us=0, context_token_ns=0)
CHAT = TrafficClass("chat", ttft_ms=100, tpot_ms=10)
BATCH = TrafficClass("batch")


def policy(*classes: TrafficClass, **fields: Any) -> Policy:
    return Policy(scope=Scope("service"), stamp=Stamp(1, 0, 0), classes=classes, **fields)


def engine(
    *arrivals: Arrival,
    adopted: Policy | None = None,
    blocks: int = 1000,
    step_time: StepTime = TEN_MS,
    ceilings: Limits = CEILINGS,
) -> SimulatedEngine:
    made = SimulatedEngine(ceilings, KvBlocks(blocks), step_time)
    made.adopt(adopted or policy(CHAT, BATCH))
    for arrival in arrivals:
        made.send(arrival)
    return made


def ended(made: SimulatedEngine, name: str = "chat") -> int:
    return made.report().classes[name].requests_total


def test_it_is_an_executor() -> None:
    executor: Executor = engine()
    assert executor.ceilings == CEILINGS


def test_a_step_takes_its_time_by_what_it_holds() -> None:
    found = StepTime(1000, 10, 100, 50).seconds(tokens=20, requests=3, context_tokens=4000)
    assert found == pytest.approx(0.001 + 0.0002 + 0.0003 + 0.0002)


@pytest.mark.parametrize(
    ("budget", "prefill_steps"), [(None, 1), (1000, 1), (999, 2), (256, 4), (64, 16)]
)
def test_a_prompt_is_computed_in_chunks_of_the_budget(budget: Any, prefill_steps: Any) -> None:
    adopted = policy(CHAT, token_budget=budget)
    made = engine(Arrival(0.0, "chat", 1000, 5), adopted=adopted)
    made.run(10.0)
    found = made.report()
    assert found.steps_total == prefill_steps + 4
    assert found.scheduled_tokens_total == 1000 + 4
    assert found.step_seconds_total == pytest.approx(0.01 * found.steps_total)
    assert found.token_budget == (budget or 8192)


def test_times_are_those_of_the_tokens() -> None:
    arrival = Arrival(0.0, "chat", 1000, 5)
    made = engine(arrival, adopted=policy(CHAT, token_budget=256))
    made.run(10.0)
    told = made.report().classes["chat"]
    assert told.ttft_ratio == pytest.approx(40 / 100)
    assert told.tpot_ratio == pytest.approx(1.0)
    made.run(60.0)
    assert made.report().classes["chat"].ttft_ratio is None


@pytest.mark.parametrize(
    ("objectives", "kept"),
    [
        ({}, 1),
        ({"ttft_ms": 40}, 1),
        ({"ttft_ms": 39}, 0),
        ({"tpot_ms": 11}, 1),
        ({"tpot_ms": 9}, 0),
        ({"deadline_s": 1}, 1),
    ],
    ids=str,
)
def test_a_request_attains_when_it_met_every_objective(objectives: Any, kept: Any) -> None:
    adopted = policy(TrafficClass("chat", **objectives), token_budget=256)
    made = engine(Arrival(0.0, "chat", 1000, 5), adopted=adopted)
    made.run(10.0)
    told = made.report().classes["chat"]
    assert (told.requests_total, told.attained_total) == (1, kept)


def test_a_missed_deadline_is_a_missed_objective() -> None:
    adopted = policy(TrafficClass("chat", deadline_s=1))
    made = engine(Arrival(0.0, "chat", 10, 200), adopted=adopted)
    made.run(10.0)
    told = made.report().classes["chat"]
    assert (told.requests_total, told.attained_total) == (1, 0)


def test_running_requests_are_served_before_waiting_ones() -> None:
    first, second = Arrival(0.0, "batch", 50, 20), Arrival(0.0, "batch", 1000, 1)
    made = engine(first, second, adopted=policy(BATCH, token_budget=51))
    made.run(0.195)
    # One token of each of 20 steps was the first request's: 49 of the second's prompt are left.
    assert (ended(made, "batch"), made.report().running) == (1, 1)
    made.run(0.205)
    assert ended(made, "batch") == 2


def test_the_most_urgent_request_is_admitted_first() -> None:
    long = Arrival(0.0, "batch", 10, 10)
    waiting = (Arrival(0.0, "batch", 10, 10), Arrival(0.05, "chat", 10, 10))
    made = engine(long, *waiting, adopted=policy(CHAT, BATCH, max_batch_size=1))
    made.run(0.205)
    assert (ended(made, "batch"), ended(made, "chat")) == (1, 1)


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW])
def test_other_modes_leave_the_engine_alone(mode: Mode) -> None:
    arrivals = (Arrival(0.0, "batch", 10, 10), Arrival(0.0, "chat", 1000, 10))
    made = engine(*arrivals, adopted=policy(CHAT, BATCH, mode=mode, token_budget=64))
    made.run(10.0)
    assert made.report().token_budget == 8192
    assert made.report().steps_total == 10


@pytest.mark.parametrize(("limit", "seconds"), [(None, 0.1), (3, 0.1), (1, 0.3)])
def test_a_class_runs_no_more_requests_than_it_may(limit: Any, seconds: Any) -> None:
    adopted = policy(CHAT, TrafficClass("batch", max_running=limit))
    batch = [Arrival(0.0, "batch", 10, 10)] * 3
    made = engine(*batch, Arrival(0.005, "chat", 10, 5), adopted=adopted)
    made.run(seconds - 0.015)
    assert ended(made, "batch") == (2 if limit == 1 else 0)
    assert ended(made, "chat") == 1
    made.run(seconds + 0.005)
    assert ended(made, "batch") == 3


def test_limits_that_change_lose_nobody() -> None:
    made = engine(*[Arrival(0.0, "batch", 10, 10)] * 8)
    for limit in (1, None, 2, 3):
        made.adopt(policy(CHAT, TrafficClass("batch", max_running=limit)))
        made.run(made.now_s + 0.05)
    made.run(10.0)
    assert ended(made, "batch") == 8


def test_the_last_request_gives_its_blocks_back_when_they_run_out() -> None:
    pair = [Arrival(0.0, "batch", 64, 64)] * 2
    made = engine(*pair, blocks=10)  # one needs 8 in the end
    made.run(0.645)
    found = made.report()
    assert (ended(made, "batch"), found.preemptions_total) == (1, 1)
    made.run(10.0)
    found = made.report()
    assert ended(made, "batch") == 2
    assert found.kv_usage == 0
    # The second was computed again from the beginning.
    assert found.scheduled_tokens_total > 2 * (64 + 63)


def test_a_request_that_can_never_run_is_refused() -> None:
    with pytest.raises(ValueError, match="more KV blocks than there are"):
        engine(Arrival(0.0, "batch", 100, 100), blocks=10)


def test_utilisation_is_the_busy_share_of_the_last_seconds() -> None:
    made = engine(Arrival(0.0, "batch", 10, 500), Arrival(20.0, "batch", 10, 100))
    made.run(5.0)
    assert made.report().utilisation == pytest.approx(1.0)
    made.run(6.0)
    assert made.report().utilisation == pytest.approx(5 / 6)
    made.run(10.0)
    assert made.report().utilisation == 0
    made.run(21.0)
    assert made.report().utilisation == pytest.approx(0.1)


def test_the_quantile_is_over_the_current_window_and_the_one_before() -> None:
    slow, fast = Arrival(1.0, "chat", 1000, 2), [Arrival(16.0, "chat", 10, 2)] * 3
    made = engine(slow, *fast, adopted=policy(CHAT, token_budget=100))
    made.run(29.0)
    assert made.report().classes["chat"].ttft_ratio == pytest.approx(1.0)
    made.run(31.0)
    assert made.report().classes["chat"].ttft_ratio == pytest.approx(0.1)


def test_classes_that_are_gone_are_forgotten_and_others_kept() -> None:
    made = engine(Arrival(0.0, "chat", 10, 2), Arrival(0.0, "batch", 10, 2))
    made.run(1.0)
    made.adopt(policy(CHAT))
    assert set(made.report().classes) == {"chat"}
    assert ended(made) == 1


def test_requests_without_a_class_have_the_default_one() -> None:
    adopted = policy(CHAT, BATCH, default_class="batch")
    made = engine(Arrival(0.0, "", 10, 2), Arrival(0.0, "unknown", 10, 2), adopted=adopted)
    made.run(1.0)
    assert ended(made, "batch") == 2


def chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - no secret


def test_chance_is_what_is_passed_in() -> None:
    traffic = (Traffic("chat", 5, 100, 10), Traffic("batch", 2, 100, 10))
    first, again, other = (list(mixed(traffic, chance(seed), 0, 50)) for seed in (1, 1, 2))
    assert first == again != other
    assert [each.at for each in first] == sorted(each.at for each in first)
    chat = [each for each in first if each.class_name == "chat"]
    assert len(chat) == pytest.approx(250, rel=0.2)
    more_batch = (traffic[0], Traffic("batch", 9, 100, 10))
    changed = mixed(more_batch, chance(1), 0, 50)
    assert [each for each in changed if each.class_name == "chat"] == chat


@dataclass(frozen=True)
class Watched(StepTime):
    """Remembers what steps held."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    def seconds(self, tokens: int, requests: int, context_tokens: int) -> float:
        self.steps.append((tokens, requests))
        return super().seconds(tokens, requests, context_tokens)


arrivals = st.lists(
    st.builds(
        Arrival,
        st.floats(0, 1),
        st.sampled_from(["chat", "batch", "other"]),
        st.integers(1, 300),
        st.integers(1, 30),
    ),
    max_size=30,
)
limits = st.none() | st.integers(1, 40)
policies = st.builds(
    lambda budget, batch, limit: policy(
        CHAT,
        TrafficClass("batch", max_running=limit),
        token_budget=budget,
        max_batch_size=batch,
    ),
    st.none() | st.integers(1, 500),
    limits,
    limits,
)


@settings(deadline=None)
@given(arrivals, policies, policies, st.integers(24, 100))
def test_every_request_ends_within_all_limits(
    sent: Any, first: Policy, second: Policy, blocks: int
) -> None:
    watched = Watched()
    in_order = sorted(sent, key=lambda each: each.at)
    made = engine(
        *in_order, adopted=first, blocks=blocks, step_time=watched, ceilings=Limits(600, 32)
    )
    made.run(0.5)
    assert all(0 < tokens <= 600 and requests <= 32 for tokens, requests in watched.steps)
    made.adopt(second)
    made.run(1000.0)
    found = made.report()
    assert (found.running, found.waiting, found.kv_usage) == (0, 0, 0)
    for name in ("chat", "batch"):
        assert ended(made, name) == sum(each.class_name == name for each in sent)
    least = sum(each.prompt_tokens + each.output_tokens - 1 for each in sent)
    assert found.scheduled_tokens_total >= least
    assert (found.scheduled_tokens_total > least) <= (found.preemptions_total > 0)
