"""When an engine will be free, against an engine whose steps are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.timing.engine_clock import EngineClock
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel

SHAPE = StepShape(decodes=64, decode_context=64_000)
LARGE = StepShape(prefill_tokens=2048, decodes=64, decode_context=64_000)


class Pipeline:
    """An engine with asynchronous scheduling: a step is launched while the one before it runs."""

    def __init__(self, step_s: float, launch_s: float, graph_tokens: int = 512) -> None:
        self.clock = EngineClock(StepTimeModel(), graph_tokens)
        self.now_s = 100.0
        self.step_s, self.launch_s = step_s, launch_s
        self.ends: list[float] = []

    def run(self, steps: int, shape: StepShape = SHAPE) -> None:
        for _ in range(steps):
            self.clock.decided(self.now_s, shape)
            begins_s = max(self.now_s, self.ends[-1] if self.ends else 0.0)
            self.now_s += self.launch_s
            self.clock.launched(self.now_s)
            self.ends.append(max(begins_s + self.step_s, self.now_s))
            if len(self.ends) > 1:
                # It waits for the step before, and looks at its output a moment later.
                self.now_s = max(self.now_s, self.ends[-2]) + 0.0001
                self.clock.looked_at(self.now_s)


@pytest.mark.parametrize("step_s", [0.008, 0.02, 0.05])
def test_it_learns_the_length_of_steps_that_it_sees_end(step_s: float) -> None:
    engine = Pipeline(step_s, launch_s=0.003)
    engine.run(400)
    assert engine.clock.step_time.seconds(SHAPE) == pytest.approx(step_s, rel=0.03)
    # One step is under way, and another is about to be decided.
    assert engine.clock.free_s(engine.now_s) == pytest.approx(engine.ends[-1], abs=0.002)


def test_steps_hidden_behind_a_longer_launch_teach_nothing_of_what_they_take() -> None:
    engine = Pipeline(step_s=0.01, launch_s=0.08)
    before = engine.clock.step_time.seconds(LARGE)
    engine.run(200, LARGE)
    assert engine.clock.step_time.steps_learnt < 20
    assert engine.clock.step_time.seconds(LARGE) == pytest.approx(before, rel=0.5)
    assert engine.clock.eager_launch_s == pytest.approx(0.08, rel=0.1)


def test_but_that_they_take_no_longer_than_from_one_look_to_the_next() -> None:
    engine = Pipeline(step_s=0.01, launch_s=0.02)
    before = engine.clock.step_time.seconds(LARGE)
    assert before > 2 * engine.launch_s
    engine.run(200, LARGE)
    # What is known is an upper bound; it is not below the truth either.
    learnt = engine.clock.step_time.seconds(LARGE)
    assert engine.step_s < learnt < 1.05 * engine.launch_s


@given(
    truth=st.floats(0.1, 0.9),
    decode_launch_s=st.floats(0.001, 0.02),
    mixed_launch_s=st.floats(0.005, 0.05),
    mixed_every=st.integers(2, 5),
)
def test_hidden_steps_of_two_kinds_are_not_thought_to_become_shorter_than_they_are(
    truth: float, decode_launch_s: float, mixed_launch_s: float, mixed_every: int
) -> None:
    engine = Pipeline(step_s=0.0, launch_s=0.0)
    # All of them together take less time than launching them.
    took_s = {SHAPE: truth * decode_launch_s, LARGE: truth * mixed_launch_s}
    for launch_s in ({SHAPE: 0.0, LARGE: 0.0}, {SHAPE: decode_launch_s, LARGE: mixed_launch_s}):
        # First they are seen, then they are hidden.
        for step in range(600):
            shape = LARGE if step % mixed_every == 0 else SHAPE
            engine.step_s, engine.launch_s = took_s[shape], launch_s[shape]
            engine.run(1, shape)
    for shape in (SHAPE, LARGE):
        assert engine.clock.step_time.seconds(shape) >= 0.9 * took_s[shape]


def test_a_bound_for_one_kind_of_step_says_nothing_of_the_other() -> None:
    clock = Pipeline(step_s=0.002, launch_s=0.002).clock
    before = clock.step_time.seconds(LARGE)
    engine = Pipeline(step_s=0.002, launch_s=0.002)
    engine.run(300, SHAPE)
    assert engine.clock.step_time.seconds(SHAPE) < 0.004
    assert engine.clock.step_time.seconds(LARGE) > 0.9 * before
    assert engine.clock.error_ratio is None


def test_an_idle_engine_is_free_now() -> None:
    clock = EngineClock(StepTimeModel())
    assert clock.free_s(7.0) == 7.0
    clock.looked_at(8.0)
    clock.launched(8.0)
    assert clock.free_s(9.0) == 9.0


def test_pauses_between_steps_are_no_part_of_them() -> None:
    engine = Pipeline(step_s=0.02, launch_s=0.003)
    for _ in range(300):
        engine.run(2)
        engine.now_s = engine.ends[-1] + 0.0001
        engine.clock.looked_at(engine.now_s)
        engine.ends = []
        engine.now_s += 5.0
    assert engine.clock.step_time.seconds(SHAPE) == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("launch_s", [0.0001, 0.0399])
def test_a_step_of_an_engine_that_does_not_schedule_ahead_lasts_until_it_is_looked_at(
    launch_s: float,
) -> None:
    """Whether a worker computes it after the launch, or the engine itself instead of one."""
    clock, now_s = EngineClock(StepTimeModel(), schedules_ahead=False), 50.0
    for _ in range(300):
        clock.decided(now_s, SHAPE)
        clock.launched(now_s + launch_s)
        assert clock.free_s(now_s + launch_s) > now_s
        now_s += 0.04
        clock.looked_at(now_s)
    assert clock.step_time.seconds(SHAPE) == pytest.approx(0.04, rel=0.02)
    assert clock.free_s(now_s) == now_s
    assert (clock.graph_launch_s, clock.eager_launch_s) == (0, 0)
