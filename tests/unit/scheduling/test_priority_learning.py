"""Coefficients that are tuned to the programs seen."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.programs import learning
from headway_runtime.scheduling.programs.learning import NEITHER, REACH, PriorityLearning
from headway_runtime.scheduling.programs.priority import Weights

LEARNS = PriorityCoefficients(learn=True)
TURN = 12
ENOUGH = 128
ROUND = 6 * ENOUGH
"""Programs after which a round is decided: both sides, of which a third is counted."""


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "TURN", TURN)
    monkeypatch.setattr(learning, "ENOUGH", ENOUGH)


def stretches(learning: PriorityLearning, programs: int, seed: int, best: Weights | None) -> None:
    """Programs that fare the better the nearer their coefficients are to the best ones."""
    noise = Random(seed)  # noqa: S311 - no secret
    for _ in range(programs):
        side = learning.side()
        weights = learning.weights_on(side)
        distance = sum(abs(a - b) for a, b in zip(weights, best or weights, strict=True))
        served_s = noise.expovariate(0.1)
        learning.finished(side, served_s * (1 + distance + noise.expovariate(2)), served_s)


@pytest.mark.parametrize("declared", [PriorityCoefficients(), PriorityCoefficients(10, 80, 10)])
def test_nothing_changes_while_learning_is_off(declared: PriorityCoefficients) -> None:
    learning = PriorityLearning()
    learning.adopt(declared)
    stretches(learning, 5_000, 1, Weights(0.2, 0.2, 0.6))
    assert learning.weights == Weights.of(declared)
    assert (learning.side(), learning.weights_on(NEITHER)) == (NEITHER, Weights.of(declared))
    assert learning.rounds == 0


@pytest.mark.parametrize("best", [Weights(0.3, 0.5, 0.2), Weights(0.7, 0.1, 0.2)])
def test_coefficients_move_to_where_programs_fare_better(best: Weights) -> None:
    learning = PriorityLearning(LEARNS)
    stretches(learning, 60 * ROUND, 1, best)
    assert learning.rounds > 50
    assert list(learning.weights) == pytest.approx(list(best), abs=0.12)


def test_frozen_again_it_is_what_was_declared() -> None:
    learning = PriorityLearning(LEARNS)
    stretches(learning, 10 * ROUND, 1, Weights(0.3, 0.5, 0.2))
    assert learning.weights != Weights.of(LEARNS)
    learning.adopt(PriorityCoefficients())
    assert learning.weights == Weights.of(LEARNS)


def test_the_same_policy_again_does_not_begin_anew() -> None:
    learning = PriorityLearning(LEARNS)
    stretches(learning, 10 * ROUND, 1, Weights(0.3, 0.5, 0.2))
    learnt = learning.weights
    learning.adopt(PriorityCoefficients(learn=True))
    assert learning.weights == learnt


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=10, deadline=None)
def test_coefficients_stay_near_the_declared_ones(base: int, rest: int, seed: int, to: int) -> None:
    depth = (100 - base) * rest // 100
    declared = PriorityCoefficients(base, depth, 100 - base - depth, learn=True)
    learning = PriorityLearning(declared, seed)
    best = [Weights(1, 0, 0), Weights(0, 1, 0), Weights(0, 0, 1)][to % 3]
    for _ in range(12):
        stretches(learning, ROUND, seed, best)
        for weights in (learning.weights, *learning._trial.weights):
            assert sum(weights) == pytest.approx(1)
            for found, centre in zip(weights, Weights.of(declared), strict=True):
                assert -1e-9 <= found <= 1 + 1e-9
                assert abs(found - centre) <= REACH + 1e-9


def test_a_seed_gives_the_same_course() -> None:
    courses = []
    for seed in (7, 7, 8):
        learning = PriorityLearning(LEARNS, seed)
        stretches(learning, 10 * ROUND, 1, Weights(0.3, 0.5, 0.2))
        courses.append(learning.weights)
    assert courses[0] == courses[1] != courses[2]


def test_what_began_before_the_round_does_not_count() -> None:
    learning = PriorityLearning(LEARNS)
    old = [learning.side() for _ in range(ROUND)]
    stretches(learning, ROUND + TURN, 1, None)
    rounds, weights = learning.rounds, learning.weights
    assert rounds == 1
    for each in old:
        learning.finished(each, 100.0 if each % 2 else 1.0, 1.0)
    assert (learning.rounds, learning.weights) == (rounds, weights)
    assert learning.mean_stretch > 2


def test_differences_within_the_noise_move_nothing() -> None:
    learning = PriorityLearning(LEARNS)
    before, moves = learning.weights, 0
    for seed in range(40):
        stretches(learning, ROUND, seed, None)
        moves += learning.weights != before
        before = learning.weights
    assert learning.rounds > 35
    # One in three is beyond one standard error by chance.
    assert 0 < moves < 25


def test_sides_take_turns_and_the_middle_of_each_is_counted() -> None:
    learning = PriorityLearning(LEARNS)
    sides = [learning.side() for _ in range(2 * TURN)]
    third = TURN // 3
    uncounted, counted = [0] * third, [2] * third
    first = uncounted + counted + uncounted
    assert sides == first + [side + 1 for side in first]
    assert len({learning.weights_on(each) for each in (0, 1)}) == 2
    assert learning.weights_on(0) == learning.weights_on(2)


def test_the_mean_stretch_is_told_whether_it_learns_or_not() -> None:
    learning = PriorityLearning()
    assert learning.programs == 0
    for there_s in (3.0, 5.0):
        learning.finished(NEITHER, there_s, 1.0)
    assert (learning.programs, learning.mean_stretch) == (2, 4.0)
