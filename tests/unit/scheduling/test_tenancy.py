"""What each tenant of an engine has waiting and was served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import Policy, Scope, Stamp, Tenant, TrafficClass
from headway_runtime.scheduling.tenants.rate import LEAST_SEEN_S, Rate
from headway_runtime.scheduling.tenants.tenancy import Served, Tenancy
from headway_runtime.scheduling.view import Readiness, WaitingRequest

CHAT = TrafficClass("chat", ttft_ms=1_000)
BATCH = TrafficClass("batch", deadline_s=60, weight=2)


def request(name: str, tenant: str, of: TrafficClass | None = None) -> WaitingRequest:
    return WaitingRequest(name, float(len(name)), of, prefill_tokens=100, tenant=tenant)


def seen(known: WaitingRequest) -> WaitingRequest:
    return known


def waits(tenancy: Tenancy[WaitingRequest], *requests: WaitingRequest) -> None:
    for each in requests:
        tenancy.waits(each, each.urgency, each)


def background(tenancy: Tenancy[WaitingRequest]) -> dict[str, list[str]]:
    tenants = tenancy.view(0.0, seen).waiting
    return {each.name: [one.request_id for one in each.background] for each in tenants}


def test_one_tenant_alone_shares_with_nobody() -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    waits(tenancy, request("1", "a"), request("2", "a", CHAT))
    assert not tenancy.view(0.0, seen).waiting


def test_each_tenant_has_a_queue_of_what_has_no_ttft() -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    waits(tenancy, request("22", "a"), request("1", "a"), request("c", "a", CHAT))
    waits(tenancy, request("b", "b", CHAT))
    assert background(tenancy) == {"a": ["1", "22"], "b": []}
    assert tenancy.waiting_by_class["chat"] == 2


def test_who_loses_its_ttft_goes_to_that_queue() -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    urgent = request("u", "a", CHAT)
    waits(tenancy, urgent, request("b", "b"))
    assert background(tenancy)["a"] == []
    waits(tenancy, replace(urgent, is_late=True))
    assert background(tenancy)["a"] == ["u"]
    assert tenancy.shares.waiting_of("a") == 1


def test_who_has_nothing_that_could_go_on_keeps_nobody_waiting() -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    paused = replace(request("p", "paused"), readiness=Readiness.BLOCKED)
    waits(tenancy, paused, request("b", "b"), request("c", "c"))
    assert set(background(tenancy)) == {"b", "c"}
    waits(tenancy, request("q", "paused", CHAT))
    assert background(tenancy)["paused"] == []


def test_tokens_count_by_kind_and_class() -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    tenancy.declare(
        Policy(Scope("s"), Stamp(1, 0, 0), classes=(BATCH,), tenants=(Tenant("b", weight=5),))
    )
    tenancy.served("a", CHAT, Served(prompt_tokens=100, output_tokens=10))
    tenancy.served("b", BATCH, Served(prompt_tokens=100, output_tokens=10))
    assert tenancy.shares.counter("a") == 120
    assert tenancy.shares.counter("b") == 120 / 2 / 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "22", "333", "4444"]),
            st.sampled_from(["waits", "late", "leaves"]),
            st.sampled_from([None, CHAT, BATCH]),
        ),
        max_size=40,
    )
)
def test_the_queues_hold_what_waits(
    events: Sequence[tuple[str, str, TrafficClass | None]],
) -> None:
    tenancy: Tenancy[WaitingRequest] = Tenancy()
    model: dict[str, WaitingRequest] = {}
    for name, event, promised in events:
        if event == "leaves":
            tenancy.left([name])
            model.pop(name, None)
        else:
            known = model.get(name) or request(name, "ab"[len(name) % 2], promised)
            model[name] = replace(known, is_late=known.is_late or event == "late")
            waits(tenancy, model[name])
        assert sum(tenancy.waiting_by_class.values()) == len(model)
        assert set(tenancy.shares.waiting) == {each.tenant for each in model.values()}
        without = {n for n, each in model.items() if each.urgency[0] == 1}
        assert {n for n in model if tenancy.request(n) is not None} == without


def test_a_rate_is_of_the_time_in_which_something_waited() -> None:
    rate = Rate()
    rate.age(0.0, waits=True)
    assert rate.per_s is None
    for second in range(1, 5):
        rate.count(1_000)
        rate.age(float(second), waits=True)
    known = rate.per_s
    assert known == pytest.approx(1_000, rel=0.1)
    rate.age(40.0, waits=False)
    assert rate.per_s == pytest.approx(known)


def test_a_rate_is_not_told_before_it_was_seen_for_long_enough() -> None:
    rate = Rate()
    rate.age(0.0, waits=True)
    rate.count(10)
    rate.age(LEAST_SEEN_S / 2, waits=True)
    assert rate.per_s is None


def test_what_is_done_while_nobody_waits_is_no_rate() -> None:
    rate = Rate()
    rate.age(0.0, waits=False)
    rate.count(1_000_000)
    rate.age(1.0, waits=False)
    for second in range(2, 6):
        rate.count(1_000)
        rate.age(float(second), waits=True)
    assert rate.per_s == pytest.approx(1_000, rel=0.1)
