"""How long a step may take."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.scheduling.timing.prefill_cost import chunk_tokens
from headway_runtime.scheduling.timing.slack import step_time_target
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import TokenDue, Work

WORK = Work(100.0, 100.5, StepTimeModel(), decodes=64)


def test_nobody_minds_long_steps_where_nothing_was_promised() -> None:
    assert step_time_target(WORK) is None


def test_the_first_token_that_is_due_counts_from_when_the_engine_is_free() -> None:
    due = (TokenDue(100.6, 0.1), TokenDue(100.53, 0.03))
    assert step_time_target(replace(WORK, due=due)) == pytest.approx(0.03)


def test_arrivals_wait_for_no_step_longer_than_a_quarter_of_their_ttft() -> None:
    due = (TokenDue(107.0, 0.1),)
    assert step_time_target(replace(WORK, due=due, tightest_ttft_s=1.0)) == 0.25
    assert step_time_target(replace(WORK, tightest_ttft_s=0.4)) == 0.1


def test_a_ttft_too_tight_for_any_step_does_not_stop_prefill() -> None:
    target_s = step_time_target(replace(WORK, tightest_ttft_s=0.001))
    assert target_s == pytest.approx(2 * WORK.base_s)


def test_beside_decodes_of_programs_a_step_is_a_graph_long() -> None:
    alone = Work(100.0, 100.0, StepTimeModel(), decodes=32, decode_context=10_000, graph_tokens=512)
    assert step_time_target(alone) is None
    target_s = step_time_target(replace(alone, program_decodes=1))
    assert target_s is not None
    took_s = target_s - alone.base_s
    assert chunk_tokens(alone.step_time.mixed, 0, took_s) == pytest.approx(512 - 32)
    without = replace(alone, program_decodes=1, graph_tokens=0)
    assert step_time_target(without) == pytest.approx(2 * without.base_s)
