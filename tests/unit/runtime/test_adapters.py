"""How plans are put in force in the ranges of vLLM versions."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.executors.vllm.adapters import ActiveLimitAdapter, RunningLimitAdapter
from headway_runtime.executors.vllm.support import UnsupportedEngineError, choose_adapter
from headway_runtime.executors.vllm.waiting_queue import MOVES_PER_STEP
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.view import Limits
from tests.unit.runtime.engines import configuration, request, scheduler
from tests.unit.runtime.policies import policy

CLASSES = (TrafficClass("fast", ttft_ms=100), TrafficClass("slow", deadline_s=100))
ACT = policy(1, 1, 1, classes=CLASSES)


def names(queue: Any) -> list[str]:
    return [each.request_id for each in queue]


def arrive(adapter: Any, engine: Any, *requests: Any) -> None:
    for each in requests:
        engine.waiting.append(each)
        engine.requests[each.request_id] = each
        adapter.added(each)


def step(adapter: Any) -> StepPlan:
    plan = plan_step(adapter.observe(), lambda: False)
    adapter.apply(plan)
    adapter.restore()
    return plan


def of_class(name: str, number: Any, arrival_s: Any = None) -> Any:
    arrival = float(number) if arrival_s is None else arrival_s
    return request(f"{name}{number}", arrival, {"headway_class": name})


@pytest.mark.parametrize(
    ("version", "adapter"),
    [
        ("0.26.0", RunningLimitAdapter),
        ("0.30.2", RunningLimitAdapter),
        ("0.31.0", ActiveLimitAdapter),
        ("0.33.1+cu130", ActiveLimitAdapter),
    ],
)
def test_each_release_has_its_adapter(version: str, adapter: Any) -> None:
    assert type(choose_adapter(scheduler(), version)) is adapter


@pytest.mark.parametrize("version", ["0.25.1", "0.34.0", "1.0.0", "dev", ""])
def test_an_unknown_release_runs_stock(version: str) -> None:
    with pytest.raises(UnsupportedEngineError, match="UnknownEngineVersion"):
        choose_adapter(scheduler(), version)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scheduler_config__policy": "priority"}, "SchedulingPolicyNotFcfs"),
        ({"parallel_config__pipeline_parallel_size": 2}, "PipelineParallel"),
        ({"model_config__runner_type": "pooling"}, "PoolingModel"),
        ({"model_config__is_encoder_decoder": True}, "EncoderDecoderModel"),
        ({"model_config__is_diffusion": True}, "DiffusionModel"),
        ({"model_config__is_hybrid": True}, "HybridModel"),
        ({"kv_transfer_config": object()}, "KvConnector"),
        ({"ec_transfer_config": object()}, "EncoderConnector"),
        ({"scheduler_config__enable_chunked_prefill": False}, "ChunkedPrefillDisabled"),
    ],
)
def test_an_unsupported_engine_runs_stock_with_its_reason(change: Any, reason: str) -> None:
    with pytest.raises(UnsupportedEngineError, match=reason):
        choose_adapter(scheduler(vllm_config=configuration(**change)), "0.32.0")


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"max_num_active_reqs": None}, "max_num_active_reqs"),
        ({"max_num_scheduled_tokens": None}, "max_num_scheduled_tokens"),
        ({"waiting": []}, "waiting"),
        ({"running": None}, "running"),
    ],
)
def test_an_engine_that_lacks_what_its_release_has_runs_stock(change: Any, lacking: Any) -> None:
    with pytest.raises(UnsupportedEngineError, match=f"EngineLacks:{lacking}"):
        choose_adapter(scheduler(**change), "0.32.0")


@given(st.integers(1, 5000), st.integers(1, 200), st.integers(0, 64))
def test_limits_are_lowered_for_the_step_and_never_raised(
    budget: Any, batch: Any, running: Any
) -> None:
    engine = scheduler(running=[None] * running)
    for make in (ActiveLimitAdapter, RunningLimitAdapter):
        adapter = make(engine)
        before = dict(vars(engine))
        adapter.apply(StepPlan(Limits(budget, batch)))
        assert engine.max_num_scheduled_tokens == min(2048, budget)
        assert engine.max_num_active_reqs <= 64
        assert engine.max_num_running_reqs <= 64
        adapter.restore()
        assert vars(engine) == before


@given(st.integers(1, 200), st.integers(0, 64))
def test_old_releases_are_never_limited_below_what_runs(batch: Any, running: Any) -> None:
    engine = scheduler(running=[None] * running)
    RunningLimitAdapter(engine).apply(StepPlan(Limits(2048, batch)))
    assert engine.max_num_running_reqs == min(64, max(batch, running))


@pytest.mark.parametrize("make", [ActiveLimitAdapter, RunningLimitAdapter])
@pytest.mark.parametrize(("paused", "limit"), [(3, 7), (63, 64)])
def test_paused_streaming_sessions_take_no_place_in_the_batch(
    make: Any, paused: int, limit: int
) -> None:
    engine = scheduler(num_waiting_for_streaming_input=paused)
    adapter = make(engine)
    adapter.apply(StepPlan(Limits(2048, 4)))
    assert getattr(engine, adapter.admission_limit) == limit


def test_restoring_twice_or_without_a_plan_changes_nothing() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.restore()
    adapter.apply(StepPlan(Limits(1, 1)))
    adapter.restore()
    engine.max_num_scheduled_tokens = 1024
    adapter.restore()
    assert engine.max_num_scheduled_tokens == 1024


def test_urgent_arrivals_go_first_and_the_rest_as_it_came() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    arrive(adapter, engine, request("none0"), of_class("slow", 1), of_class("fast", 2))
    step(adapter)
    assert names(engine.waiting) == ["fast2", "slow1", "none0"]
    arrive(adapter, engine, of_class("fast", 3), request("none4", 4.0))
    step(adapter)
    assert names(engine.waiting) == ["fast2", "fast3", "slow1", "none0", "none4"]


@pytest.mark.parametrize(
    "extra",
    [
        None,
        {},
        {"headway_class": "unknown"},
        {"headway_class": 7},
        {"headway_class": ["fast"]},
        "fast",
    ],
)
def test_a_request_without_a_known_class_has_the_default_one(extra: Any) -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(policy(1, 1, 1, classes=CLASSES, default_class="fast"))
    arrive(adapter, engine, of_class("slow", 0), request("default", 1.0, extra))
    step(adapter)
    assert names(engine.waiting) == ["default", "slow0"]


def test_a_request_without_sampling_parameters_has_the_default_class() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    pooling = request("pooling")
    pooling.sampling_params = None
    arrive(adapter, engine, pooling, of_class("fast", 1))
    step(adapter)
    assert names(engine.waiting) == ["fast1", "pooling"]


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.SHADOW])
def test_leaving_act_brings_back_the_order_of_arrival(mode: Mode) -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    arrive(adapter, engine, request("none0"), of_class("slow", 1), of_class("fast", 2))
    step(adapter)
    adapter.adopt(policy(1, 1, 2, mode=mode, classes=CLASSES))
    assert names(engine.waiting) == ["none0", "slow1", "fast2"]


def test_other_classes_order_everything_again() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    arrive(adapter, engine, of_class("slow", 0), of_class("fast", 1))
    step(adapter)
    swapped = (TrafficClass("slow", ttft_ms=1), TrafficClass("fast", deadline_s=500))
    adapter.adopt(policy(1, 1, 2, classes=swapped))
    step(adapter)
    assert names(engine.waiting) == ["slow0", "fast1"]


def test_a_shadow_plan_leaves_the_queue_alone_and_is_not_made_again() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(policy(1, 1, 1, mode=Mode.SHADOW, classes=CLASSES))
    arrive(adapter, engine, request("none0"), of_class("fast", 1))
    assert len(plan_step(adapter.observe(), lambda: False).placements) == 2
    adapter.pass_over()
    assert names(engine.waiting) == ["none0", "fast1"]
    assert adapter.observe().unsettled == ()


def test_a_flood_is_put_in_order_over_several_steps() -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    flood = [of_class("fast" if n % 2 else "slow", n, arrival_s=n / 10) for n in range(200)]
    arrive(adapter, engine, *flood)
    for done in range(0, 200, MOVES_PER_STEP):
        assert len(adapter.observe().settled) == done
        step(adapter)
    expected = [f"fast{n}" for n in range(1, 200, 2)] + [f"slow{n}" for n in range(0, 200, 2)]
    assert names(engine.waiting) == expected


kinds = st.sampled_from(["fast", "slow", "none"])


@given(
    st.lists(
        st.tuples(st.sampled_from(["arrive", "admit", "preempt", "abort", "step"]), kinds),
        max_size=60,
    )
)
def test_whatever_happens_the_queue_holds_every_waiting_request_once(events: Any) -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    waiting = set()
    for number, (event, kind) in enumerate(events):
        if event == "arrive":
            arrive(adapter, engine, of_class(kind, number))
            waiting.add(f"{kind}{number}")
        elif event == "preempt":
            engine.waiting.appendleft(of_class(kind, number, arrival_s=0.0))
            waiting.add(f"{kind}{number}")
        elif event == "step":
            step(adapter)
        elif engine.waiting:
            gone = engine.waiting.popleft() if event == "admit" else engine.waiting[-1]
            waiting.discard(gone.request_id)
            if event == "abort":
                engine.waiting.remove(gone)
        assert sorted(names(engine.waiting)) == sorted(waiting)


@given(st.lists(kinds, max_size=40), st.data())
def test_arrivals_and_admissions_alone_keep_it_in_order_of_urgency(
    arrivals: Any, data: st.DataObject
) -> None:
    engine = scheduler()
    adapter = ActiveLimitAdapter(engine)
    adapter.adopt(ACT)
    for number, kind in enumerate(arrivals):
        arrive(adapter, engine, of_class(kind, number))
        if data.draw(st.booleans()):
            step(adapter)
            if data.draw(st.booleans()):
                engine.waiting.popleft()
    step(adapter)
    ranks = [("fast", "slow", "none").index(name[:4]) for name in names(engine.waiting)]
    order = [(rank, int(n[4:])) for rank, n in zip(ranks, names(engine.waiting), strict=True)]
    # Deadlines of the slow class are 100 s away, further than these arrivals are apart.
    assert order == sorted(order)


def test_planning_needs_a_policy() -> None:
    with pytest.raises(RuntimeError):
        ActiveLimitAdapter(scheduler()).observe()


def test_draft_tokens_count_for_each_decode() -> None:
    adapter = ActiveLimitAdapter(scheduler(num_spec_tokens=3, waiting=deque()))
    adapter.adopt(ACT)
    assert adapter.observe().tokens_per_decode == 4
