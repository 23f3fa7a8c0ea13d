"""Limits of classes in vLLM's waiting queue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.executors.vllm.waiting_queue import MOVES_PER_STEP
from headway_runtime.policy import Mode
from tests.unit.runtime.engines import Status
from tests.unit.runtime.fake_scheduler import (
    MOST_RUNNING,
    OBJECTIVES,
    FakeScheduler,
    is_blocked,
    kind_of,
)

both_ranges = pytest.mark.parametrize("skips", [False, True], ids=["one queue", "two queues"])
kinds = st.sampled_from([*OBJECTIVES, "none"])
limits = st.none() | st.integers(1, 4)
limited_kinds = st.sampled_from(["batch", "bulk"])
steps = st.tuples(st.just("step"), st.integers(0, MOST_RUNNING))
events = st.one_of(
    st.tuples(st.just("arrive"), kinds),
    st.tuples(st.just("arrive many"), limited_kinds),
    st.tuples(st.just("arrive unready"), kinds),
    steps,
    steps,
    st.tuples(st.just("stock step"), st.integers(0, MOST_RUNNING)),
    st.tuples(st.just("preempt"), st.none()),
    st.tuples(st.just("finish"), st.integers(0, MOST_RUNNING)),
    st.tuples(st.just("abort"), st.integers(0, 30)),
    st.tuples(st.just("get ready"), st.integers(0, 30)),
    st.tuples(st.just("limits"), st.tuples(limits, limits)),
    st.tuples(st.just("mode"), st.sampled_from(Mode)),
)


def happen(engine: FakeScheduler, event: Any) -> None:
    """Something happens besides a planned step."""
    what, value = event
    at_will = {
        "arrive": lambda: engine.add(value),
        "arrive many": lambda: [engine.add(value) for _ in range(4)],
        "arrive unready": lambda: engine.add(value, ready=False),
        "stock step": lambda: engine.stock_step(value),
        "limits": lambda: engine.set_policy(batch=value[0], bulk=value[1]),
    }
    if what in at_will:
        at_will[what]()
    elif what == "preempt" and engine.engine.running:
        engine.preempt()
    elif what == "finish" and value < len(engine.engine.running):
        engine.finish(value)
    elif what == "abort" and value < len(engine.waiting):
        engine.abort(value)
    elif what == "get ready" and value < len(engine.waiting):
        get_ready(engine.waiting[value])


def get_ready(waiting: Any) -> None:
    if is_blocked(waiting):
        waiting.structured_output_request._grammar = "compiled"


def parked(engine: FakeScheduler) -> set[str]:
    return set(engine.adapter.room._queue._lanes._lane_of)


@both_ranges
@given(events=st.lists(events, max_size=80))
def test_whatever_happens_limits_hold_and_every_request_stays(skips: Any, events: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=2, bulk=1)
    acts = True
    for event in events:
        if event[0] == "mode":
            acts = event[1] is Mode.ACT
            engine.set_policy(event[1], **engine.limits)
        if event[0] == "limits":
            acts = True
        happen(engine, event)
        if event[0] != "step" or not acts:
            continue
        before = engine.running
        names = sorted(each.request_id for each in [*engine.waiting, *engine.engine.running])
        engine.step(event[1])
        after = sorted(each.request_id for each in [*engine.waiting, *engine.engine.running])
        assert after == names
        for kind, limit in engine.limits.items():
            assert limit is None or engine.running[kind] <= max(limit, before[kind])
        assert parked(engine) <= {each.request_id for each in engine.waiting}


@both_ranges
@given(events=st.lists(events.filter(lambda event: event[0] != "mode"), max_size=80))
def test_whatever_has_happened_a_free_engine_serves_everybody(skips: Any, events: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=2, bulk=1)
    for event in events:
        if event[0] == "step":
            engine.step(event[1])
        else:
            happen(engine, event)
    for each in engine.waiting:
        get_ready(each)
    for _ in range(3 * len(engine.waiting) + 10):
        while engine.engine.running:
            engine.finish(0)
        engine.step()
    assert (engine.waiting, parked(engine)) == ([], set())


@both_ranges
@given(events=st.lists(events.filter(lambda e: e[0] not in ("mode", "limits")), max_size=60))
def test_whatever_has_happened_unlimited_classes_run_past_full_ones(
    skips: Any, events: Any
) -> None:
    engine = FakeScheduler(skips=skips, batch=2, bulk=1)
    for event in events:
        if event[0] == "step":
            engine.step(event[1])
        else:
            happen(engine, event)
    engine.adapter.left([each.request_id for each in engine.engine.running])
    engine.engine.running.clear()
    for kind in ("batch", "batch", "bulk"):
        full = engine.add(kind)
        engine.engine.waiting.remove(full)
        engine.engine.running.append(full)
    new = engine.add("fast", arrival_s=0.0)
    # Two to put all in order, if it was in none.
    admitted = [name for _ in range(3) for name in engine.step()]
    assert new.request_id in admitted
    assert not {name.partition("-")[0] for name in admitted} & {"batch", "bulk"}


orderly = st.one_of(
    st.tuples(st.just("arrive"), kinds, st.integers(0, 100)),
    st.tuples(st.just("arrive"), limited_kinds, st.integers(0, 100)),
    st.tuples(st.just("step"), st.integers(0, MOST_RUNNING), st.none()),
    st.tuples(st.just("finish"), st.integers(0, MOST_RUNNING), st.none()),
    st.tuples(st.just("abort"), st.integers(0, 20), st.none()),
    st.tuples(st.just("limits"), st.integers(1, 4), st.integers(1, 4)),
)


def expected(engine: FakeScheduler, most: int) -> list[Any]:
    """Urgencies of those that run next: the most urgent that the limits let run."""
    urgency = engine.adapter.room._classifier.urgency
    running, chosen = engine.running, []
    room = min(most, MOST_RUNNING - running.total())
    for each in sorted(engine.waiting, key=urgency):
        limit = engine.limits.get(kind_of(each))
        if len(chosen) < room and (limit is None or running[kind_of(each)] < limit):
            running[kind_of(each)] += 1
            chosen.append(urgency(each))
    return chosen


@both_ranges
@given(history=st.lists(orderly, max_size=MOVES_PER_STEP))
def test_those_run_next_that_are_most_urgent_and_may(skips: Any, history: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=1, bulk=2)
    urgencies = {}
    for what, one, other in history:
        if what == "arrive":
            new = engine.add(one, arrival_s=float(other))
            urgencies[new.request_id] = engine.adapter.room._classifier.urgency(new)
        elif what == "limits":
            engine.set_policy(batch=one, bulk=other)
        elif what == "step":
            due = expected(engine, one)
            assert [urgencies[name] for name in engine.step(one)] == due
        else:
            happen(engine, (what, one))


def test_two_lanes_let_in_by_turns() -> None:
    engine = FakeScheduler(skips=False, batch=1, bulk=1)
    for kind in ("batch", "bulk") * 3:
        engine.add(kind)
    admitted = []
    for _ in range(3):
        admitted += engine.step()
        while engine.engine.running:
            engine.finish(0)
    assert admitted == ["batch-1", "bulk-2", "batch-3", "bulk-4", "batch-5", "bulk-6"]


def test_a_lane_stays_in_order_when_preempted_requests_join_it() -> None:
    engine = FakeScheduler(skips=False, batch=3)
    for _ in range(4):
        engine.add("batch")
    engine.step()
    for _ in range(2):
        engine.preempt()
    engine.set_policy(batch=1)
    engine.step()
    engine.set_policy(batch=4)
    assert engine.step() == ["batch-2", "batch-3", "batch-4"]


def test_a_request_that_the_engine_passed_over_is_held_back_like_any_other() -> None:
    engine = FakeScheduler(skips=True, batch=2)
    compiling = engine.add("batch", ready=False)
    engine.add("batch")
    assert engine.step() == ["batch-2"]
    engine.set_policy(batch=1)
    compiling.structured_output_request._grammar = "compiled"
    assert engine.step() == []
    engine.finish(0)
    assert engine.step() == ["batch-1"]


def test_a_held_request_that_goes_leaves_nothing_behind() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    for _ in range(3):
        engine.add("batch")
    engine.step()
    assert parked(engine) == {"batch-2", "batch-3"}
    engine.abort(0)
    assert parked(engine) == {"batch-3"}
    engine.stock_step()
    assert parked(engine) == set()


def test_an_order_that_somebody_has_disturbed_is_made_again() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    for kind in ("batch", "batch", "none", "batch"):
        engine.add(kind)
    engine.step(most=1)
    engine.engine.waiting.reverse()
    engine.adapter.adopt(None)
    engine.set_policy(batch=1)
    assert engine.step() == ["none-3"]
    engine.engine.waiting.reverse()
    engine.add("none")
    for _ in range(2):
        engine.engine.waiting.rotate(1)
        engine.step()
    assert "none-5" in [each.request_id for each in engine.engine.running]


def test_a_request_that_nobody_has_told_of_is_put_in_order() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    for _ in range(3):
        engine.add("batch")
    engine.step()
    engine.add("none")
    # As if vLLM had a way of its own to take in requests.
    engine.adapter.room._queue._unsettled = 0
    assert engine.step() == ["none-4"]


def test_those_to_be_put_in_order_later_do_not_slip_through() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    for _ in range(2 * MOVES_PER_STEP):
        engine.add("batch")
    assert engine.step() == ["batch-1"]
    assert engine.step() == []


@both_ranges
def test_held_requests_stand_behind_those_that_may_run_and_come_back(skips: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=1)
    for kind in ("batch", "batch", "batch", "none"):
        engine.add(kind)
    assert engine.step() == ["batch-1", "none-4"]
    assert engine.step() == []
    engine.add("none")
    assert engine.step() == ["none-5"]
    engine.finish(0)
    engine.add("none")
    assert engine.step() == ["batch-2", "none-6"]


@both_ranges
def test_a_preempted_request_counts_as_not_running(skips: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=1)
    for kind in ("batch", "batch"):
        engine.add(kind)
    engine.step()
    engine.preempt()
    assert engine.step() == ["batch-1"]


@both_ranges
def test_a_lowered_limit_takes_nobody_out_and_admits_nobody(skips: Any) -> None:
    engine = FakeScheduler(skips=skips, batch=3)
    for _ in range(5):
        engine.add("batch")
    assert len(engine.step()) == 3
    engine.set_policy(batch=1)
    assert engine.step() == []
    for _ in range(2):
        engine.finish(0)
    assert engine.step() == []
    engine.finish(0)
    assert engine.step() == ["batch-4"]


@both_ranges
def test_a_limit_that_changes_moves_nobody(skips: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeScheduler(skips=skips, batch=1)
    for _ in range(100):
        engine.add("batch")
    for _ in range(100 // MOVES_PER_STEP + 1):
        engine.step()
    looked_at = []
    classify = Classifier.traffic_class
    monkeypatch.setattr(
        Classifier, "traffic_class", lambda *args: looked_at.append(args) or classify(*args)
    )
    engine.set_policy(batch=2)
    assert engine.step() == ["batch-2"]
    assert len(looked_at) < 10


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.OFF])
@both_ranges
def test_leaving_act_brings_back_the_order_of_arrival(skips: Any, mode: Mode) -> None:
    engine = FakeScheduler(skips=skips, batch=1)
    for kind in ("batch", "batch", "none", "fast"):
        engine.add(kind)
    engine.step(most=1)
    engine.set_policy(mode, batch=1)
    assert [each.request_id for each in engine.waiting] == ["batch-1", "batch-2", "none-3"]
    assert parked(engine) == set()


def test_in_shadow_nothing_is_held_back() -> None:
    engine = FakeScheduler(skips=False)
    engine.set_policy(Mode.SHADOW, batch=1)
    for _ in range(3):
        engine.add("batch")
    assert engine.adapter.observe().lanes == ()


def test_requests_that_wait_for_their_grammar_are_held_back_too() -> None:
    engine = FakeScheduler(skips=True, batch=1)
    for number in range(4):
        engine.add("batch", ready=number % 2 == 0)
    assert engine.step() == ["batch-1"]
    for each in engine.waiting:
        get_ready(each)
    assert engine.step() == []
    engine.finish(0)
    assert engine.step() == ["batch-2"]


def test_a_request_that_waits_for_its_grammar_takes_its_place_by_urgency() -> None:
    engine = FakeScheduler(skips=True, batch=1)
    for _ in range(3):
        engine.add("fast")
    engine.step(most=0)
    engine.add("none", ready=False).structured_output_request._grammar = "compiled"
    assert engine.step() == ["fast-1", "fast-2", "fast-3", "none-4"]


def test_a_grammar_that_cannot_be_compiled_is_left_to_the_engine() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    bad = engine.add("batch", ready=False)
    bad.structured_output_request._grammar = ValueError()
    engine.add("batch")
    assert engine.adapter.observe().unsettled[0].readiness.name == "BLOCKED"


def test_a_paused_session_holds_no_place_in_its_class() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    engine.add("batch").status = Status.WAITING_FOR_STREAMING_REQ
    engine.add("batch")
    [paused, other] = engine.adapter.observe().unsettled
    assert (kind_of(engine.waiting[0]), paused.readiness.name) == ("batch", "BLOCKED")
    assert other.readiness.name == "READY"


def test_who_runs_is_remembered_no_longer_than_it_is_of_use() -> None:
    engine = FakeScheduler(skips=False, batch=1)
    for _ in range(1000):
        engine.add("none")
        engine.step()
        engine.finish(0)
    assert len(engine.adapter._running._known) < 100
