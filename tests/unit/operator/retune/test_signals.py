"""What is made of samples, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide.retune import Bounds, Change, ClassTargets, What, retune
from headway_operator.decide.retune.class_ratios import Worst
from headway_operator.decide.retune.pace import Pace, ended, pace, total
from headway_operator.decide.retune.signals import Signals, read_signals
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning
from headway_operator.observe.engine_metrics.sample import EngineSample, History, ServiceMetrics
from tests.unit.operator.retune.situations import (
    BOUNDS,
    CHAT,
    CLASSES,
    Situation,
    history,
    metrics,
    settled,
)

POINT = OperatingPoint(theta_ppm=300_000, token_budget=1000, max_batch_size=100)
URGENT = Situation(tpot=2.0, ttft=2.0, kv_usage=0.99, slots_taken=1.0, waiting=9)


def pods(*histories: History) -> ServiceMetrics:
    seen = metrics(Situation())
    return replace(seen, pods={f"pod-{n}": each for n, each in enumerate(histories)})


def signals(*histories: History, classes: Any = CLASSES) -> Signals:
    return read_signals(pods(*histories), classes, POINT, BOUNDS)


def told(**values: Any) -> History:
    return history(Situation(**values), POINT, BOUNDS)


def since(samples: History, index: int, **changes: Any) -> History:
    """The history with values changed from one sample on."""
    return samples[:index] + tuple(replace(each, **changes) for each in samples[index:])


# --- hold


@pytest.mark.parametrize(
    "unknown",
    [
        {"pods": {}},
        {"source": None},
        {"missing": "headway_steps_total"},
        {"collection": 0},
    ],
    ids=str,
)
def test_what_is_not_known_is_no_reason_to_change_anything(unknown: Any) -> None:
    tuning = Tuning(POINT, Streaks(2, 0, 1))
    assert retune(tuning, metrics(URGENT, POINT), CLASSES, BOUNDS).changes
    held = retune(tuning, replace(metrics(URGENT, POINT), **unknown), CLASSES, BOUNDS)
    assert (held.tuning, held.changes) == (tuning, ())


def test_a_collection_is_acted_on_once() -> None:
    seen = metrics(URGENT, POINT, collection=8)
    first = retune(Tuning(POINT, collection=7), seen, CLASSES, BOUNDS)
    again = retune(first.tuning, seen, CLASSES, BOUNDS)
    assert first.changes
    assert (again.tuning, again.changes) == (first.tuning, ())


def test_a_single_sample_lowers_nothing_for_tpot() -> None:
    (*_, last) = told(tpot=5.0)
    found = retune(settled(theta_ppm=300_000, token_budget=1000), pods((last,)), CLASSES, BOUNDS)
    assert found.changes == ()


# --- counters


def restarted(samples: History, index: int) -> History:
    """An engine that started anew before this sample."""

    def anew(sample: EngineSample, steps: int) -> EngineSample:
        classes = {
            name: replace(each, requests_total=steps) for name, each in sample.classes.items()
        }
        return replace(
            sample,
            steps_total=steps * 10,
            scheduled_tokens_total=steps * 2000,
            step_seconds_total=steps * 0.125,
            preemptions_total=0,
            classes=classes,
        )

    after = (anew(each, number + 1) for number, each in enumerate(samples[index:]))
    return samples[:index] + tuple(after)


@pytest.mark.parametrize("index", [7, 11, 12])
def test_what_an_engine_did_around_its_restart_is_left_out(index: int) -> None:
    samples = restarted(told(preemptions=5), index)
    whole = Pace(steps=500, scheduled_tokens=100_000, step_seconds=5, preemptions=5)
    anew = Pace(steps=10, scheduled_tokens=2000, step_seconds=0.125)
    expected = total([whole] * (index - 7) + [anew] * (12 - index))
    assert pace(samples, 30.0) == expected
    assert ended(samples, 30.0, "chat") == 5 * (index - 7) + (12 - index)


def test_preemptions_of_earlier_ticks_are_not_those_of_now() -> None:
    samples = told()
    earlier = since(samples, 9, preemptions_total=samples[0].preemptions_total + 1)
    assert (signals(samples).preempting, signals(samples).preempted) == (False, False)
    assert (signals(earlier).preempting, signals(earlier).preempted) == (False, True)
    long_ago = since(samples, 2, preemptions_total=samples[0].preemptions_total + 1)
    assert (signals(long_ago).preempting, signals(long_ago).preempted) == (False, False)


@pytest.mark.parametrize(("preempting", "of", "seen"), [(1, 4, True), (1, 5, False), (1, 1, True)])
def test_one_of_many_pods_that_preempts_is_not_everybody(
    preempting: int, of: int, seen: bool
) -> None:
    each = [told(preemptions=2)] * preempting + [told()] * (of - preempting)
    assert signals(*each).preempting is seen


# --- classes


def test_ratios_of_pods_are_weighted_by_their_requests() -> None:
    few, many = told(tpot=2.0, chat_requests=1), told(tpot=1.0, chat_requests=9)
    assert signals(few, many).tpot == Worst("chat", pytest.approx(1.1))
    assert signals(few, many, told(tpot=None)).tpot == Worst("chat", pytest.approx(1.1))


def test_the_worst_class_counts_and_only_those_with_the_target() -> None:
    samples = tuple(
        replace(each, classes={**each.classes, "other": replace(each.classes["chat"], **worse)})
        for each in told(tpot=0.5, ttft=0.5)
        for worse in ({"tpot_ratio": 1.5, "ttft_ratio": 1.4},)
    )
    both = (CHAT, ClassTargets("other", tpot_ms=10))
    found = signals(samples, classes=both)
    assert found.tpot == Worst("other", pytest.approx(1.5))
    assert found.ttft == Worst("chat", pytest.approx(0.5))
    assert signals(samples).tpot == Worst("chat", pytest.approx(0.5))


@pytest.mark.parametrize(("per_tick", "known"), [(0.4, False), (0.6, True)])
def test_few_requests_say_nothing_of_tpot(per_tick: float, known: bool) -> None:
    found = signals(told(tpot=5.0, chat_requests=per_tick))
    assert (found.tpot is not None) is known
    assert found.tpot_traffic


@pytest.mark.parametrize(
    ("kept", "ttft", "ratio"),
    [(0.94, 0.5, 1.6), (0.96, 0.5, 1.1), (0.94, 1.2, 1.1), (0.94, None, 1.6)],
    ids=["missed", "kept", "missed for TTFT", "no TTFT"],
)
def test_pods_over_the_target_speak_where_the_mean_hides_what_is_missed(
    kept: float, ttft: Any, ratio: float
) -> None:
    pair = (told(tpot=tpot, ttft=ttft, chat_attained=kept) for tpot in (1.6, 0.6))
    assert signals(*pair).tpot == Worst("chat", pytest.approx(ratio))


def test_tpot_is_brought_up_to_limits_that_came_down() -> None:
    samples = told(tpot=2.0, step_ms=20)
    last = replace(samples[-1], steps_total=samples[-2].steps_total + 2 * 250)
    before = tuple(replace(each, token_budget=2000) for each in samples[:-1])
    # The last of six intervals had steps of half the length: 0.5 / (5.5 / 6).
    assert signals((*before, last)).tpot == Worst("chat", pytest.approx(2.0 * 0.5 * 6 / 5.5))
    as_before = tuple(replace(each, token_budget=1040) for each in samples[:-1])
    assert signals((*as_before, last)).tpot == Worst("chat", pytest.approx(2.0))
    long_ago = tuple(replace(each, token_budget=2000) for each in samples[:6])
    assert signals((*long_ago, *samples[6:-1], last)).tpot == Worst("chat", pytest.approx(2.0))


def test_tpot_is_no_less_than_steps_take_now() -> None:
    assert signals(told(tpot=0.5, step_ms=45)).tpot == Worst("chat", pytest.approx(1.5))
    assert signals(told(tpot=0.5, step_ms=12)).tpot == Worst("chat", pytest.approx(0.5))
    assert signals(told(tpot=None, step_ms=45)).tpot is None


def test_requests_of_the_last_minute_are_traffic() -> None:
    quiet = {"tpot": None, "ttft": None}
    assert signals(told(**quiet)).tpot_traffic
    gone = signals(told(chat_requests=0, **quiet))
    assert not gone.tpot_traffic
    assert not gone.ttft_traffic
    # The first token came, and the request goes on.
    assert signals(told(chat_requests=0, tpot=None, ttft=0.1)).ttft_traffic


# --- slots


@pytest.mark.parametrize("engines", [1, 2, 8])
def test_slots_are_those_of_all_engines_of_a_pod(engines: int) -> None:
    summed = ("running", "token_budget", "max_batch", "token_budget_ceiling", "max_batch_ceiling")
    samples = tuple(
        replace(each, **{name: getattr(each, name) * engines for name in summed})
        for each in told(slots_taken=0.5)
    )
    found = signals(samples)
    assert (found.batch_use, found.running) == (0.5, 50)


def test_slots_do_not_shrink_where_an_engine_holds_back_a_class() -> None:
    samples = told(slots_taken=0.5)
    holding = tuple(replace(each, max_batch=each.running) for each in samples)
    assert signals(holding).batch_use == 0.5


def test_a_small_token_budget_is_a_small_batch() -> None:
    small = replace(POINT, token_budget=64)
    seen = pods(history(Situation(slots_taken=0.5), small, BOUNDS))
    assert read_signals(seen, CLASSES, small, BOUNDS).running == 32


def test_the_peak_is_that_of_the_last_minute() -> None:
    samples = told(slots_taken=0.2)
    burst = (*samples[:2], replace(samples[2], running=95), *samples[3:])
    assert (signals(burst).batch_use, signals(burst).batch_peak) == (0.2, 0.95)


# --- whose words


def test_only_pods_of_the_collection_count() -> None:
    seen = metrics(Situation(tpot=2.0), POINT)
    assert retune(settled(token_budget=1000), seen, CLASSES, BOUNDS).changes
    gone = replace(seen, pods={"pod-1": told()})
    changes = retune(settled(theta_ppm=300_000, token_budget=1000), gone, CLASSES, BOUNDS).changes
    assert changes == ()


def test_messages_repeat_nothing_but_declared_names() -> None:
    stranger = "'; rm -rf"
    samples = tuple(
        replace(each, classes={**each.classes, stranger: each.classes["chat"]})
        for each in history(URGENT, POINT, BOUNDS)
    )
    seen = replace(pods(samples), trouble=stranger)
    changes = retune(Tuning(POINT, Streaks(9, 9, 9)), seen, CLASSES, BOUNDS).changes
    assert {each.what for each in changes} >= {What.TOKEN_BUDGET, What.CLASS_LIMIT}
    assert all(stranger not in each.message for each in changes)


def test_the_order_of_pods_means_nothing() -> None:
    one, two, three = (told(utilisation=each, tpot=each) for each in (0.1, 0.2, 0.9))
    seen = replace(pods(), pods={"a": one, "b": two, "c": three})
    turned = replace(seen, pods={"c": three, "b": two, "a": one})
    first, second = (read_signals(each, CLASSES, POINT, BOUNDS) for each in (seen, turned))
    assert first == second


def test_what_is_remembered_is_brought_within_the_caps() -> None:
    tuning = Tuning(POINT)
    tight = Bounds(token_budget_cap=500, max_batch_cap=50)
    found = retune(tuning, metrics(Situation(), POINT), CLASSES, tight).tuning.point
    assert (found.token_budget, found.max_batch_size) == (None, None)


def test_a_change_says_what_it_changes() -> None:
    found = retune(settled(), metrics(URGENT), CLASSES, BOUNDS)
    assert all(isinstance(each, Change) and each.before != each.after for each in found.changes)
    assert len({each.what for each in found.changes}) == len(found.changes)
