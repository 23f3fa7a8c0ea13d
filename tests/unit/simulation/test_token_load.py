"""What a simulated engine tells of the work that it is offered."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest

from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.executors.simulated.step_time import GpuStepTime, StepTime
from headway_runtime.policy import Mode
from headway_runtime.scheduling.admission.refusal import Refusal, RefusalReason
from headway_runtime.scheduling.timing.forgetting import MEMORY_S
from headway_runtime.scheduling.timing.pace import TPOT_MARGIN
from headway_runtime.scheduling.view import Limits
from tests.unit.simulation.watched import engine

TIMING = GpuStepTime()
GPU: dict[str, Any] = {"step_time": TIMING, "blocks": 47_000}


def work_s(prompt: int, answer: int, cached: int = 0) -> float:
    """Time that a request takes besides that of the steps it is in."""
    step_ms, tokens_ms, decodes_ms, context_ms, pairs_ms = TIMING.mixed_ms
    assert step_ms
    decodes = answer - 1
    before = sum(range(prompt, prompt + decodes))
    pairs = (prompt**2 - cached**2) / 2
    prompt_ms = tokens_ms * (prompt - cached) / 1e3 + pairs_ms * pairs / 1e6
    return (prompt_ms + decodes_ms * decodes / 64 + context_ms * before / 1e5) / 1e3


@pytest.mark.parametrize("mode", Mode)
def test_steady_traffic_is_told_as_the_work_it_is(mode: Mode) -> None:
    sent = [Arrival(n / 10, "chat", 1000, 50, cached_tokens=320) for n in range(900)]
    made, _ = engine(*sent, mode=mode, **GPU)
    made.run(85.0)
    report = made.report()
    assert report.token_load_ratio == pytest.approx(10 * work_s(1000, 50, 320), rel=0.05)
    tpot_s = (1 - TPOT_MARGIN) * 0.030
    assert report.step_overhead_ratio == pytest.approx(TIMING.mixed_ms[0] / 1e3 / tpot_s, rel=0.05)


def test_an_idle_engine_forgets() -> None:
    made, _ = engine(Arrival(0.0, "chat", 1000, 50), **GPU)
    made.run(60.0)
    before = made.report().token_load_ratio
    assert before is not None
    made.run(90.0)
    assert made.report().token_load_ratio == pytest.approx(exp(-30 / MEMORY_S) * before, rel=0.02)


def test_more_than_can_be_done_is_told_although_it_is_not_done() -> None:
    # Twice what an engine can compute, of which most waits.
    rate_per_s = 2 / work_s(4000, 50)
    sent = [Arrival(n / rate_per_s, "batch", 4000, 50) for n in range(int(40 * rate_per_s))]
    made, _ = engine(*sent, **GPU)
    made.run(39.0)
    told = made.report().token_load_ratio
    assert told is not None
    assert told > 1.8


def test_answers_are_expected_of_those_that_wait() -> None:
    sent = [Arrival(0.0, "chat", 100, 21), *(Arrival(5.0, "chat", 100, 21) for _ in range(40))]
    # Two requests fit, and the others wait.
    made, _ = engine(*sent, **{**GPU, "ceilings": Limits(8192, 2)})
    made.run(5.001)
    report = made.report()
    assert report.waiting >= 38
    seen_s = MEMORY_S * (1 - exp(-5 / MEMORY_S))
    assert report.token_load_ratio == pytest.approx(40 * work_s(100, 21) / seen_s, rel=0.15)


def test_what_is_refused_is_not_offered() -> None:
    made, _ = engine(Arrival(0.0, "chat", 1000, 50), **GPU)
    made.door = lambda *_: Refusal(RefusalReason.QUEUE_FULL, 1)
    made.run(1.0)
    assert made.report().token_load_ratio == 0


def test_where_steps_have_no_length_nothing_is_told() -> None:
    made, _ = engine(Arrival(0.0, "chat", 1000, 50), **{**GPU, "step_time": StepTime()})
    made.run(1.0)
    report = made.report()
    assert (report.token_load_ratio, report.step_overhead_ratio) == (None, None)


def test_without_a_policy_nothing_is_told() -> None:
    made, _ = engine(Arrival(0.0, "chat", 1000, 50), **GPU)
    made.adopt(None)
    made.run(1.0)
    assert made.report().token_load_ratio is None


def test_requests_that_are_computed_again_count_once() -> None:
    pair = [Arrival(0.0, "batch", 64, 64)] * 2
    crowded, _ = engine(*pair, **{**GPU, "blocks": 10})
    roomy, _ = engine(*pair, **GPU)
    for made in (crowded, roomy):
        made.run(5.0)
    assert crowded.report().preemptions_total == 1
    told = [each.report().token_load_ratio for each in (crowded, roomy)]
    assert told[0] == pytest.approx(told[1], rel=0.05)
