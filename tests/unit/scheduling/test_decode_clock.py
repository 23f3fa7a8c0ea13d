"""When next tokens are due, against a count that is kept request by request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.timing.decode_clock import (
    EARLY_TOKENS,
    HOPELESS_S,
    KEPT_SHARE,
    DecodeClock,
    DecodeClocks,
)

NAMES = ("a", "b", "c", "d")
TARGETS = (None, 0.01, 0.03)


@dataclass
class Naive:
    """The same, by looking at everybody."""

    known: dict[str, list[Any]] = field(default_factory=dict)

    def join(self, name: str, target: Any, first_s: float, tokens: int, context: int) -> None:
        self.known[name] = [target, first_s, tokens, context]

    def stepped(self, scheduled: Any) -> None:
        for name, each in self.known.items():
            if scheduled is None or name in scheduled:
                each[2] += 1
                each[3] += 1

    def due(self, now_s: float) -> dict[float, float]:
        found: dict[float, float] = {}
        for target, first_s, tokens, _ in self.known.values():
            if target is not None:
                due_s = first_s + (max(tokens, EARLY_TOKENS) - KEPT_SHARE) * target
                if due_s >= now_s - HOPELESS_S:
                    found[target] = min(due_s, found.get(target, due_s))
        return found


events = st.one_of(
    st.tuples(
        st.just("join"),
        st.sampled_from(NAMES),
        st.sampled_from(TARGETS),
        st.floats(0, 10),
        st.integers(1, 50),
        st.integers(1, 1000),
    ),
    st.tuples(st.just("leave"), st.sampled_from(NAMES)),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.floats(-1, 1)),
    st.tuples(st.just("step"), st.one_of(st.none(), st.sets(st.sampled_from(NAMES)))),
)


@given(st.lists(events, max_size=60))
def test_it_knows_what_a_look_at_everybody_would_tell(history: Any) -> None:
    clocks, naive = DecodeClocks(), Naive()
    for kind, *rest in history:
        if kind == "join":
            clocks.join(*rest)
            naive.join(*rest)
        elif kind == "leave":
            clocks.leave(rest[0])
            naive.known.pop(rest[0], None)
        elif kind == "move":
            clocks.move(*rest)
            if rest[0] in naive.known:
                naive.known[rest[0]][1] += rest[1]
        else:
            clocks.stepped(*rest)
            naive.stepped(*rest)
        assert len(clocks) == len(naive.known)
        assert clocks.context_tokens == sum(each[3] for each in naive.known.values())
        # Before everything, so that nobody is given up.
        found = {each.tpot_s: each.due_s for each in clocks.due(-10.0)}
        assert found == pytest.approx(naive.due(-10.0))


def due_s(clock: DecodeClock, now_s: float) -> float:
    due = clock.next_due(now_s)
    assert due is not None
    assert due.tpot_s == clock.tpot_s
    return due.due_s


def test_the_first_tokens_of_an_answer_are_due_together() -> None:
    clock = DecodeClock(0.01)
    clock.join("a", 1.0, tokens=1, context=10)
    dues = []
    for _ in range(EARLY_TOKENS + 2):
        dues.append(due_s(clock, 1.0))
        clock.stepped()
    together = 1.0 + (EARLY_TOKENS - KEPT_SHARE) * 0.01
    assert dues == pytest.approx([together] * EARLY_TOKENS + [together + 0.01, together + 0.02])
    # Who has just begun and is late beyond help is given up as well.
    clock.join("b", 0.0, tokens=1, context=10)
    assert due_s(clock, 1.05) > 1.0


def test_nobody_hurries_for_a_request_that_is_far_too_late_but_it_counts() -> None:
    clock = DecodeClock(0.01)
    clock.join("late", 0.0, tokens=10, context=10)
    clock.join("well", 1.0, tokens=10, context=10)
    assert due_s(clock, HOPELESS_S) == pytest.approx(0.1, abs=0.002)
    assert due_s(clock, 1.0) == pytest.approx(1.1, abs=0.002)
    assert len(clock) == 2
    assert clock.context_tokens == 20


def test_requests_without_a_target_have_nothing_due() -> None:
    clock = DecodeClock(None)
    clock.join("a", 0.0, tokens=1, context=10)
    clock.stepped()
    assert clock.next_due(0.0) is None
    assert clock.context_tokens == 11


def test_what_is_kept_does_not_grow_with_what_has_gone() -> None:
    clock = DecodeClock(0.01)
    for number in range(10_000):
        clock.join(f"r{number}", 0.0, tokens=1, context=1)
        clock.leave(f"r{number}")
    assert len(clock._heap) < 200
    assert clock.next_due(0.0) is None
