"""What was let in and the engine has not told of yet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.door.ledger import ON_ITS_WAY_S, Ledger, unseen_since, with_others
from headway_runtime.exchange.let_in_file import LetInRequest
from headway_runtime.scheduling.admission.refusal import NOTHING_LET_IN, LetIn

TTFT_MS = {"fast": 100, "slow": 1000, "batch": None}


def test_requests_of_the_class_and_tokens_of_those_before_it_are_counted() -> None:
    ledger = Ledger()
    for name, tokens in (("fast", 1), ("fast", 2), ("slow", 10), ("batch", 100), ("", 1000)):
        ledger.enter(LetInRequest(name, tokens, 0.0))
    assert ledger.let_in("fast", TTFT_MS) == LetIn(2, 3)
    assert ledger.let_in("slow", TTFT_MS) == LetIn(1, 13)
    assert ledger.let_in("batch", TTFT_MS) == LetIn(1, 1113)
    assert ledger.let_in("none of them", TTFT_MS) == LetIn(0, 1113)


def test_what_has_ended_counts_no_more() -> None:
    ledger = Ledger()
    one, other = (
        ledger.enter(LetInRequest("fast", 1, 0.0)),
        ledger.enter(LetInRequest("fast", 2, 0.0)),
    )
    ledger.leave(one)
    ledger.leave(one)
    assert ledger.let_in("fast", TTFT_MS) == LetIn(1, 2)
    ledger.leave(other)
    assert ledger.let_in("fast", TTFT_MS) == NOTHING_LET_IN


def test_a_board_that_knows_of_a_request_takes_it_over() -> None:
    ledger = Ledger()
    early, late = (
        ledger.enter(LetInRequest("fast", 1, 10.0)),
        ledger.enter(LetInRequest("fast", 2, 20.0)),
    )
    ledger.seen(10.0)
    assert len(ledger) == 2
    ledger.seen(10.0 + ON_ITS_WAY_S)
    assert ledger.let_in("fast", TTFT_MS) == LetIn(1, 2)
    ledger.leave(early)
    ledger.seen(20.0 + ON_ITS_WAY_S)
    ledger.leave(late)
    assert ledger.let_in("fast", TTFT_MS) == NOTHING_LET_IN


entries = st.tuples(st.sampled_from(["fast", "slow", "batch", ""]), st.integers(0, 100))


@given(st.lists(entries), st.data())
def test_sums_are_those_of_the_requests_that_are_left(
    came: list[tuple[str, int]], data: st.DataObject
) -> None:
    ledger = Ledger()
    tickets = [ledger.enter(LetInRequest(*each, float(second))) for second, each in enumerate(came)]
    gone = data.draw(st.sets(st.sampled_from(range(len(came))) if came else st.nothing()))
    known_s = data.draw(st.floats(0, len(came) + 1))
    ledger.seen(known_s)
    for index in gone:
        ledger.leave(tickets[index])
    left = [
        each
        for index, each in enumerate(came)
        if index not in gone and index + ON_ITS_WAY_S > known_s
    ]
    assert len(ledger) == len(left)
    for name, before in (("fast", {"fast"}), ("batch", {"fast", "slow", "batch", ""})):
        expected = LetIn(
            sum(each == name for each, _ in left),
            sum(tokens for each, tokens in left if each in before),
        )
        assert ledger.let_in(name, TTFT_MS) == expected


@given(st.lists(entries), st.lists(entries))
def test_what_others_let_in_counts_as_if_it_had_been_let_in_here(
    own: list[tuple[str, int]], others: list[tuple[str, int]]
) -> None:
    here, everywhere = Ledger(), Ledger()
    for each in own:
        here.enter(LetInRequest(*each, 0.0))
        everywhere.enter(LetInRequest(*each, 0.0))
    for each in others:
        everywhere.enter(LetInRequest(*each, 0.0))
    told = [LetInRequest(*each, 0.0) for each in others]
    for name in ("fast", "slow", "batch", "none of them"):
        found = with_others(here.let_in(name, TTFT_MS), told, name, TTFT_MS)
        assert found == everywhere.let_in(name, TTFT_MS)


def test_what_is_on_its_way_is_not_on_a_board() -> None:
    ledger = Ledger()
    ledger.enter(LetInRequest("fast", 1, 10.0))
    ledger.seen(10.0)
    assert len(ledger) == 1
    assert unseen_since(10.0) < 10.0
