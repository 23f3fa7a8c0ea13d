"""When work without targets is limited, and by how much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide.retune import Reason, What, limit_background, retune
from headway_operator.memory.tuning import Tuning
from headway_runtime.policy import TrafficClass
from tests.unit.operator.retune.situations import (
    BATCH,
    BOUNDS,
    CHAT,
    CLASSES,
    STARVED,
    Situation,
    history,
    metrics,
    moved,
    settled,
    tick,
)


@pytest.mark.parametrize(("before", "after"), [(None, 128), (100, 75), (2, 1), (1, None)])
def test_missed_ttft_limits_background_work(before: Any, after: Any) -> None:
    found = moved(What.CLASS_LIMIT, settled(background_limit=before), STARVED)
    assert found == (None if after is None else (before, after, Reason.TTFT_MISSED))


def test_background_work_is_not_limited_for_one_odd_tick() -> None:
    first = tick(Tuning(), STARVED).tuning
    assert first.point.background_limit is None
    assert tick(first, Situation()).tuning.point.background_limit is None
    assert tick(first, STARVED).tuning.point.background_limit == 128


@pytest.mark.parametrize(
    "changed", [{"ttft": 0.9}, {"waiting": 0}, {"slots_taken": 0.89}, {"ttft": None}], ids=str
)
def test_background_work_is_limited_only_where_it_holds_slots_that_are_waited_for(
    changed: Any,
) -> None:
    situation = Situation(**{**STARVED.__dict__, **changed})
    assert moved(What.CLASS_LIMIT, settled(), situation) is None


def test_a_limit_above_what_can_run_begins_at_what_can() -> None:
    tuning = settled(background_limit=100, max_batch_size=80)
    assert moved(What.CLASS_LIMIT, tuning, STARVED) == (100, 60, Reason.TTFT_MISSED)


@pytest.mark.parametrize("classes", [(CHAT,), (BATCH,)], ids=["objectives", "background"])
def test_nothing_is_limited_for_nobodys_sake(classes: Any) -> None:
    assert moved(What.CLASS_LIMIT, settled(), STARVED, classes) is None


@pytest.mark.parametrize(
    ("before", "changed", "after"),
    [
        (100, {}, 125),
        (1, {}, 2),
        (250, {}, None),
        (100, {"slots_taken": 0.9}, 100),
        (100, {"ttft": 0.8}, 100),
        (100, {"ttft": None}, 100),
        (100, {"kv_usage": 0.8}, 100),
        (100, {"preemptions": 0.1}, 100),
    ],
    ids=str,
)
def test_background_limit_is_relaxed_while_slots_are_free(
    before: Any, changed: Any, after: Any
) -> None:
    situation = Situation(**{"slots_taken": 0.5, **changed})
    assert tick(settled(background_limit=before), situation).tuning.point.background_limit == after


def test_background_limit_stays_between_two_bursts() -> None:
    tuning = settled(background_limit=100)
    samples = history(Situation(), tuning.point, BOUNDS)
    burst = (replace(samples[3], running=250), *samples[4:])
    seen = replace(metrics(Situation()), pods={"pod": burst})
    assert retune(tuning, seen, CLASSES, BOUNDS).tuning.point.background_limit == 100


def test_background_limit_is_relaxed_when_nobody_else_is_there() -> None:
    alone = Situation(ttft=None, tpot=None, chat_requests=0, slots_taken=1.0, waiting=9)
    found = moved(What.CLASS_LIMIT, settled(background_limit=100), alone)
    assert found == (100, 125, Reason.NO_OBJECTIVES)


def test_limit_goes_to_the_classes_without_target_for_tokens() -> None:
    classes = (
        TrafficClass("ttft", ttft_ms=1),
        TrafficClass("tpot", tpot_ms=1),
        TrafficClass("deadline", deadline_s=1),
        TrafficClass("nothing"),
    )
    assert [each.max_running for each in limit_background(classes, 7)] == [None, None, 7, 7]
    assert limit_background(classes, None) == classes
