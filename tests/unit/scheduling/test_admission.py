"""Who is let in, and who is refused with a time after which to try again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.policy import TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import (
    DEADLINE_SHARE,
    MOST_RETRY_AFTER_S,
    TTFT_SHARE,
    Board,
    ClassWait,
    LetIn,
    RefusalReason,
    refusal,
)

SHED = TrafficClass("chat", ttft_ms=1_000, when_unmet=WhenUnmet.SHED)
QUEUE = TrafficClass("chat", ttft_ms=1_000)
TOKEN_S = 0.0001


def board(wait_s: float, light_wait_s: float | None = None, waiting: int = 0) -> Board:
    light = wait_s if light_wait_s is None else light_wait_s
    return Board(0.0, TOKEN_S, {"chat": ClassWait(waiting, wait_s, light)}, frozenset({"heavy"}))


def test_everybody_is_let_in_where_nothing_is_known() -> None:
    assert refusal(None, SHED, "a", 10**6) is None
    assert refusal(board(99.0), None, "a", 10**6) is None
    assert refusal(Board(0.0, TOKEN_S), SHED, "a", 100) is None


def test_who_would_get_its_first_token_too_late_is_refused() -> None:
    limit_s = TTFT_SHARE * 1.0
    assert refusal(board(limit_s - 0.01), SHED, "a", 99) is None
    refused = refusal(board(limit_s - 0.01), SHED, "a", 101)
    assert refused is not None
    assert refused.reason is RefusalReason.OBJECTIVE_UNMET


def test_a_class_that_queues_is_let_in_however_long_it_waits() -> None:
    assert refusal(board(500.0), QUEUE, "a", 10_000) is None


def test_what_was_let_in_since_counts() -> None:
    assert refusal(board(0.0), SHED, "a", 100, LetIn(50, 8_000)) is None
    assert refusal(board(0.0), SHED, "a", 100, LetIn(50, 9_000)) is not None


def test_a_light_tenant_does_not_wait_for_heavy_ones() -> None:
    known = board(5.0, light_wait_s=0.1)
    assert refusal(known, SHED, "light", 100) is None
    assert refusal(known, SHED, "heavy", 100) is not None


def test_a_queue_has_as_many_places_as_it_was_given() -> None:
    bounded = TrafficClass("chat", max_queued=10)
    assert refusal(board(0.0, waiting=9), bounded, "a", 1) is None
    for full in (
        refusal(board(0.0, waiting=10), bounded, "a", 1),
        refusal(board(0.0, waiting=4), bounded, "a", 1, LetIn(requests=6)),
    ):
        assert full is not None
        assert full.reason is RefusalReason.QUEUE_FULL


def test_a_deadline_leaves_time_for_the_answer() -> None:
    batch = TrafficClass("chat", deadline_s=60, when_unmet=WhenUnmet.SHED)
    limit_s = DEADLINE_SHARE * 60
    assert refusal(board(limit_s - 1), batch, "a", 100) is None
    assert refusal(board(limit_s + 1), batch, "a", 100) is not None


@pytest.mark.parametrize(
    ("wait_s", "seconds"), [(1.0, 1), (4.2, 4), (10_000.0, MOST_RETRY_AFTER_S)]
)
def test_it_is_told_when_to_try_again(wait_s: float, seconds: int) -> None:
    refused = refusal(board(wait_s), SHED, "a", 0)
    assert refused is not None
    assert refused.retry_after_s == seconds


def test_nobody_is_refused_for_its_own_prompt_alone() -> None:
    """The prefix cache may hold the most of it, and nobody could say when to try again."""
    assert refusal(board(0.05), SHED, "a", 10**6) is None
    assert refusal(board(0.2), SHED, "a", 10**6) is not None


def test_who_comes_into_a_batch_with_room_waits_in_no_queue() -> None:
    bounded = TrafficClass("chat", max_queued=2)
    known = replace(board(0.0), free_slots=10)
    assert refusal(known, bounded, "a", 1, LetIn(requests=11)) is None
    assert refusal(known, bounded, "a", 1, LetIn(requests=12)) is not None
