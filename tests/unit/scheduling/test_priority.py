"""Priorities of work without a deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.programs.priority import (
    FIRST,
    HORIZON_S,
    Terms,
    Weights,
    base,
    depth_among_known,
    depth_among_past,
    due_s,
    priority,
    progress,
    weighted_tokens,
)
from headway_runtime.scheduling.urgency import NO_DEADLINE_S

shares = st.floats(0, 1)
terms = st.builds(Terms, shares, shares, shares)
percent = st.integers(0, 100)
weights = st.builds(
    lambda base, rest: Weights.of(
        PriorityCoefficients(
            base, (100 - base) * rest // 100, 100 - base - (100 - base) * rest // 100
        )
    ),
    percent,
    percent,
)
tokens = st.floats(0, 1e12)
calls = st.integers(0, 10_000)


@given(weights, terms)
def test_a_priority_is_from_0_to_1(given_weights: Weights, given_terms: Terms) -> None:
    assert 0 <= priority(given_weights, given_terms) <= 1


@given(tokens, calls)
def test_terms_are_from_0_to_1(service: float, number: int) -> None:
    through = 1 + number // 2
    for term in (
        base(service),
        depth_among_past(number),
        depth_among_known(number),
        progress(through, number + 1),
    ):
        assert 0 <= term <= 1


@given(weights, terms, terms)
def test_more_base_more_depth_and_less_progress_never_go_later(
    given_weights: Weights, one: Terms, other: Terms
) -> None:
    better = Terms(
        max(one.base, other.base), max(one.depth, other.depth), min(one.progress, other.progress)
    )
    assert priority(given_weights, better) >= priority(given_weights, one) - 1e-12


@given(tokens, st.floats(1, 1e6))
def test_what_was_served_more_yields(service: float, more: float) -> None:
    assert base(service + more) <= base(service)
    assert base(0) == 1


@given(calls)
def test_a_call_nearer_to_the_end_is_deeper(number: int) -> None:
    assert depth_among_past(number + 1) > depth_among_past(number)
    assert depth_among_known(number + 1) < depth_among_known(number) or number > 1_000
    assert depth_among_known(0) == 1


def test_what_declares_nothing_is_neither_at_its_beginning_nor_at_its_end() -> None:
    assert depth_among_known(20) < depth_among_past(0) < depth_among_known(1)
    assert FIRST.depth == depth_among_past(0)


def test_what_the_whole_program_waits_for_has_no_progress() -> None:
    assert progress(5, 5) == 0
    assert progress(1, 5) == pytest.approx(0.8)


def test_the_default_is_the_documented_formula() -> None:
    found = priority(Weights.of(PriorityCoefficients()), Terms(0.5, 0.25, 0.75))
    assert found == pytest.approx(0.5 * 0.5 + 0.3 * 0.25 + 0.2 * 0.25)


def test_the_base_decays_by_a_hundredth_for_each_unit_of_service() -> None:
    assert base(512) == pytest.approx(0.99)
    assert base(1024) == pytest.approx(0.99**2)


def test_an_output_token_is_served_twice_as_much_as_a_prompt_token() -> None:
    assert weighted_tokens(100, 10) == 120


WEIGHTS = Weights.of(PriorityCoefficients())
terms = st.builds(Terms, shares, shares, shares)


@given(terms, st.integers(0, 10**9), st.integers(0, 10**6))
def test_waiting_changes_no_priority(found: Terms, arrival: int, later: int) -> None:
    early, late = (due_s(float(at), WEIGHTS, found) for at in (arrival, arrival + later))
    assert late - early == pytest.approx(later, abs=1e-3)


@given(terms, terms, st.integers(0, 10**9))
def test_nothing_is_overtaken_by_what_comes_a_horizon_later(
    one: Terms, other: Terms, arrival: int
) -> None:
    late = due_s(arrival + HORIZON_S, WEIGHTS, other)
    assert due_s(float(arrival), WEIGHTS, one) <= late + 1e-3


def test_what_is_in_no_program_is_due_like_all_work_without_a_deadline() -> None:
    assert due_s(5.0, WEIGHTS, FIRST) == 5.0 + NO_DEADLINE_S


thousandths = st.integers(0, 1_000).map(lambda each: each / 1_000)
coarse = st.builds(Terms, thousandths, thousandths, thousandths)


@given(terms, terms)
def test_a_higher_priority_is_never_due_later(one: Terms, other: Terms) -> None:
    if priority(WEIGHTS, one) > priority(WEIGHTS, other):
        assert due_s(0.0, WEIGHTS, one) <= due_s(0.0, WEIGHTS, other)


@given(coarse, coarse)
def test_a_higher_priority_is_due_earlier(one: Terms, other: Terms) -> None:
    # What differs in the last bit alone may be due at the same time.
    if priority(WEIGHTS, one) - priority(WEIGHTS, other) > 1e-9:
        assert due_s(0.0, WEIGHTS, one) < due_s(0.0, WEIGHTS, other)


def test_coefficients_of_nothing_rank_nothing() -> None:
    assert priority(Weights.of(PriorityCoefficients(0, 0, 0)), Terms()) == 0
