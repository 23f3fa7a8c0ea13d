"""Which engines a router is told of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.discovery.membership import Answer, Changes, Membership

A, B, C = "http://10.0.0.1:8000", "http://10.0.0.2:8000", "http://10.0.0.3:8000"
ENGINES = st.sampled_from([A, B, C])


def knowing(**answers: Answer) -> Membership:
    """Of engines A and B, and what they answered."""
    known = Membership()
    known.found([A, B])
    for name, answer in answers.items():
        known.answered({"a": A, "b": B}[name], answer)
    return known


def test_engines_that_take_requests_are_added() -> None:
    known = knowing(a=Answer.YES, b=Answer.NO)
    assert known.changes([]) == Changes(added=(A,))
    assert not known.changes([A])


def test_an_engine_that_refuses_is_taken_out_at_once_and_comes_back() -> None:
    known = knowing(a=Answer.YES, b=Answer.YES)
    known.answered(A, Answer.NO)
    assert known.changes([A, B]) == Changes(removed=(A,))
    known.answered(A, Answer.YES)
    assert known.changes([B]) == Changes(added=(A,))


def test_one_silence_is_tolerated_and_two_in_a_row_are_not() -> None:
    known = knowing(a=Answer.YES, b=Answer.YES)
    known.answered(A, Answer.SILENCE)
    assert not known.changes([A, B])
    known.answered(A, Answer.YES)
    known.answered(A, Answer.SILENCE)
    assert not known.changes([A, B])
    known.answered(A, Answer.SILENCE)
    assert known.changes([A, B]) == Changes(removed=(A,))


def test_a_process_that_has_just_begun_takes_nobody_out() -> None:
    assert not Membership().changes([A])
    known = Membership()
    known.found([A, B])
    assert not known.changes([A, B])


def test_who_is_no_engine_of_the_service_is_taken_out() -> None:
    assert knowing(a=Answer.YES).changes([A, C]) == Changes(removed=(C,))


def test_an_address_that_comes_back_is_asked_anew() -> None:
    known = knowing(a=Answer.YES, b=Answer.YES)
    known.found([B])
    known.found([A, B])
    assert not known.changes([B])


@given(
    st.lists(st.tuples(ENGINES, st.sampled_from(Answer)), max_size=12),
    st.frozensets(ENGINES),
    st.frozensets(ENGINES),
)
def test_changes_lead_to_a_list_that_needs_none(
    answers: list[tuple[str, Answer]], candidates: frozenset[str], present: frozenset[str]
) -> None:
    known = Membership()
    known.found(candidates)
    for url, answer in answers:
        known.answered(url, answer)
    changes = known.changes(present)
    after = present - set(changes.removed) | set(changes.added)
    assert not known.changes(after)
    assert after <= candidates
    assert not set(changes.added) & set(changes.removed)
