"""The simulated engine on a GPU: schedules ahead, launches take time, plans limit chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_runtime.executors.interface import Executor
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.policy import Mode
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.timing.decode_clock import KEPT_SHARE
from headway_runtime.scheduling.timing.pace import TPOT_MARGIN
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.view import Carried, Limits
from tests.unit.simulation.watched import FLAT, chance, engine, ms


def test_it_is_an_executor() -> None:
    executor: Executor = engine()[0]
    assert executor.ceilings == Limits(8192, 256)


def test_steps_are_linear_in_their_work() -> None:
    made = GpuStepTime((5, 1, 3), (3, 20, 2, 4, 1), 512, 0.003, 0.012, 0.03)
    assert made.gpu_s(StepShape(0, 64, 200_000)) == pytest.approx(0.012)
    assert made.gpu_s(StepShape(500, 128, 50_000, 2e6)) == pytest.approx(0.021)
    assert made.launch_s(StepShape(0, 64)) == 0.003
    assert made.launch_s(StepShape(448, 64)) == 0.012
    assert made.launch_s(StepShape(449, 64)) == 0.03


def test_the_next_step_is_launched_while_one_runs() -> None:
    made, watch = engine(Arrival(0.0, "chat", 100, 4))
    made.run_to_the_end(1.0)
    # Prefill: launched at 5, runs 0 to 20; decode steps are launched behind it, in time.
    assert ms(each.scheduled_s for each in watch.steps) == [0, 5, 20, 30]
    assert ms(each.began_s for each in watch.steps) == [0, 20, 30, 40]
    assert ms(watch.tokens["1"]) == [20, 30, 40, 50]


def test_where_launching_takes_longer_than_the_step_tokens_are_known_after_the_next_launch() -> (
    None
):
    made, watch = engine(Arrival(0.0, "chat", 600, 2), Arrival(0.001, "chat", 600, 2))
    made.run_to_the_end(1.0)
    # The first cannot end before its launch at 30; the second is launched from 30 to 60, and only
    # then is the first one's output looked at.
    assert ms(each.ended_s for each in watch.steps)[:2] == [30, 60]
    assert ms(watch.tokens["1"])[0] == 60


def test_the_host_takes_time_for_each_request_of_a_step() -> None:
    def tokens_ms(**host: float) -> list[float]:
        slow = replace(FLAT, **host)
        made, watch = engine(
            Arrival(0.0, "chat", 100, 3), Arrival(0.0, "chat", 100, 3), step_time=slow
        )
        made.run_to_the_end(1.0)
        return ms(watch.tokens["1"])

    assert tokens_ms(update_request_s=0.001)[0] == tokens_ms()[0] + 2
    # The launch of 5 ms takes 25, and the GPU waits for it.
    assert tokens_ms(decide_request_s=0.010)[0] > tokens_ms()[0]


def test_a_request_is_not_scheduled_beyond_its_last_token() -> None:
    made, watch = engine(Arrival(0.0, "chat", 10, 3), Arrival(0.0, "chat", 10, 6))
    made.run_to_the_end(1.0)
    assert [len(each.step.chunks) for each in watch.steps] == [2, 2, 2, 1, 1, 1]
    assert {name: len(times) for name, times in watch.tokens.items()} == {"1": 3, "2": 6}


def test_what_was_under_way_when_a_request_lost_its_blocks_still_comes() -> None:
    pair = [Arrival(0.0, "batch", 64, 64)] * 2
    made, watch = engine(*pair, blocks=10)
    made.run_to_the_end(10.0)
    assert made.report().preemptions_total == 1
    assert [len(times) for times in watch.tokens.values()] == [64, 64]
    assert watch.steps[-1].ended_s == pytest.approx(watch.tokens["2"][-1])


def test_the_prefix_cache_saves_whole_blocks_and_never_the_last_token() -> None:
    for cached, computed in ((0, 64), (31, 48), (48, 16), (64, 16)):
        made, watch = engine(Arrival(0.0, "chat", 64, 1, cached_tokens=cached))
        assert made._waiting.seen(Request("0", made._arrivals[0])).prefill_tokens == computed
        made.run_to_the_end(1.0)
        assert [each.step.tokens for each in watch.steps] == [computed]
        shape = watch.steps[0].step.shape
        assert shape.attention_pairs == computed * (64 - computed + computed / 2)


def plan(**fields: Any) -> StepPlan:
    return StepPlan(Limits(fields.pop("budget", 100), 8), **fields)


def test_caps_limit_chunks_and_0_keeps_a_request_and_its_blocks() -> None:
    made, _ = engine(Arrival(0.0, "chat", 300, 5), Arrival(0.0, "chat", 300, 5))
    made._receive()
    steps: list[dict[str, int]] = []
    for chunks in ({}, {"1": 0}, {"1": 30, "2": 40}, {"1": 0, "2": 0}):
        made.apply(plan(chunks=chunks))
        step = made._batch.fill(made._limits, made._waiting, made._caps)
        made.restore()
        made._batch.finish(step, made._waiting)
        steps.append({request.request_id: tokens for request, tokens in step.chunks})
    assert steps == [{"1": 100}, {"2": 100}, {"1": 30, "2": 40}, {}]
    first = made._batch.running[0]
    assert (first.computed, first.room) == (130, 144)
    assert len(made._batch.running) == 2


def test_the_one_that_goes_first_is_admitted_first_and_for_one_step_only() -> None:
    made, _ = engine(*[Arrival(0.0, "batch", 300, 5)] * 4)
    made._receive()
    made.apply(plan(first="3"))
    made._batch.fill(made._limits, made._waiting, made._caps)
    assert [each.request_id for each in made._batch.running] == ["3"]
    made.restore()
    assert made._waiting.head is not None
    assert made._waiting.head.request_id == "1"


def test_late_requests_are_put_in_order_anew() -> None:
    made, _ = engine(*[Arrival(0.0, "chat", 300, 5)] * 3, mode=Mode.ACT)
    made._receive()
    made.pass_over()
    made.apply(plan(late=("1", "2")))
    seen = made.observe()
    assert [each.request_id for each in seen.front] == ["3"]
    assert [(each.request_id, each.is_late) for each in seen.unsettled] == [
        ("1", True),
        ("2", True),
    ]


def test_the_ttft_of_a_running_prompt_is_given_up() -> None:
    made, _ = engine(*[Arrival(0.0, "chat", 300, 5)] * 2, mode=Mode.ACT)
    made._receive()
    made.apply(plan())
    made._batch.fill(made._limits, made._waiting, made._caps)
    made.apply(plan(late_prefills=("1",)))
    seen = made.observe().work
    assert seen is not None
    assert [(each.request_id, each.is_late, each.has_answered) for each in seen.prefills] == [
        ("1", True, False)
    ]


def test_the_planner_is_told_what_is_in_hand() -> None:
    made, _ = engine(
        Arrival(0.0, "chat", 100, 50),
        Arrival(0.0, "batch", 200, 50),
        Arrival(0.03, "batch", 9000, 5),
        Arrival(0.03, "batch", 700, 5, cached_tokens=100),
        mode=Mode.SHADOW,
    )
    made.run(0.048)
    work = made.observe().work
    assert work is not None
    assert (work.decodes, work.graph_tokens) == (2, 512)
    # The third request began with what two decodes left of the first budget.
    assert [(each.request_id, each.remaining_tokens) for each in work.prefills] == [
        ("3", 9000 - 8190)
    ]
    chat, batch = made._batch.running[:2]
    assert work.decode_context == chat.computed + batch.computed
    # The first token came at 20 ms; each one after it is due 30 ms later, less two margins.
    made_so_far = chat.produced + chat.under_way
    (due,) = work.due
    tpot_s = (1 - TPOT_MARGIN) * 0.03
    assert due.tpot_s == tpot_s
    assert due.due_s == pytest.approx(0.020 + tpot_s * (made_so_far - KEPT_SHARE))
    assert work.free_s >= work.now_s == made.now_s
    assert [each.prefill_tokens for each in made.observe().front] == [700 - 96]
    # Four have come within the first second.
    assert work.arrivals_per_s == pytest.approx(4, rel=0.01)
    clock = made._foresight.clock
    launches = (work.decode_launch_s, work.graph_launch_s, work.eager_launch_s)
    assert launches == (clock.decode_launch_s, clock.graph_launch_s, clock.eager_launch_s)
    assert len(set(launches)) == 3


def test_what_a_plan_carries_is_there_in_the_next_step() -> None:
    made, _ = engine(Arrival(0.0, "chat", 100, 50), mode=Mode.ACT)
    made.apply(plan(carried=Carried(123.0, 4)))
    work = made.observe().work
    assert work is not None
    assert work.carried == Carried(123.0, 4)


def test_a_plain_step_time_tells_the_planner_nothing() -> None:
    made, watch = engine(Arrival(0.0, "chat", 8000, 50), mode=Mode.SHADOW)
    made.run_to_the_end(10.0)
    assert watch.steps[0].step.tokens == 8000, "the shadow of a plan limits nothing"


def test_it_learns_how_long_its_own_steps_take() -> None:
    truth = GpuStepTime((8, 2, 5), (6, 40, 3, 6, 1.5), spread=0.03, random=chance(3))
    lengths = chance(1)
    sent = [
        Arrival(0.05 * each, "chat", lengths.randint(50, 2000), lengths.randint(20, 200))
        for each in range(400)
    ]
    made, watch = engine(*sent, step_time=truth, mode=Mode.SHADOW, blocks=20_000)
    made.run_to_the_end(100.0)
    work = made.observe().work
    assert work is not None
    assert work.step_time.steps_learnt > 200
    shapes = [each.step.shape for each in watch.steps[-300:]]
    errors = sorted(abs(work.step_time.seconds(each) / truth.gpu_s(each) - 1) for each in shapes)
    assert errors[len(errors) // 2] < 0.03
