"""What tenants were served, and what follows for who goes next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.tenants.shares import (
    EVERYBODY_ELSE,
    MOST_BEHIND_TOKENS,
    MOST_TENANTS,
    USE_TIME_S,
    Shares,
)


def test_a_counter_grows_by_what_was_served_over_the_weight() -> None:
    shares = Shares()
    shares.declare({"big": 4})
    shares.charge("big", 800)
    shares.charge("small", 800)
    assert (shares.counter("big"), shares.counter("small")) == (200, 800)


def test_a_changed_weight_counts_from_then_on() -> None:
    shares = Shares()
    shares.charge("a", 100)
    shares.declare({"a": 2})
    shares.charge("a", 100)
    assert shares.counter("a") == 150


def test_who_comes_back_has_saved_nothing_up() -> None:
    shares = Shares()
    for each in ("busy", "other"):
        shares.waits(each)
        shares.charge(each, 1_000)
    shares.charge("busy", 500)
    shares.waits("back")
    assert shares.counter("back") == shares.counter("busy") == 1_500


def test_who_comes_when_nobody_waits_is_lifted_to_who_left_last() -> None:
    shares = Shares()
    shares.waits("first")
    shares.charge("first", 700)
    shares.waits_no_more("first")
    shares.waits("second")
    assert shares.counter("second") == 700


def test_who_is_ahead_is_not_lifted_back() -> None:
    shares = Shares()
    shares.charge("ahead", 900)
    shares.waits("other")
    shares.waits("ahead")
    assert shares.counter("ahead") == 900


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["waits", "leaves", "served"])),
        max_size=60,
    )
)
def test_counters_never_fall_and_who_waits_is_known(events: list[tuple[str, str]]) -> None:
    shares, waiting = Shares(), dict.fromkeys("abc", 0)
    for tenant, event in events:
        before = {each: shares.counter(each) for each in "abc"}
        if event == "waits":
            shares.waits(tenant)
            waiting[tenant] += 1
        elif event == "served":
            shares.charge(tenant, 10)
        elif waiting[tenant]:
            shares.waits_no_more(tenant)
            waiting[tenant] -= 1
        assert all(shares.counter(each) >= before[each] for each in "abc")
        assert set(shares.waiting) == {each for each, count in waiting.items() if count}


def test_who_has_had_more_than_a_share_of_late_is_told_how_much() -> None:
    shares = Shares()
    for tenant, tokens in (("a", 1_000), ("b", 1_000), ("c", 4_000)):
        shares.charge(tenant, tokens)
    shares.age(0.0)
    assert set(shares.levels) == {"c"}
    assert shares.levels["c"] > 1
    shares.age(50 * USE_TIME_S)
    assert not shares.levels


def test_weights_count_when_it_is_told_who_has_more_than_a_share() -> None:
    shares = Shares()
    shares.declare({"big": 4})
    shares.charge("big", 4_000)
    shares.charge("small", 1_000)
    shares.age(0.0)
    assert not shares.levels


def test_names_from_outside_do_not_pile_up() -> None:
    shares = Shares()
    shares.declare({"declared": 3})
    for number in range(10 * MOST_TENANTS):
        shares.charge(shares.known_as(f"stranger-{number}"), 1)
    assert len(shares) <= MOST_TENANTS + 1
    assert shares.known_as("stranger-9999") == EVERYBODY_ELSE
    assert shares.known_as("declared") == "declared"
    shares.age(0.0)
    shares.age(100 * USE_TIME_S)
    assert len(shares) < MOST_TENANTS
    assert shares.known_as("stranger-9999") == "stranger-9999"


def test_nobody_is_further_behind_than_it_may_catch_up_on() -> None:
    shares = Shares()
    for each in ("ahead", "behind"):
        shares.waits(each)
    shares.charge("ahead", 10 * MOST_BEHIND_TOKENS)
    shares.age(0.0)
    assert shares.counter("ahead") - shares.counter("behind") == MOST_BEHIND_TOKENS


def test_who_begins_anew_owes_nothing() -> None:
    shares = Shares()
    shares.waits("a")
    shares.charge("a", 1_000)
    shares.begin_anew()
    shares.waits("b")
    shares.waits("a")
    assert shares.counter("a") == shares.counter("b") == 0
