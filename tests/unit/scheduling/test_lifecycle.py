"""The states of a request, and what its history tells of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.history.lifecycle import LIVE, IllegalTransitionError, State, follow
from headway_runtime.scheduling.history.request_history import MOST_YIELDED_TO, RequestHistory
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.scheduling.history.work_done import (
    MOST_GROUPS,
    MOST_TENANTS,
    OTHERS,
    REASONS,
    Group,
    WorkDone,
    steps_by_reason,
)
from headway_runtime.scheduling.reason import Reason

ENDS = [each for each in State if each.is_end]


class Life:
    """One request in an engine that works."""

    def __init__(self, arrived_ns: int = 0, **known: Any) -> None:
        self.work = WorkDone()
        self.now_ns = arrived_ns
        self.history = RequestHistory("r", arrived_ns, arrived_ns, self.work.reading, **known)

    def step(self, ns: int = 10, *reasons: Reason, **tokens: int) -> None:
        """The engine runs a step with so many prompt tokens of classes."""
        self.work.step(reasons)
        for name, count in tokens.items():
            self.work.chunk(self.work.number(Group(name)), count)
        self.now_ns += ns

    def admitted(self, cached: int = 0) -> None:
        self.history.admitted(self.now_ns, self.work.reading, cached)

    def chunk(self, tokens: int, computed: int) -> None:
        self.work.chunk(0, tokens)
        self.history.chunk(tokens, computed)

    def token(self) -> None:
        self.history.token_came(self.now_ns, self.work.reading)

    def preempted(self, tokens: int = 1) -> None:
        self.history.preempted(self.now_ns, self.work.reading, tokens)

    def turn_ended(self) -> None:
        self.history.turn_ended(self.now_ns, self.work.reading)

    def goes_on(self) -> None:
        self.history.goes_on(self.now_ns, self.work.reading)

    def ended(self, state: State = State.FINISHED, tokens: int = 0) -> RequestSummary:
        self.history.ended(state, self.now_ns, self.work.reading, tokens)
        return self.history.summary()


def test_every_time_of_an_ordinary_request_is_told() -> None:
    life = Life(1000, prompt_tokens=300, promised_ms=(500, 30))
    life.step(100)
    life.admitted(cached=44)
    life.step(50)
    life.chunk(200, 44)
    life.step(50)
    life.chunk(56, 244)
    life.step(7)
    life.token()
    life.step(93)
    told = life.ended(tokens=2)
    assert (told.arrived_ns, told.admitted_ns, told.first_token_ns, told.ended_ns) == (
        1000,
        1100,
        1207,
        1300,
    )
    assert told.ns_in == (100, 107, 93, 0, 0)
    assert (told.chunks, told.chunk_tokens, told.largest_chunk_tokens) == (2, 256, 200)
    assert (told.prompt_tokens, told.cached_tokens, told.output_tokens) == (300, 44, 2)
    assert (told.ttft_ms, told.tpot_ms, told.preemptions) == (500, 30, 0)
    assert told.state == State.FINISHED


def test_whom_it_waited_for_is_told_largest_first() -> None:
    life = Life()
    life.step(10, batch=5, chat=100)
    life.step(10, chat=100, other=1, more=2)
    life.admitted()
    life.step(10, batch=10_000)
    life.token()
    told = life.ended()
    assert told.yielded == (
        Yielded("chat", "", 200),
        Yielded("batch", "", 5),
        Yielded("more", "", 2),
    )
    assert (told.yielded_tokens, told.waited_steps) == (208, 2)


def test_what_was_computed_before_it_arrived_did_not_go_first() -> None:
    life = Life()
    life.step(10, chat=100)
    life.history = RequestHistory("late", life.now_ns, life.now_ns, life.work.reading)
    life.step(10, chat=1)
    life.admitted()
    assert life.history.summary().yielded == (Yielded("chat", "", 1),)


def test_what_is_computed_beside_its_own_prompt_is_told_without_its_own() -> None:
    life = Life()
    life.admitted()
    life.step(10, chat=100)
    life.chunk(50, 0)
    life.token()
    life.step(10, chat=1000)
    assert life.ended().beside_tokens == 100


def test_reasons_are_those_of_steps_until_the_first_token() -> None:
    life = Life()
    life.step(10, Reason.RESERVED)
    life.step(10, Reason.RESERVED, Reason.TOKENS_DUE)
    life.admitted()
    life.step(10, Reason.RESERVED)
    life.token()
    life.step(10, Reason.TOKENS_DUE, Reason.TOKENS_DUE)
    reasons = [(REASONS[number], steps) for number, steps in life.ended().reasons]
    assert reasons == [(Reason.RESERVED, 3), (Reason.TOKENS_DUE, 1)]


@pytest.mark.parametrize(
    ("tokens_so_far", "cached", "again"), [(110, 0, 109), (110, 64, 45), (100, 0, 99)]
)
def test_tokens_that_are_computed_again_count_without_those_in_the_cache(
    tokens_so_far: int, cached: int, again: int
) -> None:
    life = Life()
    life.admitted()
    life.chunk(100, 0)
    life.token()
    life.preempted(tokens_so_far)
    life.step(30, chat=5)
    life.admitted(cached)
    life.chunk(tokens_so_far - cached, cached)
    life.token()
    told = life.ended()
    assert (told.recomputed_tokens, told.preemptions, told.preempted_ns) == (
        max(again, 100 - cached),
        1,
        30,
    )
    assert told.yielded == (Yielded("chat", "", 5),)


def test_a_prompt_that_was_preempted_half_way_is_computed_again_half_way() -> None:
    life = Life()
    life.admitted()
    life.chunk(60, 0)
    life.preempted(100)
    life.admitted()
    life.chunk(40, 0)
    life.chunk(60, 40)
    life.token()
    assert life.ended().recomputed_tokens == 60


def test_its_first_token_may_come_after_it_has_lost_its_blocks() -> None:
    life = Life()
    life.admitted()
    life.now_ns += 5
    life.preempted(100)
    life.now_ns += 5
    life.token()
    assert (life.history.state, life.history.summary().first_token_ns) == (State.PREEMPTED, 10)


def test_a_step_that_leaves_its_prompt_out_is_told() -> None:
    life = Life()
    life.admitted()
    life.chunk(0, 0)
    life.chunk(5, 0)
    told = life.history.summary()
    assert (told.held_back_steps, told.chunks) == (1, 1)


def test_a_session_pauses_and_goes_on() -> None:
    life = Life()
    for _ in range(3):
        life.admitted()
        life.token()
        life.turn_ended()
        life.now_ns += 100
        life.goes_on()
        life.now_ns += 1
    told = life.ended()
    assert (told.turns, told.paused_ns, told.waiting_ns) == (3, 300, 3)


def test_only_a_request_without_its_first_token_gives_up_its_ttft() -> None:
    life = Life()
    life.now_ns = 7
    life.history.given_up(7)
    life.history.given_up(9)
    assert life.history.summary().given_up_ns == 7
    late = Life(1)
    late.admitted()
    late.token()
    late.history.given_up(7)
    assert late.history.summary().given_up_ns == 0


def test_a_request_under_way_tells_of_the_time_since() -> None:
    life = Life()
    life.step(10, chat=4)
    told = life.history.summary(life.work.reading)
    assert (told.yielded, told.waited_steps, told.waiting_ns) == ((Yielded("chat", "", 4),), 1, 0)
    assert told.at(25).waiting_ns == 25
    assert told.at(25).at(35).waiting_ns == 35
    # Told twice, counted once.
    assert life.history.summary(life.work.reading).yielded_tokens == 4


def test_a_request_that_has_ended_grows_no_older() -> None:
    life = Life()
    life.now_ns = 10
    told = life.ended(State.ABORTED)
    assert told.at(10**9) == told
    assert (told.total_ns, told.ended_ns) == (10, 10)


def test_nothing_follows_an_end_and_nothing_waits_for_itself() -> None:
    for end, then in itertools.product(ENDS, State):
        with pytest.raises(IllegalTransitionError):
            follow(end, then)
    for state in State:
        with pytest.raises(IllegalTransitionError):
            follow(state, state)


@pytest.mark.parametrize(
    ("was", "then"),
    [
        (State.WAITING, State.DECODING),
        (State.WAITING, State.PREEMPTED),
        (State.WAITING, State.PAUSED),
        (State.PREFILLING, State.WAITING),
        (State.DECODING, State.PREFILLING),
        (State.PAUSED, State.DECODING),
        (State.PAUSED, State.PREFILLING),
    ],
)
def test_an_illegal_transition_is_an_error_that_names_both_states(was: State, then: State) -> None:
    with pytest.raises(
        IllegalTransitionError, match=f"{then.name.lower()} after {was.name.lower()}"
    ):
        follow(was, then)


def test_a_living_state_is_no_end() -> None:
    for state in LIVE:
        with pytest.raises(IllegalTransitionError):
            Life().ended(state)


EVENTS = {
    "admitted": lambda life: life.admitted(),
    "chunk": lambda life: life.chunk(3, 5),
    "token": lambda life: life.token(),
    "preempted": lambda life: life.preempted(12),
    "turn_ended": lambda life: life.turn_ended(),
    "goes_on": lambda life: life.goes_on(),
    "given_up": lambda life: life.history.given_up(life.now_ns),
    "finished": lambda life: life.ended(),
    "failed": lambda life: life.ended(State.FAILED),
}
AFTER = {
    "admitted": {State.PREFILLING},
    "chunk": {State.PREFILLING},
    "token": {State.DECODING, State.PREEMPTED},
    "preempted": {State.PREEMPTED},
    "turn_ended": {State.PAUSED},
    "goes_on": {State.WAITING},
    "given_up": set(State),
    "finished": {State.FINISHED},
    "failed": {State.FAILED},
}
steps = st.tuples(
    st.sampled_from(sorted(EVENTS)), st.integers(-50, 1000), st.integers(0, 30), st.integers(0, 99)
)


@given(st.lists(steps, max_size=60))
def test_whatever_happens_times_add_up_and_states_are_consistent(happened: Any) -> None:
    life, latest_ns, chunks = Life(100), 100, 0
    for what, ns, kind, tokens in happened:
        life.step(ns, REASONS[kind % len(REASONS)], **{f"class-{kind}": tokens})
        before = life.history.summary()
        try:
            EVENTS[what](life)
        except IllegalTransitionError:
            # What cannot be leaves everything as it was.
            assert life.history.summary() == before
            continue
        latest_ns = max(latest_ns, life.now_ns) if what not in {"chunk", "given_up"} else latest_ns
        chunks += what == "chunk"
        told = life.history.summary()
        assert told.state in AFTER[what]
        assert told.total_ns <= latest_ns - 100
        assert min(told.ns_in) >= 0
        assert told.since_ns - 100 == told.total_ns
        assert (told.ended_ns > 0) == State(told.state).is_end
        assert (told.chunks, told.chunk_tokens) == (chunks, 3 * chunks)
        assert 0 <= told.recomputed_tokens <= told.chunk_tokens
        assert told.beside_tokens >= 0
        assert sum(each.tokens for each in told.yielded) <= told.yielded_tokens
        assert told.arrived_ns <= (told.admitted_ns or latest_ns)
        assert (told.admitted_ns or 0) <= (told.first_token_ns or latest_ns)
        assert not told.first_token_ns or told.admitted_ns


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 1000)), max_size=400))
def test_a_history_stays_small_whatever_goes_on(chunks: Any) -> None:
    life = Life()
    for kind, tokens in chunks:
        life.step(1, **{f"class-{kind}": tokens})
        life.history.summary(life.work.reading)
    assert len(life.history._yielded) <= MOST_YIELDED_TO
    assert life.history.summary().yielded_tokens == sum(tokens for _, tokens in chunks)
    assert not hasattr(life.history, "__dict__")


def test_tenants_that_are_too_many_count_together() -> None:
    work = WorkDone()
    numbers = {work.number(Group("chat", f"tenant-{number}")) for number in range(1000)}
    assert len(numbers) == MOST_TENANTS
    assert work.number(Group("chat", "one-more")) == work.number(Group("chat", OTHERS))
    classes = {work.number(Group(f"class-{number}")) for number in range(1000)}
    assert len(classes | numbers) <= MOST_GROUPS
    work.step()
    work.chunk(work.number(Group("class-999")), 7)
    assert work.reading.tokens_since(WorkDone().reading) == {Group("", OTHERS): 7}


def test_a_reading_is_not_changed_by_what_follows() -> None:
    work = WorkDone()
    work.step([Reason.RESERVED])
    first = work.reading
    assert work.reading is first
    number = work.number(Group("chat"))
    work.chunk(number, 5)
    work.step([Reason.RESERVED])
    assert (first.steps, first.prompt_tokens) == (1, 0)
    assert work.reading.tokens_since(first) == {Group("chat"): 5}
    counted = work.reading.reasons - first.reasons
    assert steps_by_reason(counted) == {REASONS.index(Reason.RESERVED): 1}
