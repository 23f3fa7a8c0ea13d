"""What Headway relies on in vLLM's scheduler, and what it promises about it. On real vLLM code."""

from __future__ import annotations

from typing import Any

import pytest
from vllm.platforms import current_platform
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.request import RequestStatus

from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.statistics_record import EngineState
from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm.attachment import attach
from headway_runtime.executors.vllm.plugin import HeadwayScheduler
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.executors.vllm.waiting_queue import MOVES_PER_STEP
from headway_runtime.policy import Mode
from tests.contract.engines import policy

CEILING_TOKENS = 256
CEILING_BATCH = 16

pytestmark = pytest.mark.filterwarnings("default")


def limits(engine: Any) -> dict[str, Any]:
    """Every limit of the scheduler, under whatever name its version has for it."""
    return {name: value for name, value in vars(engine.scheduler).items() if "max_num" in name}


def add_many(engine: Any, count: Any, **request: Any) -> None:
    for number in range(count):
        engine.add(f"r{number}", arrival_s=float(number), **request)


def test_the_token_budget_holds_for_the_step_and_is_taken_back(make: Any) -> None:
    engine = make(policy(token_budget=64))
    before = limits(engine)
    add_many(engine, 10)
    output = engine.step()
    assert output.total_num_scheduled_tokens == 64
    assert limits(engine) == before


def test_the_batch_size_holds_and_is_taken_back(make: Any) -> None:
    engine = make(policy(max_batch_size=3))
    before = limits(engine)
    add_many(engine, 10)
    for _ in engine.run():
        assert len(engine.running) <= 3
    assert limits(engine) == before
    assert len(engine.admitted) == 10


def test_without_limits_in_the_policy_the_ceilings_hold(make: Any) -> None:
    engine = make(policy())
    add_many(engine, 30)
    assert engine.step().total_num_scheduled_tokens == CEILING_TOKENS


def test_a_policy_above_the_ceilings_raises_nothing(make: Any) -> None:
    engine = make(policy(token_budget=100_000, max_batch_size=100_000))
    add_many(engine, 30)
    for output in engine.run():
        assert output.total_num_scheduled_tokens <= CEILING_TOKENS
        assert len(engine.running) <= CEILING_BATCH


def test_scheduled_tokens_are_held_against_the_plan_in_the_record(make: Any) -> None:
    engine = make(policy(token_budget=64, max_batch_size=3))
    add_many(engine, 6)
    for output in engine.run():
        if output.total_num_scheduled_tokens == 0:
            continue
        record = engine.record
        assert record.decision == Decision.ACT
        assert record.scheduled_tokens == sum(output.num_scheduled_tokens.values())
        assert record.scheduled_tokens <= record.planned_token_budget == 64
        assert record.running <= record.planned_max_batch == 3


def test_an_error_inside_the_engine_leaves_its_limits_as_they_were(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(token_budget=64, max_batch_size=3))
    before = limits(engine)
    add_many(engine, 2)

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(engine.scheduler.kv_cache_manager, "allocate_slots", fail)
        with pytest.raises(ZeroDivisionError):
            engine.schedule()
    assert limits(engine) == before


def test_classes_decide_who_is_admitted_first(make: Any) -> None:
    engine = make(policy(max_batch_size=1))
    engine.add("none", arrival_s=0.0)
    engine.add("batch", arrival_s=1.0, traffic_class="batch")
    engine.add("interactive", arrival_s=2.0, traffic_class="interactive")
    engine.add("interactive-2", arrival_s=3.0, traffic_class="interactive")
    for _ in engine.run():
        pass
    assert engine.admitted == ["interactive", "interactive-2", "batch", "none"]


def test_a_later_interactive_request_overtakes_waiting_work(make: Any) -> None:
    engine = make(policy(max_batch_size=1))
    add_many(engine, 3, traffic_class="batch")
    engine.step()
    engine.add("interactive", arrival_s=10.0, traffic_class="interactive")
    for _ in engine.run():
        pass
    assert engine.admitted == ["r0", "interactive", "r1", "r2"]


@pytest.mark.parametrize(
    "bad", [{"headway_class": 5}, {"headway_class": None}, {"headway_class": ["x"]}, {"other": 1}]
)
def test_what_clients_send_never_fails_a_step(make: Any, bad: Any) -> None:
    engine = make(policy(default_class="batch"))
    engine.add("bad", extra_args=bad)
    engine.step()
    assert engine.record.decision == Decision.ACT


def test_running_requests_are_never_taken_out_when_the_batch_shrinks(make: Any) -> None:
    engine = make(policy(1))
    add_many(engine, 10, prompt_tokens=16, output_tokens=50)
    engine.step()
    engine.step()
    assert len(engine.running) == 10
    engine.publish(policy(2, token_budget=4, max_batch_size=2))
    output = engine.step()
    assert len(engine.running) == 10
    # Each of them still gets its token, although the policy's budget is for four.
    assert set(output.num_scheduled_tokens.values()) == {1}
    assert len(output.num_scheduled_tokens) == 10


def test_a_paused_streaming_session_does_not_shut_out_the_others(make: Any) -> None:
    engine = make(policy(max_batch_size=1))
    engine.add("session", output_tokens=2, resumable=True)
    while engine.scheduler.num_waiting_for_streaming_input == 0:
        engine.step()
    engine.add("other", arrival_s=1.0)
    for _ in engine.run():
        assert len(engine.running) <= 1
    assert engine.admitted == ["session", "other"]


def test_a_prompt_longer_than_the_budget_is_done_in_chunks(make: Any) -> None:
    engine = make(policy(token_budget=32))
    engine.add("long", prompt_tokens=200, output_tokens=1)
    sizes = [output.num_scheduled_tokens.get("long") for output in engine.run()]
    assert [size for size in sizes if size] == [32] * 6 + [8]


def test_the_smallest_budget_makes_progress(make: Any) -> None:
    engine = make(policy(token_budget=1, max_batch_size=1))
    add_many(engine, 2, prompt_tokens=5, output_tokens=2)
    assert all(output.total_num_scheduled_tokens <= 1 for output in engine.run())


def test_a_full_kv_cache_preempts_and_still_finishes_everything(make: Any) -> None:
    # Two requests fit, a third grows into their blocks.
    engine = make(policy(token_budget=128), blocks=14)
    for number in range(6):
        name = "interactive" if number % 2 else "batch"
        engine.add(
            f"{name}-{number}",
            prompt_tokens=40,
            output_tokens=60,
            arrival_s=float(number),
            traffic_class=name,
        )
    for _ in engine.run():
        pass
    assert set(engine.admitted) == {f"{'interactive' if n % 2 else 'batch'}-{n}" for n in range(6)}
    assert engine.record.preemptions_total > 0
    assert engine.record.running == engine.record.waiting == 0


def test_shadow_plans_and_acts_stock(make: Any) -> None:
    engine = make(policy(mode=Mode.SHADOW, token_budget=64))
    engine.add("batch", traffic_class="batch", arrival_s=0.0)
    engine.add("interactive", traffic_class="interactive", arrival_s=1.0)
    add_many(engine, 10, traffic_class="batch")
    output = engine.step()
    assert output.total_num_scheduled_tokens == CEILING_TOKENS
    assert list(output.num_scheduled_tokens)[:2] == ["batch", "interactive"]
    record = engine.record
    assert (record.decision, record.planned_token_budget, record.token_budget) == (
        Decision.SHADOW,
        64,
        CEILING_TOKENS,
    )


def test_off_takes_effect_at_the_next_step(make: Any) -> None:
    engine = make(policy(1, max_batch_size=1))
    engine.add("batch", traffic_class="batch", arrival_s=0.0, output_tokens=50)
    engine.step()
    engine.add("batch-2", traffic_class="batch", arrival_s=1.0)
    engine.add("interactive", traffic_class="interactive", arrival_s=2.0)
    engine.step()
    assert engine.waiting == ["interactive", "batch-2"]
    engine.publish(policy(2, mode=Mode.OFF, max_batch_size=1))
    engine.step()
    assert engine.admitted == ["batch", "batch-2", "interactive"]
    assert engine.record.decision == Decision.OFF


def test_a_policy_change_takes_effect_at_the_next_step(make: Any) -> None:
    engine = make(policy(1))
    add_many(engine, 40)
    for counter, budget in ((2, 48), (3, 96)):
        engine.publish(policy(counter, token_budget=budget))
        assert engine.step().total_num_scheduled_tokens <= budget
        assert engine.record.counter == counter


def test_a_torn_policy_file_leaves_the_last_good_policy(make: Any) -> None:
    engine = make(policy(1, token_budget=64))
    add_many(engine, 20)
    engine.step()
    (engine.run_dir / policy_file.FILE_NAME).write_bytes(b"HEADWAY-POLICY 1 0000")
    assert engine.step().total_num_scheduled_tokens == 64
    assert engine.statistics().header.refused_policies == 1


def test_a_broken_planner_costs_no_step_and_is_paused(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(token_budget=64))
    add_many(engine, 20)
    monkeypatch.setattr(engine.scheduler._headway, "planner", lambda *_: 1 / 0)
    for _ in range(5):
        engine.step()
    decisions = [each.decision for each in engine.statistics().records]
    assert decisions == [Decision.FAILED] * 3 + [Decision.BREAKER] * 2
    assert engine.record.token_budget == CEILING_TOKENS
    assert (engine.record.failed_total, engine.record.breaker_total) == (3, 2)


def test_overlapping_steps_are_matched_with_their_outputs(make: Any) -> None:
    engine = make(policy(1, token_budget=64))
    add_many(engine, 4, prompt_tokens=64, output_tokens=20)
    first = engine.schedule()
    engine.publish(policy(2, token_budget=96))
    second = engine.schedule()
    engine.finish(first)
    assert (engine.record.token_budget, engine.record.step) == (64, 1)
    third = engine.schedule()
    engine.finish(second)
    assert (engine.record.token_budget, engine.record.step) == (96, 2)
    engine.finish(third)
    assert engine.record.step == 3


def test_the_load_shows_a_step_under_way_and_nothing_once_all_is_done(make: Any) -> None:
    engine = make(policy())
    engine.add("only", output_tokens=1)
    output = engine.schedule()
    assert engine.statistics().load.running == 1
    engine.finish(output)
    assert engine.statistics().load.running == engine.record.running == 0


def test_the_load_shows_that_nothing_is_left_after_an_abort(make: Any) -> None:
    engine = make(policy())
    engine.add("aborted", output_tokens=50)
    engine.step()
    engine.scheduler.finish_requests("aborted", RequestStatus.FINISHED_ABORTED)
    assert engine.scheduler.has_requests()
    engine.step()
    assert engine.statistics().load.running == 0


def test_requests_aborted_while_waiting_do_not_disturb_the_order(make: Any) -> None:
    engine = make(policy(max_batch_size=1))
    add_many(engine, 6, traffic_class="batch")
    engine.step()
    engine.scheduler.finish_requests(["r2", "r4"], RequestStatus.FINISHED_ABORTED)
    engine.add("interactive", arrival_s=9.0, traffic_class="interactive")
    for _ in engine.run():
        pass
    assert engine.admitted == ["r0", "interactive", "r1", "r3", "r5"]


def test_asynchronous_scheduling_stays_on(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The platform has the last word and the CPU says no; with that left out, the rest decides.
    monkeypatch.setattr(type(current_platform), "check_and_update_config", lambda *_: None)
    configuration = make().scheduler.vllm_config
    assert configuration.scheduler_config.async_scheduling is True
    assert configuration.scheduler_config.get_scheduler_cls() is HeadwayScheduler
    assert issubclass(HeadwayScheduler, AsyncScheduler)


def pipeline_parallel(configuration: Any) -> None:
    configuration.parallel_config.pipeline_parallel_size = 2


def pooling(configuration: Any) -> None:
    configuration.model_config.runner_type = "pooling"


def priority(configuration: Any) -> None:
    configuration.scheduler_config.policy = "priority"


def unchunked(configuration: Any) -> None:
    configuration.scheduler_config.enable_chunked_prefill = False


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (pipeline_parallel, "PipelineParallel"),
        (pooling, "PoolingModel"),
        (priority, "SchedulingPolicyNotFcfs"),
        (unchunked, "ChunkedPrefillDisabled"),
    ],
)
def test_an_unsupported_engine_runs_stock_and_says_why(
    make: Any, prepare: Any, reason: str
) -> None:
    engine = make(policy(token_budget=16, max_batch_size=1), prepare=prepare)
    add_many(engine, 4)
    assert engine.schedule().total_num_scheduled_tokens == 4 * 32
    header = engine.statistics().header
    assert (header.state, header.stock_reason) == (EngineState.STOCK, reason)


def test_another_version_runs_stock(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway_runtime.executors.vllm.attachment.engine_version", "0.99.0")
    engine = make(policy(token_budget=16))
    add_many(engine, 2)
    assert engine.step().total_num_scheduled_tokens == 64
    assert engine.record.decision == Decision.STOCK
    assert engine.statistics().header.stock_reason == "UnknownEngineVersion"


def test_an_engine_with_quite_another_configuration_serves(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(token_budget=16))
    with monkeypatch.context() as changed:
        changed.setattr(engine.scheduler, "vllm_config", object())
        engine.scheduler._headway = attach(engine.scheduler)
    engine.add("only")
    assert engine.step().total_num_scheduled_tokens == 32
    assert engine.statistics().header.stock_reason == "ProbeFailed"


def test_an_engine_without_a_shared_directory_serves(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    monkeypatch.delenv("HEADWAY_RUN_DIR")
    engine.scheduler._headway = attach(engine.scheduler)
    engine.add("only")
    assert engine.step().total_num_scheduled_tokens == 32


def test_a_shared_directory_that_cannot_be_written_costs_the_statistics_only(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(token_budget=16))

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(statistics_file, "StatisticsWriter", full)
    engine.scheduler._headway = attach(engine.scheduler)
    engine.add("only")
    assert engine.step().total_num_scheduled_tokens == 16


def test_an_engine_that_shuts_down_says_so(make: Any) -> None:
    engine = make(policy())
    engine.scheduler.shutdown()
    assert engine.statistics().header.state == EngineState.STOPPED


def test_planning_stays_cheap_with_ten_thousand_waiting(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(policy(max_batch_size=1))
    add_many(engine, 10_000, traffic_class="batch", output_tokens=500)
    for _ in range(10_000 // MOVES_PER_STEP + 1):
        engine.step()
    looked_at = []
    traffic_class = Classifier.traffic_class

    def count(self: Classifier, request: Any) -> Any:
        looked_at.append(request.request_id)
        return traffic_class(self, request)

    monkeypatch.setattr(Classifier, "traffic_class", count)
    for number in range(100):
        engine.add(f"late{number}", arrival_s=20_000.0, traffic_class="interactive")
        engine.step()
    # In each step the newcomer, the 14 that a bisection of 10,000 looks at twice, what fits.
    assert 100 <= len(looked_at) <= 100 * 70
