"""Whose turn it is among tenants."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.tenants.fairness import (
    TOKENS_A_DECISION,
    in_turn,
    over_share,
    with_running,
)
from headway_runtime.scheduling.tenants.shares import Shares
from headway_runtime.scheduling.view import (
    BackgroundRequest,
    Prefill,
    Readiness,
    TenantView,
    WaitingRequest,
)

LARGEST = 4_000


def waiting(tenant: str, *tokens: int) -> list[WaitingRequest]:
    return [
        WaitingRequest(f"{tenant}{number}", 0.0, prefill_tokens=each, tenant=tenant)
        for number, each in enumerate(tokens)
    ]


def names(found: list[BackgroundRequest]) -> list[str]:
    return [each.request_id for each in found]


def test_who_was_served_least_goes_next_and_is_served_by_it() -> None:
    tenants = [
        TenantView("a", 100.0, 1, waiting("a", 50, 50, 50)),
        TenantView("b", 140.0, 1, waiting("b", 50, 50)),
    ]
    assert names(in_turn(tenants, 16, 10_000)) == ["a0", "b0", "a1", "b1", "a2"]


def test_a_larger_weight_gets_more_turns() -> None:
    tenants = [
        TenantView("big", 0.0, 3, waiting("big", *[60] * 12)),
        TenantView("small", 0.0, 1, waiting("small", *[60] * 12)),
    ]
    found = in_turn(tenants, 12, 10_000)
    assert Counter(each.tenant for each in found) == {"big": 9, "small": 3}


def test_no_more_is_looked_for_than_there_is_room() -> None:
    tenants = [TenantView("a", 0.0, 1, waiting("a", *[100] * 9))]
    assert len(in_turn(tenants, 3, 10_000)) == 3
    assert len(in_turn(tenants, 16, 250)) == 3


def test_what_is_not_ready_gives_its_turn_to_the_next_of_its_tenant() -> None:
    first, second, third = waiting("a", 10, 10, 10)
    blocked = replace(first, readiness=Readiness.BLOCKED)
    tenants = [TenantView("a", 0.0, 1, [blocked, replace(second, is_misfit=True), third])]
    assert names(in_turn(tenants, 16, 100)) == ["a2"]


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.tuples(
            st.integers(1, 5),
            st.lists(st.integers(1, LARGEST), min_size=200, max_size=200),
        ),
        min_size=2,
    ),
    st.integers(1, 8),
)
def test_backlogged_tenants_stay_within_the_largest_request_of_each_other(
    demands: dict[str, tuple[int, list[int]]], looks: int
) -> None:
    """The bound of virtual token counters: service over weight differs by one request at most."""
    shares = Shares()
    shares.declare({name: weight for name, (weight, _) in demands.items()})
    left = {name: waiting(name, *tokens) for name, (_, tokens) in demands.items()}
    for name in demands:
        shares.waits(name)
    while all(left.values()):
        tenants = [
            TenantView(name, shares.counter(name), shares.weight(name), queue)
            for name, queue in left.items()
        ]
        for each in in_turn(tenants, looks, 10**9):
            assert isinstance(each, WaitingRequest)
            shares.charge(each.tenant, each.prefill_tokens)
            left[each.tenant].remove(each)
            counters = [shares.counter(name) for name in demands]
            if not all(left.values()):
                return
            assert max(counters) - min(counters) <= LARGEST


def test_a_prompt_that_runs_is_held_back_for_a_more_urgent_one_of_its_tenant() -> None:
    running = Prefill("running", 500, 3_000, 100.0, tenant="a")
    early, late = (
        replace(each, arrival_s=arrival_s)
        for each, arrival_s in zip(waiting("a", 50, 50), (99.0, 101.0), strict=True)
    )
    tenants = [TenantView("a", 0.0, 1, [early, late]), TenantView("b", 80.0, 1, waiting("b", 10))]
    found = in_turn(with_running(tenants, [running]), 16, 10_000)
    assert names(found) == ["a0", "running", "b0", "a1"]


def test_what_runs_of_tenants_that_have_nothing_waiting_takes_no_turn() -> None:
    tenants = [TenantView("a", 0.0, 1, waiting("a", 50))]
    others = [
        Prefill("other", 0, 10, 0.0, tenant="b"),
        Prefill("urgent", 0, 10, 0.0, TrafficClass("chat", ttft_ms=1), tenant="a"),
    ]
    assert with_running(tenants, others) == tenants


def test_what_runs_needs_no_slot() -> None:
    running = Prefill("running", 0, 10, 100.0, tenant="a")
    tenants = with_running([TenantView("a", 0.0, 1, waiting("a", 50))], [running])
    assert names(in_turn(tenants, 0, 10_000)) == ["running"]


def test_who_is_ahead_of_others_work_without_a_ttft_is_over_its_share() -> None:
    window = 10
    most = window * TOKENS_A_DECISION
    behind = TenantView("behind", 0.0, 1, waiting("behind", 10))
    for ahead, found in ((most, frozenset()), (most + 1, frozenset({"ahead"}))):
        assert over_share([behind, TenantView("ahead", ahead)], window) == found


def test_nobody_is_over_a_share_where_others_wait_for_nothing_but_deadlines() -> None:
    assert over_share([TenantView("a", 0.0), TenantView("b", 1e9)], 1) == frozenset()
    assert over_share([TenantView("b", 1e9, 1, waiting("b", 10))], 1) == frozenset()
