"""Order of waiting requests."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.order import overtakes, place
from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.urgency import urgency
from headway_runtime.scheduling.view import WaitingRequest
from tests.unit.runtime.policies import traffic_classes

arrivals = st.integers(0, 50).map(float)
requests = st.lists(st.tuples(arrivals, traffic_classes), max_size=30).map(
    lambda pairs: [WaitingRequest(f"r{i}", *pair) for i, pair in enumerate(pairs)]
)


def key(request: WaitingRequest) -> tuple[int, float]:
    return urgency(request.arrival_s, request.traffic_class)


def carry_out(settled: list[str], placements: tuple[Placement, ...]) -> list[str]:
    queue = list(settled)
    for placement in placements:
        queue.insert(placement.position, placement.request_id)
    return queue


@given(requests, requests)
def test_result_is_every_request_once_in_order_of_urgency_and_stable(old: Any, new: Any) -> None:
    settled = sorted(old, key=key)
    renamed = [WaitingRequest(f"new-{r.request_id}", r.arrival_s, r.traffic_class) for r in new]
    placements = place([key(r) for r in settled], renamed)
    queue = carry_out([r.request_id for r in settled], placements)
    # sorted() is stable, and settled requests come before new ones of the same urgency.
    assert queue == [r.request_id for r in sorted([*settled, *renamed], key=key)]


@given(st.lists(st.tuples(st.integers(0, 1), arrivals), max_size=30), requests)
def test_no_request_is_lost_when_the_settled_part_is_out_of_order(
    settled_keys: Any, new: Any
) -> None:
    placements = place(settled_keys, new)
    queue = carry_out([f"old{i}" for i in range(len(settled_keys))], placements)
    assert sorted(queue) == sorted(
        [r.request_id for r in new] + [f"old{i}" for i in range(len(settled_keys))]
    )


def test_time_to_first_token_counts_before_the_deadline_of_the_whole_request() -> None:
    both = TrafficClass("both", ttft_ms=500, deadline_s=60)
    assert urgency(10.0, both) == urgency(10.0, TrafficClass("first", ttft_ms=500))


def test_a_ttft_that_can_be_kept_goes_before_everything_else() -> None:
    fast = TrafficClass("fast", ttft_ms=60_000)
    assert urgency(1000.0, fast) < urgency(0.0, TrafficClass("slow", deadline_s=10))
    assert urgency(1000.0, fast) < urgency(0.0, None)


def test_a_ttft_that_cannot_be_kept_joins_the_rest_and_is_not_forgotten() -> None:
    fast = TrafficClass("fast", ttft_ms=1000)
    late = urgency(100.0, fast, is_late=True)
    assert urgency(200.0, fast) < late
    assert late < urgency(100.0, TrafficClass("slow", deadline_s=60))
    assert urgency(0.0, TrafficClass("slow", deadline_s=60)) < late


def test_work_without_a_deadline_yields_to_work_with_one_but_not_for_ever() -> None:
    slow = TrafficClass("slow", deadline_s=60)
    assert urgency(100.0, slow) < urgency(0.0, None)
    assert urgency(0.0, None) < urgency(1000.0, slow)


def test_work_without_objective_keeps_its_order_of_arrival() -> None:
    assert urgency(1.0, None) < urgency(2.0, TrafficClass("none"))


@given(requests)
def test_requests_in_order_overtake_nobody(unsettled: Any) -> None:
    ordered = sorted(unsettled, key=key)
    placements = place([], ordered)
    assert not overtakes(placements, 0, ordered)


def test_an_urgent_arrival_overtakes() -> None:
    urgent = [WaitingRequest("urgent", 5.0, TrafficClass("fast", ttft_ms=1))]
    settled = [urgency(0.0, None)]
    assert overtakes(place(settled, urgent), 1, urgent)
