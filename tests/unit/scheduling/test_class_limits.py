"""Limits on how many requests of a class run at once, as the planner sees them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.class_limits import (
    ADMISSIONS_PER_STEP,
    LOOKS_PER_STEP,
    MOVES_PER_STEP,
    decide_admission,
)
from headway_runtime.scheduling.lazy import Lazy
from headway_runtime.scheduling.plan import HoldBack, LetIn, Stay
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.view import (
    Lane,
    Limits,
    Readiness,
    StepView,
    Urgency,
    WaitingRequest,
)

CEILINGS = Limits(8192, 16)
CLASSES = {
    "fast": TrafficClass("fast", ttft_ms=100),
    "none": None,
    "batch": TrafficClass("batch", deadline_s=60, max_running=1),
    "bulk": TrafficClass("bulk", max_running=1),
}
LIMITED = ("batch", "bulk")
SEEN_PER_STEP = 8


def waiting(name: str, kind: str, arrival_s: float = 0.0, **other: Any) -> WaitingRequest:
    return WaitingRequest(name, arrival_s, CLASSES[kind], **other)


def kind_of(request: WaitingRequest) -> str:
    return request.traffic_class.name if request.traffic_class is not None else "none"


def urgencies(requests: list[WaitingRequest]) -> list[Urgency]:
    return [each.urgency for each in requests]


@dataclass
class Engine:
    """An engine that carries out plans on lists, as the words of the plan's fields say."""

    limits: dict[str, int]
    front: list[WaitingRequest] = field(default_factory=list)
    lanes: list[list[WaitingRequest]] = field(default_factory=lambda: [[] for _ in LIMITED])
    arrived: list[WaitingRequest] = field(default_factory=list)
    running: list[WaitingRequest] = field(default_factory=list)

    @property
    def waiting(self) -> list[WaitingRequest]:
        return [*self.front, *(each for lane in self.lanes for each in lane), *self.arrived]

    @property
    def counts(self) -> Counter[str]:
        return Counter(kind_of(each) for each in self.running)

    def view(self) -> StepView:
        counts = self.counts
        return StepView(
            CEILINGS,
            CEILINGS,
            running=len(self.running),
            settled=urgencies(self.front),
            unsettled=self.arrived[:SEEN_PER_STEP],
            lanes=[
                Lane(name, self.limits[name] - counts[name], lane, urgencies(lane))
                for name, lane in zip(LIMITED, self.lanes, strict=True)
            ],
            front=self.front,
            unseen=max(0, len(self.arrived) - SEEN_PER_STEP),
        )

    def step(self, most: int) -> list[WaitingRequest]:
        """Plan a step and admit up to ``most`` requests; those admitted."""
        plan = plan_step(self.view(), lambda: False)
        self._carry_out(plan)
        admitted = self.admit(plan.limits.max_batch_size, most)
        self.running += admitted
        return admitted

    def _carry_out(self, plan: Any) -> None:
        newcomers = {each.request_id: each for each in self.arrived[: len(plan.placements)]}
        del self.arrived[: len(newcomers)]
        for each in plan.placements:
            place = self.front if each.lane is None else self.lanes[each.lane]
            place.insert(each.position, newcomers[each.request_id])
        index = 0
        for turn in plan.turns:
            if isinstance(turn, Stay):
                index += 1
            elif isinstance(turn, LetIn):
                self.front.insert(index, self.lanes[turn.lane].pop(0))
                index += 1
            elif isinstance(turn, HoldBack):
                self.lanes[turn.lane].insert(turn.position, self.front.pop(index))

    def admit(self, max_batch_size: int, most: int) -> list[WaitingRequest]:
        """What an engine does: from the front, passing over what is not ready."""
        admitted: list[WaitingRequest] = []
        for place in (self.front, *self.lanes, self.arrived):
            for each in list(place):
                if len(admitted) == most or len(self.running) + len(admitted) >= max_batch_size:
                    return admitted
                if each.readiness is Readiness.READY:
                    place.remove(each)
                    admitted.append(each)
        return admitted


kinds = st.sampled_from(sorted(CLASSES))
readiness = st.sampled_from(Readiness)
limits = st.fixed_dictionaries({name: st.integers(1, 4) for name in LIMITED})
events = st.one_of(
    st.tuples(st.just("arrive"), kinds, st.integers(0, 100)),
    st.tuples(st.just("arrive unready"), kinds, readiness),
    st.tuples(st.just("step"), st.integers(1, 20), st.none()),
    st.tuples(st.just("finish"), st.integers(0, 15), st.none()),
    st.tuples(st.just("preempt"), st.none(), st.none()),
    st.tuples(st.just("abort"), st.integers(0, 60), st.none()),
    st.tuples(st.just("limit"), st.sampled_from(LIMITED), st.integers(1, 4)),
)


def happen(engine: Engine, number: int, event: Any) -> None:
    """Something happens to the engine between two steps."""
    what, one, other = event
    if what == "arrive":
        engine.arrived.append(waiting(f"{one}-{number}", one, float(other)))
    elif what == "arrive unready":
        engine.arrived.append(waiting(f"{one}-{number}", one, float(number), readiness=other))
    elif what == "finish" and one < len(engine.running):
        del engine.running[one]
    elif what == "preempt" and engine.running:
        engine.front.insert(0, engine.running.pop())
    elif what == "abort" and one < len(engine.waiting):
        gone = engine.waiting[one]
        for place in (engine.front, *engine.lanes, engine.arrived):
            if gone in place:
                place.remove(gone)
    elif what == "limit":
        engine.limits[one] = other


def admissible(engine: Engine) -> int:
    """How many of the waiting requests the limits let run."""
    counts = Counter(kind_of(each) for each in engine.waiting)
    running = engine.counts
    return sum(
        min(count, max(0, engine.limits[kind] - running[kind])) if kind in LIMITED else count
        for kind, count in counts.items()
    )


@given(limits, st.lists(events, max_size=60))
def test_no_admission_takes_a_class_above_its_limit(limits: Any, events: Any) -> None:
    engine = Engine(limits)
    for number, event in enumerate(events):
        happen(engine, number, event)
        if event[0] != "step":
            continue
        before = engine.counts
        engine.step(event[1])
        for name in LIMITED:
            assert engine.counts[name] <= max(engine.limits[name], before[name])


@given(limits, st.lists(events, max_size=60))
def test_no_request_is_lost_or_doubled(limits: Any, events: Any) -> None:
    engine = Engine(limits)
    for number, event in enumerate(events):
        happen(engine, number, event)
        if event[0] == "step":
            before = sorted(each.request_id for each in [*engine.waiting, *engine.running])
            engine.step(event[1])
            after = sorted(each.request_id for each in [*engine.waiting, *engine.running])
            assert after == before


ready_events = events.filter(lambda event: event[0] != "arrive unready")


@given(limits, st.lists(ready_events, max_size=60))
def test_a_step_admits_as_many_as_batch_budget_and_limits_allow(limits: Any, events: Any) -> None:
    engine = Engine(limits)
    for number, event in enumerate(events):
        happen(engine, number, event)
        if event[0] != "step" or len(engine.arrived) > SEEN_PER_STEP:
            continue
        room = max(0, CEILINGS.max_batch_size - len(engine.running))
        allowed = min(event[1], room, admissible(engine))
        assert len(engine.step(event[1])) == allowed


@given(limits, st.lists(events, max_size=60), st.integers(1, 20))
def test_unlimited_classes_are_never_blocked(limits: Any, events: Any, most: Any) -> None:
    """However much of a class is held back, and wherever it stands."""
    engine = Engine(limits)
    for number, event in enumerate(events):
        happen(engine, number, event)
        if event[0] == "step":
            engine.step(event[1])
    while engine.arrived:
        engine.step(0)
    engine.running = [waiting(f"full-{name}-{n}", name) for name in LIMITED for n in range(4)]
    ready = [
        each
        for each in engine.waiting
        if kind_of(each) not in LIMITED and each.readiness is Readiness.READY
    ]
    room = CEILINGS.max_batch_size - len(engine.running)
    assert len(engine.step(most)) == min(len(ready), room, most)


@given(limits, st.lists(ready_events, max_size=60))
def test_every_request_runs_once_there_is_room(limits: Any, events: Any) -> None:
    engine = Engine(limits)
    for number, event in enumerate(events):
        happen(engine, number, event)
        if event[0] == "step":
            engine.step(event[1])
    steps = len(engine.waiting)
    for _ in range(steps):
        engine.running.clear()
        assert engine.step(1)
    assert engine.waiting == []


@given(st.lists(st.tuples(kinds, st.integers(0, 100)), max_size=SEEN_PER_STEP), limits)
def test_requests_run_in_order_of_urgency_as_far_as_limits_allow(
    arrivals: Any, limits: Any
) -> None:
    engine = Engine(limits)
    for number, (kind, arrival_s) in enumerate(arrivals):
        engine.arrived.append(waiting(f"{kind}-{number}", kind, float(arrival_s)))
    expected, room = [], dict(limits)
    for each in sorted(engine.arrived, key=lambda each: each.urgency):
        if room.get(kind_of(each), 1) > 0:
            expected.append(each.urgency)
            room[kind_of(each)] = room.get(kind_of(each), 99) - 1
    assert [each.urgency for each in engine.step(99)] == expected


@given(limits, st.lists(events, max_size=40))
def test_the_same_history_gives_the_same_admissions(limits: Any, events: Any) -> None:
    histories = []
    for _ in range(2):
        engine = Engine(dict(limits))
        history = []
        for number, event in enumerate(events):
            happen(engine, number, event)
            if event[0] == "step":
                history.append([each.request_id for each in engine.step(event[1])])
        histories.append(history)
    assert histories[0] == histories[1]


def test_what_is_held_back_returns_to_its_place_by_urgency() -> None:
    engine = Engine({"batch": 1, "bulk": 1})
    engine.arrived += [waiting("b1", "batch", 0.0), waiting("b2", "batch", 1.0)]
    engine.arrived += [waiting("late", "none", 2.0)]
    assert [each.request_id for each in engine.step(2)] == ["b1", "late"]
    engine.arrived.append(waiting("later", "none", 3.0))
    engine.running.clear()
    # Its deadline puts it before work without one.
    assert [each.request_id for each in engine.step(2)] == ["b2", "later"]


def test_a_preempted_request_of_a_full_class_lets_others_pass() -> None:
    engine = Engine({"batch": 1, "bulk": 1})
    engine.running = [waiting("b1", "batch")]
    engine.front = [waiting("b0", "batch"), waiting("other", "none", 5.0)]
    assert [each.request_id for each in engine.step(5)] == ["other"]
    assert [each.request_id for each in engine.lanes[0]] == ["b0"]
    engine.running.clear()
    assert [each.request_id for each in engine.step(5)] == ["b0"]


def test_a_request_held_back_after_another_was_let_in_goes_where_it_belongs() -> None:
    engine = Engine({"batch": 1, "bulk": 1}, front=[waiting("b5", "batch", 5.0)])
    engine.lanes[0] = [waiting(f"b{n}", "batch", float(n)) for n in (0, 1, 9)]
    assert [each.request_id for each in engine.step(99)] == ["b0"]
    assert [each.request_id for each in engine.lanes[0]] == ["b1", "b5", "b9"]


def test_a_plan_says_when_it_holds_back() -> None:
    engine = Engine({"batch": 1, "bulk": 1})
    engine.arrived += [waiting("b1", "batch"), waiting("b2", "batch")]
    plan = plan_step(engine.view(), lambda: False)
    assert (plan.limits.max_batch_size, plan.reasons) == (1, (Reason.CLASS_LIMIT,))


def test_a_plan_that_holds_nobody_back_keeps_the_whole_batch() -> None:
    engine = Engine({"batch": 2, "bulk": 2})
    engine.arrived += [waiting("b1", "batch"), waiting("b2", "batch"), waiting("n", "none")]
    plan = plan_step(engine.view(), lambda: False)
    assert (plan.limits, plan.reasons) == (CEILINGS, ())


def test_a_batch_is_kept_for_those_that_are_to_be_put_in_order_later() -> None:
    engine = Engine({"batch": SEEN_PER_STEP, "bulk": 1})
    engine.arrived += [waiting(f"b{n}", "batch", float(n)) for n in range(SEEN_PER_STEP + 2)]
    assert len(engine.step(99)) == SEEN_PER_STEP


def test_what_the_engine_passes_over_lets_nobody_slip_through() -> None:
    engine = Engine({"batch": 1, "bulk": 1})
    engine.running = [waiting("b0", "batch")]
    engine.arrived += [
        waiting("compiling", "fast", readiness=Readiness.PENDING),
        waiting("b1", "batch"),
    ]
    assert engine.step(99) == []


def test_a_pending_request_takes_its_place_in_its_class_and_a_blocked_one_does_not() -> None:
    for state, admitted in ((Readiness.PENDING, []), (Readiness.BLOCKED, ["b1"])):
        engine = Engine({"batch": 1, "bulk": 1}, running=[waiting("other", "none")])
        engine.arrived += [waiting("b0", "batch", readiness=state), waiting("b1", "batch", 1.0)]
        assert [each.request_id for each in engine.step(99)] == admitted


def test_what_is_not_ready_never_stops_an_idle_engine() -> None:
    engine = Engine({"batch": 1, "bulk": 1})
    engine.arrived += [waiting("b0", "batch", readiness=Readiness.PENDING)]
    engine.arrived += [waiting("b1", "batch", 1.0), waiting("b2", "batch", 2.0)]
    assert [each.request_id for each in engine.step(99)] == ["b1"]


def test_a_step_looks_at_no_more_than_it_must_however_many_wait() -> None:
    looked_at = []

    def many(kind: str, count: int) -> Any:
        def item(index: int) -> WaitingRequest:
            looked_at.append(index)
            return waiting(f"{kind}{index}", kind, float(index))

        return Lazy(count, item)

    lanes = [Lane("batch", 0, many("batch", 10**5)), Lane("bulk", 9, many("bulk", 10**5))]
    admission = decide_admission(many("none", 100_000), lanes, most=4)
    assert admission.ready == 4
    assert len(looked_at) <= 12


def test_a_step_moves_and_admits_a_bounded_number() -> None:
    held = [waiting(f"b{n}", "batch", float(n)) for n in range(1000)]
    admission = decide_admission(held, [Lane("batch", 0)], most=10**6)
    assert (len(admission.turns), admission.ready) == (MOVES_PER_STEP, 0)
    free = [waiting(f"n{n}", "none", float(n)) for n in range(1000)]
    assert decide_admission(free, [Lane("batch", 0)], most=10**6).ready == ADMISSIONS_PER_STEP
    unready = [waiting(f"n{n}", "none", readiness=Readiness.PENDING) for n in range(1000)]
    assert len(decide_admission(unready, [Lane("batch", 0)], most=1).turns) == LOOKS_PER_STEP
