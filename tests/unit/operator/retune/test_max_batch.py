"""When the batch size is changed, and by how much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide.retune import Reason, What, retune
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.engine_metrics.sample import History
from tests.unit.operator.retune.situations import (
    BOUNDS,
    CHAT,
    CLASSES,
    Situation,
    history,
    metrics,
    moved,
    settled,
    tick,
)


@pytest.mark.parametrize(
    ("before", "taken", "kv_usage", "preemptions", "after"),
    [
        (None, 0.5, 0.96, 0, 120),  # of the 128 that run
        (100, 1.0, 0.96, 0, 93),
        (100, 1.0, 0.99, 1, 90),
        (100, 1.0, 0.85, 1, 90),
        (100, 1.2, 0.99, 0, None),  # the last decision is still being carried out
        (100, 1.0, 0.95, 0, None),
        (4, 1.0, 0.99, 1, None),
    ],
)
def test_kv_pressure_lowers_the_batch_where_targets_are_missed(
    before: Any, taken: Any, kv_usage: Any, preemptions: Any, after: Any
) -> None:
    pressed = Situation(slots_taken=taken, kv_usage=kv_usage, preemptions=preemptions, ttft=1.2)
    found = moved(What.MAX_BATCH, settled(max_batch_size=before), pressed, (CHAT,))
    assert found == (None if after is None else (before, after, Reason.KV_PRESSURE))


@pytest.mark.parametrize(("preemptions", "after"), [(0, None), (83, None), (84, 90)])
def test_kv_pressure_that_hurts_nobody_is_left_alone(preemptions: float, after: Any) -> None:
    """Until every request that runs, 100 here, is computed again five times in half a minute."""
    full = Situation(slots_taken=1.0, kv_usage=0.99, preemptions=preemptions)
    found = moved(What.MAX_BATCH, settled(max_batch_size=100), full)
    assert found == (None if after is None else (100, after, Reason.KV_PRESSURE))


def test_background_work_gives_way_to_missed_targets_before_the_batch_does() -> None:
    pressed = Situation(slots_taken=0.5, kv_usage=0.97, tpot=1.2)
    retuned = tick(settled(), pressed)
    assert retuned.tuning.point.background_limit == 64
    assert retuned.tuning.point.max_batch_size is None
    at_floor = tick(settled(background_limit=1), pressed).tuning.point
    assert at_floor.max_batch_size is not None
    alone = tick(settled(), pressed, (CHAT,)).tuning.point
    assert alone.max_batch_size is not None


@pytest.mark.parametrize("cause", [{"token_budget": 64}, {"tokens": 50.0}], ids=str)
def test_tpot_lowers_the_batch_only_where_the_budget_cannot_help(cause: Any) -> None:
    tuning = settled(max_batch_size=50, token_budget=cause.get("token_budget", 1000))
    tokens = cause.get("tokens", 200.0)
    missed = Situation(tpot=1.2, slots_taken=1.0, tokens_per_step=tokens)
    assert moved(What.MAX_BATCH, tuning, missed) == (50, 39, Reason.TPOT_MISSED)
    helped = settled(max_batch_size=50, token_budget=1000)
    plenty = Situation(tpot=1.2, slots_taken=1.0, tokens_per_step=200.0)
    assert moved(What.MAX_BATCH, helped, plenty) is None


def test_tpot_costs_neither_ttft_nor_all_throughput() -> None:
    missed = {"tpot": 2.0, "slots_taken": 1.0}
    tuning = settled(max_batch_size=50, token_budget=64)
    assert moved(What.MAX_BATCH, tuning, Situation(ttft=0.81, **missed)) is None
    low = settled(max_batch_size=18, token_budget=64)
    assert moved(What.MAX_BATCH, low, Situation(**missed)) == (18, 16, Reason.TPOT_MISSED)
    lowest = settled(max_batch_size=16, token_budget=64)
    assert moved(What.MAX_BATCH, lowest, Situation(**missed)) is None
    both = Situation(ttft=1.5, waiting=5, **missed)
    assert moved(What.MAX_BATCH, lowest, both) == (16, 24, Reason.TTFT_MISSED)


@pytest.mark.parametrize(
    ("changed", "after"),
    [
        ({}, 150),
        ({"kv_usage": 0.7}, 121),
        ({"tpot": 0.89}, 106),
        ({"kv_usage": 0.8}, None),
        ({"waiting": 0.0}, None),
        ({"slots_taken": 0.89}, None),
        ({"tpot": 0.91}, None),
    ],
    ids=str,
)
def test_requests_that_wait_for_a_slot_raise_the_batch(changed: Any, after: Any) -> None:
    asked = {"kv_usage": 0.3, "waiting": 5.0, "slots_taken": 1.0, "tpot": 0.5, **changed}
    found = moved(What.MAX_BATCH, settled(max_batch_size=100), Situation(**asked))
    assert found == (None if after is None else (100, after, Reason.KV_ROOM))


WAITING = Situation(kv_usage=0.3, waiting=5, slots_taken=1.0, tpot=0.5)


def batch_after(samples: History, tuning: Tuning) -> int | None:
    seen = replace(metrics(WAITING), pods={"pod": samples})
    return retune(tuning, seen, CLASSES, BOUNDS).tuning.point.max_batch_size


def test_the_batch_is_not_raised_until_the_last_raise_has_shown_what_it_does() -> None:
    tuning = settled(max_batch_size=100)
    samples = history(WAITING, tuning.point, BOUNDS)
    assert batch_after(samples, tuning) == 150
    half_before = tuple(replace(each, running=50) for each in samples[:8])
    assert batch_after((*half_before, *samples[8:]), tuning) == 100
    long_before = tuple(replace(each, running=50) for each in samples[:6])
    assert batch_after((*long_before, *samples[6:]), tuning) == 150


def test_the_batch_is_not_raised_while_preemptions_are_recent() -> None:
    tuning = settled(max_batch_size=100)
    samples = history(WAITING, tuning.point, BOUNDS)
    since = tuple(replace(each, preemptions_total=2000) for each in samples[8:])
    assert batch_after((*samples[:8], *since), tuning) == 100


def test_a_step_is_measured_before_it_is_rounded() -> None:
    """Else a small batch could never be raised by little."""
    asked = replace(WAITING, tpot=0.8999)
    assert moved(What.MAX_BATCH, settled(max_batch_size=70), asked) == (70, 73, Reason.KV_ROOM)


def test_batch_and_budget_are_not_raised_at_once() -> None:
    asked = Situation(tpot=0.5, kv_usage=0.3, waiting=5, slots_taken=1.0)
    found = tick(settled(theta_ppm=300_000, max_batch_size=100, token_budget=1000), asked).changes
    assert [each.what for each in found] == [What.MAX_BATCH]
