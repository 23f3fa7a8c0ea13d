"""Simulated engines and the operator's loop around them.

The figures hold for made-up engines; they show that the loop finds its point and stays there, not
what a GPU would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headway_operator.decide.retune import What
from headway_operator.memory.tuning import OperatingPoint
from headway_runtime.executors.simulated.step_time import StepTime
from headway_runtime.executors.simulated.traffic import Traffic
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.view import Limits
from tests.unit.simulation.service import (
    Service,
    Tick,
    attainment,
    reversals,
    throughput,
    ticks_to_settle,
    values,
)

CHAT = TrafficClass("chat", ttft_ms=2000, tpot_ms=30)
BATCH = TrafficClass("batch")
BUDGET_CAP = 8192
NO_LIMIT = 10**6


def load(share: float) -> tuple[Traffic, ...]:
    """Half chat, half batch, with prompts of 2,000 tokens.

    1.0 is about what an engine can do with the budget that keeps 30 ms.
    """
    return (
        Traffic("chat", 9 * share, 2000, 130, spread=0.3),
        Traffic("batch", 7.5 * share, 2000, 130, spread=0.3),
    )


def budgets(ticks: Sequence[Tick]) -> list[int]:
    return values(ticks, What.TOKEN_BUDGET, BUDGET_CAP)


@pytest.mark.parametrize("seed", [1, 2])
def test_after_a_step_of_load_the_budget_is_found_and_tpot_kept(seed: int) -> None:
    looped, default = Service((CHAT, BATCH), seed), Service((CHAT, BATCH), seed, loop=False)
    for service in (looped, default):
        quiet = service.run(60, *load(0.3))
        assert attainment(quiet, "chat") == 1.0
    stepped, untuned = looped.run(240, *load(1.1)), default.run(240, *load(1.1))
    assert ticks_to_settle(budgets(stepped), within=0.15) <= 24
    assert reversals(budgets(stepped)) <= 2
    assert attainment(stepped[24:], "chat") >= 0.95
    assert attainment(stepped, "chat") >= attainment(untuned, "chat") + 0.4
    # What it costs: the same as the budget that somebody would have found by hand.
    tuned_by_hand = OperatingPoint(token_budget=1024)
    by_hand = Service((CHAT, BATCH), seed, loop=False, point=tuned_by_hand)
    by_hand.run(60, *load(0.3))
    best = by_hand.run(240, *load(1.1))
    assert throughput(stepped[24:], "batch") >= 0.95 * throughput(best[24:], "batch")


def test_what_was_learned_under_load_stays_for_the_next_burst() -> None:
    service = Service((CHAT, BATCH))
    service.run(60, *load(0.3))
    first = service.run(180, *load(1.1))
    quiet = service.run(120, *load(0.3))
    second = service.run(120, *load(1.1))
    assert attainment(quiet, "chat") == 1.0
    assert budgets(quiet)[-1] < 2000
    assert attainment(first, "chat") < 0.95
    assert attainment(second, "chat") >= 0.98


def test_when_nobody_is_promised_a_tpot_any_more_throughput_comes_back() -> None:
    service = Service((CHAT, BATCH))
    service.run(180, *load(1.1))
    alone = service.run(300, Traffic("batch", 16, 2000, 130, spread=0.3))
    assert budgets(alone)[0] < 2000
    assert budgets(alone)[-1] == BUDGET_CAP
    assert reversals(budgets(alone)) == 0


def test_after_a_target_was_loosened_the_budget_comes_back_even_without_load() -> None:
    service = Service((CHAT, BATCH))
    service.run(180, *load(1.1))
    service.classes = (TrafficClass("chat", ttft_ms=2000, tpot_ms=1000), BATCH)
    assert budgets(service.run(240, *load(0.3)))[-1] == BUDGET_CAP


@pytest.mark.parametrize(("chat_per_second", "seed"), [(8, 1), (12, 1), (12, 2), (17, 1)])
def test_steady_load_does_not_make_it_swing(chat_per_second: float, seed: int) -> None:
    service = Service((CHAT, BATCH), seed)
    ticks = service.run(
        600,
        Traffic("chat", chat_per_second, 1000, 130, spread=0.5),
        Traffic("batch", chat_per_second / 2.4, 3000, 150, spread=0.5),
    )
    assert reversals(budgets(ticks)) <= 4
    for what in (What.MAX_BATCH, What.CLASS_LIMIT, What.THETA):
        assert reversals(values(ticks, what, NO_LIMIT)) <= 2
    assert attainment(ticks[60:], "chat") >= 0.95


def test_lengths_with_a_heavy_tail_make_it_swing_little() -> None:
    """The length of steps changes by a factor of two within seconds."""
    traffic = (
        Traffic("chat", 10, 1000, 130, spread=1.0),
        Traffic("batch", 5, 3000, 150, spread=1.0),
    )
    ticks = Service((CHAT, BATCH)).run(600, *traffic)
    untuned = Service((CHAT, BATCH), loop=False).run(120, *traffic)
    assert reversals(budgets(ticks)) <= 10
    assert attainment(ticks, "chat") >= 0.85
    assert attainment(untuned, "chat") <= 0.1


def test_several_engines_are_one_service() -> None:
    traffic = (Traffic("chat", 34, 1000, 130), Traffic("batch", 16, 3000, 150))
    ticks = Service((CHAT, BATCH), engines=2).run(300, *traffic)
    assert attainment(ticks[24:], "chat") >= 0.95
    assert reversals(budgets(ticks)) <= 4


@pytest.mark.parametrize("seed", [1, 2])
def test_kv_pressure_settles_where_targets_are_missed(seed: int) -> None:
    chat = TrafficClass("chat", ttft_ms=2000, tpot_ms=40)
    traffic = (
        Traffic("chat", 3, 1000, 400, spread=0.3),
        Traffic("batch", 9, 1000, 1200, spread=0.3),
    )
    ticks = Service((chat, BATCH), seed, kv_blocks=6000).run(300, *traffic)
    untuned = Service((chat, BATCH), seed, loop=False, kv_blocks=6000).run(300, *traffic)
    half = len(ticks) // 2
    fewer = ticks[-1].preemptions - ticks[half].preemptions
    assert fewer < (untuned[-1].preemptions - untuned[half].preemptions) / 3
    for what in (What.MAX_BATCH, What.CLASS_LIMIT):
        assert reversals(values(ticks, what, NO_LIMIT)) <= 4
    assert attainment(ticks, "chat") > attainment(untuned, "chat")
    assert attainment(ticks[half:], "chat") >= 0.98
    assert throughput(ticks, "batch") >= 0.9 * throughput(untuned, "batch")


# A larger model: fewer and longer steps, so that minutes of it are simulated sooner.
SLOW = StepTime(base_us=20_000)


def test_kv_pressure_that_hurts_nobody_costs_nothing() -> None:
    chat = TrafficClass("chat", ttft_ms=5000, tpot_ms=80)
    traffic = (Traffic("chat", 2, 1000, 150), Traffic("batch", 5, 1000, 600))
    full: dict[str, Any] = {"kv_blocks": 6000, "step_time": SLOW}
    ticks = Service((chat, BATCH), **full).run(300, *traffic)
    untuned = Service((chat, BATCH), loop=False, **full).run(300, *traffic)
    assert ticks[-1].preemptions > 100
    assert attainment(ticks, "chat") >= 0.95
    assert throughput(ticks, "batch") >= 0.99 * throughput(untuned, "batch")


IMPATIENT = TrafficClass("chat", ttft_ms=1000, tpot_ms=80)


def bursts(service: Service, batch_tokens: int) -> list[Tick]:
    """Chat in bursts, and always more batch work than can be done."""
    batch = Traffic("batch", 2.5, 500, batch_tokens, spread=0.3)
    chat = Traffic("chat", 8, 500, 40, spread=0.3)
    ticks: list[Tick] = []
    for _ in range(8):
        ticks += service.run(20, batch)
        ticks += service.run(40, batch, chat)
    return ticks


@pytest.mark.parametrize(("slots", "batch_tokens"), [(32, 900), (48, 1200)])
def test_background_limit_keeps_slots_free_for_those_promised_a_ttft(
    slots: int, batch_tokens: int
) -> None:
    few: dict[str, Any] = {"ceilings": Limits(BUDGET_CAP, slots), "step_time": SLOW}
    ticks = bursts(Service((IMPATIENT, BATCH), **few), batch_tokens)
    untuned = bursts(Service((IMPATIENT, BATCH), loop=False, **few), batch_tokens)
    assert attainment(ticks, "chat") >= 0.9
    assert attainment(untuned, "chat") <= 0.7
    assert throughput(ticks, "batch") >= 0.7 * throughput(untuned, "batch")
    assert reversals(values(ticks, What.CLASS_LIMIT, NO_LIMIT)) <= 6


def test_background_limit_goes_when_chat_does() -> None:
    service = Service((IMPATIENT, BATCH), ceilings=Limits(BUDGET_CAP, 32), step_time=SLOW)
    assert bursts(service, 900)[-1].point.background_limit is not None
    alone = service.run(240, Traffic("batch", 2.5, 500, 900, spread=0.3))
    assert alone[-1].point.background_limit is None
