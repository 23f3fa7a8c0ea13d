"""Learning how long steps take."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel

shapes = st.builds(
    StepShape,
    st.one_of(st.just(0), st.integers(1, 8192)),
    st.integers(0, 1024),
    st.integers(0, 2_000_000),
    st.floats(0, 1e9),
)


def truth_s(shape: StepShape) -> float:
    """A machine half as fast as the prior says, with other proportions."""
    work_ms = 9.0 + shape.decodes * 0.04 + shape.decode_context * 5e-5
    if shape.prefill_tokens:
        work_ms += 4.0 + shape.prefill_tokens * 0.05 + shape.attention_pairs * 3e-6
    return work_ms / 1000


def a_step(random: Random) -> StepShape:
    prefill = random.choice((0, random.randint(16, 4096)))
    decodes = random.randint(0 if prefill else 1, 256)
    pairs = attention_pairs(random.randint(0, 8000), prefill)
    return StepShape(prefill, decodes, decodes * random.randint(100, 4000), pairs)


def taught(noise: float, steps: int = 2000, hiccups: float = 0.0) -> tuple[StepTimeModel, Random]:
    random, model = Random(7), StepTimeModel()  # noqa: S311 - no secret
    for _ in range(steps):
        shape = a_step(random)
        seconds = truth_s(shape) * random.lognormvariate(0, noise)
        model.learn(shape, 20 * seconds if random.random() < hiccups else seconds)
    return model, random


@pytest.mark.parametrize(("noise", "hiccups"), [(0.0, 0.0), (0.1, 0.0), (0.05, 0.02)])
def test_it_learns_another_machine(noise: float, hiccups: float) -> None:
    model, random = taught(noise, hiccups=hiccups)
    errors = sorted(
        abs(model.seconds(shape) / truth_s(shape) - 1)
        for shape in (a_step(random) for _ in range(500))
    )
    assert errors[250] < 0.05
    assert errors[450] < 0.15


def test_it_follows_a_machine_that_becomes_slower() -> None:
    model, random = taught(0.02)
    for _ in range(3000):
        shape = a_step(random)
        model.learn(shape, 2 * truth_s(shape))
    shape = a_step(random)
    assert model.seconds(shape) == pytest.approx(2 * truth_s(shape), rel=0.1)


@given(st.lists(st.tuples(shapes, st.floats(-1, 100)), max_size=60))
def test_whatever_it_is_told_steps_take_time_and_more_work_takes_longer(told: object) -> None:
    model = StepTimeModel()
    for shape, seconds in told:  # type: ignore[attr-defined]
        model.learn(shape, seconds)
    for cost in (model.decode, model.mixed):
        assert cost.step_s > 0
        assert cost.decode_s > 0
        assert cost.context_token_s > 0
    assert model.mixed.prefill_token_s > 0
    assert model.mixed.attention_pair_s > 0


@given(shapes)
def test_its_coefficients_are_its_predictions(shape: StepShape) -> None:
    model, _ = taught(0.0, steps=100)
    cost = model.mixed if shape.prefill_tokens else model.decode
    by_hand_s = (
        cost.step_s
        + cost.prefill_token_s * shape.prefill_tokens
        + cost.decode_s * shape.decodes
        + cost.context_token_s * shape.decode_context
        + cost.attention_pair_s * (shape.attention_pairs if shape.prefill_tokens else 0)
    )
    assert model.seconds(shape) == pytest.approx(by_hand_s)


def test_it_learns_a_machine_that_is_fifty_times_slower_within_some_hundred_steps() -> None:
    random, model = Random(3), StepTimeModel()  # noqa: S311 - no secret
    for _ in range(400):
        shape = a_step(random)
        model.learn(shape, 50 * truth_s(shape) * random.lognormvariate(0, 0.05))
    errors = sorted(
        abs(model.seconds(shape) / (50 * truth_s(shape)) - 1)
        for shape in (a_step(random) for _ in range(200))
    )
    assert errors[100] < 0.1
    assert errors[190] < 0.3


def test_parts_that_grow_together_do_not_mislead_it() -> None:
    """Decodes and the tokens before them are nearly proportional where all answers are alike."""
    random, model = Random(3), StepTimeModel()  # noqa: S311 - no secret
    errors = []
    for count in range(3000):
        decodes = 100 + int(50 * count / 3000)
        context = int(decodes * random.gauss(1250, 15))
        prefill = random.randint(300, 1500)
        shape = StepShape(prefill, decodes, context, attention_pairs(500, prefill))
        seconds = truth_s(shape) * random.gauss(1, 0.06)
        errors.append(model.seconds(shape) / truth_s(shape) - 1)
        model.learn(shape, seconds)
    assert max(map(abs, errors[300:])) < 0.1


def test_a_few_steps_tell_a_machine_that_is_twenty_times_slower() -> None:
    random, model = Random(5), StepTimeModel()  # noqa: S311 - no secret
    for _ in range(16):
        shape = a_step(random)
        model.learn(shape, 20 * truth_s(shape))
    errors = sorted(
        abs(model.seconds(shape) / (20 * truth_s(shape)) - 1)
        for shape in (a_step(random) for _ in range(200))
    )
    assert errors[100] < 0.3


def test_large_steps_that_come_after_many_small_ones_are_no_pauses() -> None:
    random, model = Random(5), StepTimeModel()  # noqa: S311 - no secret
    for _ in range(200):
        model.learn(StepShape(prefill_tokens=2, decodes=random.randint(1, 4)), 0.02)
    large = StepShape(4096, 4, 4000, attention_pairs(0, 4096))
    assert model.seconds(large) < 0.8
    for _ in range(60):
        model.learn(large, 3.0 * random.lognormvariate(0, 0.03))
    assert model.seconds(large) == pytest.approx(3.0, rel=0.2)


def test_a_pause_of_the_machine_teaches_nothing() -> None:
    model, random = taught(0.02)
    shape = a_step(random)
    before_s = model.seconds(shape)
    for _ in range(32):
        model.learn(shape, before_s)
    model.learn(shape, 30.0)
    for _ in range(63):
        model.learn(shape, before_s)
    assert model.seconds(shape) == pytest.approx(before_s, rel=0.02)
