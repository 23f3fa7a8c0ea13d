"""Totals of few tenants, whatever names come from outside."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.tenants.totals import (
    AHEAD,
    HALF_LIFE_S,
    MOST_CANDIDATES,
    OTHERS,
    PLACES,
    TenantTable,
    TenantTotals,
)


def tokens(count: int) -> TenantTotals:
    return TenantTotals(1, 1, count, 0)


def filled(each: int = 100) -> TenantTable:
    """All places are taken, by tenants that had so many tokens."""
    table = TenantTable()
    for number in range(PLACES):
        table.count(f"t{number}", tokens(each), 0.0)
    return table


def test_a_tenant_has_totals_of_its_own() -> None:
    table = TenantTable()
    table.count("a", TenantTotals(1, 1, 100, 10), 0.0)
    table.count("a", TenantTotals(1, 0, 50, 5), 1.0)
    table.count("", TenantTotals(1, 1, 7, 7), 2.0)
    assert dict(table.totals) == {
        OTHERS: TenantTotals(1, 1, 7, 7),
        "a": TenantTotals(2, 1, 150, 15),
    }


def test_without_a_place_it_is_one_of_the_others() -> None:
    table = filled()
    table.count("late", tokens(100), 1.0)
    totals = dict(table.totals)
    assert "late" not in totals
    assert totals[OTHERS] == tokens(100)


def test_who_had_much_more_takes_the_place_of_who_had_least() -> None:
    table = filled()
    for number in range(1, PLACES):
        table.count(f"t{number}", tokens(number), 1.0)
    table.count("late", tokens(int(AHEAD * 100)), 2.0)
    assert "late" not in dict(table.totals)
    table.count("late", tokens(1), 2.0)
    totals = dict(table.totals)
    assert totals["late"] == tokens(1)
    assert "t0" not in totals
    # What it had before is not told twice.
    assert totals[OTHERS] == tokens(int(AHEAD * 100))


def test_what_was_long_ago_keeps_no_place() -> None:
    table = filled(each=1_000_000)
    later_s = 30 * HALF_LIFE_S
    table.count("new", tokens(10), later_s)
    assert "new" in dict(table.totals)


@given(
    st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 1000), st.floats(0, 3 * HALF_LIFE_S)),
        max_size=400,
    )
)
def test_there_are_few_whatever_comes_and_each_only_grows(
    comes: list[tuple[int, int, float]],
) -> None:
    table = TenantTable()
    now_s = 0.0
    offered: Counter[str] = Counter()
    before: dict[str, TenantTotals] = {}
    for number, count, passed_s in comes:
        now_s += passed_s
        name = f"t{number}" if number else ""
        table.count(name, tokens(count), now_s)
        offered[name] += count
        totals = dict(table.totals)
        assert len(totals) <= PLACES + 1
        assert len(table._service) <= MOST_CANDIDATES + 1
        for known, each in totals.items():
            assert all(new >= old for new, old in zip(each, before.get(known, each), strict=True))
            if known != OTHERS:
                assert each.prompt_tokens <= offered[known]
        if set(before) <= set(totals):
            assert sum(each.requests for each in totals.values()) == 1 + sum(
                each.requests for each in before.values()
            )
        before = totals


def test_names_that_never_come_again_push_nobody_out() -> None:
    table = filled()
    for number in range(3 * MOST_CANDIDATES):
        table.count(f"once{number}", tokens(1), 1.0)
    assert {f"t{number}" for number in range(PLACES)} < set(dict(table.totals))
    assert dict(table.totals)[OTHERS].requests == 3 * MOST_CANDIDATES
