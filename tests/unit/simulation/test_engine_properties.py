"""What holds for all engines, whatever is sent to them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.executors.simulated.batch import Batch
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.view import Limits
from tests.unit.simulation.watched import BATCH, Watch, chance, engine

requests = st.lists(
    st.builds(
        Arrival,
        st.floats(0, 1),
        st.sampled_from(["chat", "batch", "other"]),
        st.integers(1, 1200),
        st.integers(1, 40),
        st.integers(0, 600),
    ),
    max_size=25,
).map(lambda sent: sorted(sent, key=lambda each: each.at))

options = st.builds(
    EngineOptions,
    priorities=st.none() | st.just({"chat": 0, "batch": 1}),
    long_prefill_tokens=st.sampled_from([0, 64, 500]),
    static_batch=st.none() | st.integers(1, 8),
    reserve_full_prompt=st.booleans(),
)


def check(made: SimulatedEngine, watch: Watch, sent: list[Arrival]) -> None:
    """Nobody is lost or waits for ever, and all tokens come, in order, once."""
    made.run_to_the_end(1000.0)
    found = made.report()
    assert (found.running, found.waiting, found.kv_usage) == (0, 0, 0)
    assert len(watch.tokens) == len(sent)
    for name, times in watch.tokens.items():
        request = watch.requests[name]
        assert len(times) == request.arrival.output_tokens
        assert times == sorted(times)
        assert times[0] > request.arrival.at
    if not found.preemptions_total:
        least = sum(
            each.prompt_tokens + each.output_tokens - 1 - Request("", each).cached(16)
            for each in sent
        )
        assert found.scheduled_tokens_total == least


@settings(deadline=None, max_examples=60)
@given(requests, options, st.integers(78, 200), st.integers(32, 2000), st.integers(1, 16))
def test_stock_engines_lose_nobody(
    sent: Any, given_options: EngineOptions, blocks: int, budget: int, batch: int
) -> None:
    made, watch = engine(
        *sent, options=given_options, blocks=blocks, ceilings=Limits(budget, batch)
    )
    check(made, watch, sent)
    assert all(each.step.tokens <= budget for each in watch.steps)


def test_two_that_came_at_one_time_do_not_take_each_others_blocks_for_ever() -> None:
    chat, batch = (0.0, "chat", 1, 1, 0), (0.0, "batch", 800, 22, 219)
    later = ((0.2, "chat", 551, 5, 106), (0.34, "chat", 32, 19, 438), (0.4, "chat", 1, 1, 0))
    last = ((0.63, "chat", 281, 32, 73), (0.97, "chat", 725, 35, 84))
    sent = [Arrival(*each) for each in (chat, chat, chat, batch, batch, *later, *last)]
    by_priority = EngineOptions({"chat": 0, "batch": 1}, 64, None, reserve_full_prompt=False)
    made, watch = engine(*sent, options=by_priority, blocks=78, ceilings=Limits(353, 6))
    check(made, watch, sent)


@settings(deadline=None, max_examples=60)
@given(
    requests, st.integers(78, 200), st.integers(32, 2000), st.integers(1, 16), st.integers(1, 40)
)
def test_planned_engines_lose_nobody(
    sent: Any, blocks: int, budget: int, batch: int, tpot_ms: int
) -> None:
    classes = (TrafficClass("chat", 50, tpot_ms), BATCH)
    timing = GpuStepTime(spread=0.1, random=chance(1))
    made, watch = engine(
        *sent,
        mode=Mode.ACT,
        classes=classes,
        blocks=blocks,
        step_time=timing,
        ceilings=Limits(budget, batch),
    )
    check(made, watch, sent)
    assert all(each.step.tokens <= budget for each in watch.steps)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.none() | st.integers(0, 300)), max_size=12),
    st.integers(1, 600),
)
def test_caps_are_obeyed(prompts: Any, budget: int) -> None:
    batch, waiting = Batch(KvBlocks(1000), EngineOptions()), WaitingQueue(lambda _: None)
    for number, (prompt, _) in enumerate(prompts):
        waiting.append(Request(str(number), Arrival(0.0, "", prompt, 1)))
    batch.finish(batch.fill(Limits(40, 100), waiting, {}), waiting)
    caps = {str(number): cap for number, (_, cap) in enumerate(prompts) if cap is not None}
    before = {each.request_id: each.remaining for each in batch.running}
    step = batch.fill(Limits(budget, len(batch.running)), waiting, caps)
    given_tokens = {request.request_id: tokens for request, tokens in step.chunks}
    left = budget
    for name, remaining in before.items():
        expected = min(remaining, caps.get(name, remaining), left)
        assert given_tokens.get(name, 0) == expected
        left -= expected


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[tuple[float, int]]:
        sent = [Arrival(0.02 * each, "chat", 50 * (1 + each % 9), 20) for each in range(60)]
        timing = GpuStepTime(spread=0.1, random=chance(seed))
        made, watch = engine(*sent, mode=Mode.ACT, step_time=timing)
        made.run_to_the_end(100.0)
        return [(each.ended_s, each.step.tokens) for each in watch.steps]

    assert run(1) == run(1)
    assert run(1) != run(2)
