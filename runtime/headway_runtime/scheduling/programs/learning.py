"""Tunes the coefficients of priorities to the programs that an engine sees.

Simultaneous perturbation (SPSA, Spall 1992) in a form that suits noisy rewards: in each round one
pair of coefficients is on trial, some weight moved from one to the other on one side and back on
the other side. Programs keep the side they began on. When both sides have enough of them, the
coefficients move to the better one if the difference is more than noise.

Sides take turns of many programs rather than dividing them evenly: programs of both would stand in
one queue, and the side that ranks its own higher would win at the expense of the other one.

A round takes some 3,000 programs. In simulation 60,000 programs gained 0 to 3 % of the mean time of
a program; where programs declare nothing, short ones paid for it (mean stretch up to 16 % more). So
it is off unless a policy asks for it.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.programs.priority import Weights

REACH = 0.2
"""Coefficients stay so near to the declared ones."""
TRIAL = 0.08
"""What is moved from one coefficient to another on trial."""
STEP = 0.04
"""What is moved for good after a round that was decided."""
TURN = 384
"""Programs that begin on one side before the other one has its turn. Those of the middle third are
counted: the others stood in one queue with those of the other side."""
ENOUGH = 512
"""Programs of each side that decide a round."""
MEAN_OVER_PROGRAMS = 100
_PAIRS = ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))

NEITHER = -1
"""Side of a program that began while learning was off."""


class _Fares:
    """How the programs of one side fared: a ratio of sums, so long programs count for more.

    Their mean time from arrival to end is to be short, and the mean of each one's own ratio would
    be that of the many short ones.
    """

    def __init__(self) -> None:
        self.count = 0
        self._there_s = 0.0
        self._served_s = 0.0
        self._there_squared = 0.0
        self._served_squared = 0.0
        self._product = 0.0

    def add(self, there_s: float, served_s: float) -> None:
        self.count += 1
        self._there_s += there_s
        self._served_s += served_s
        self._there_squared += there_s * there_s
        self._served_squared += served_s * served_s
        self._product += there_s * served_s

    @property
    def stretch(self) -> float:
        return self._there_s / self._served_s

    @property
    def squared_error(self) -> float:
        """Variance of the ratio (delta method)."""
        ratio = self.stretch
        residuals = (
            self._there_squared - 2 * ratio * self._product + ratio * ratio * self._served_squared
        )
        return max(0.0, residuals) / self._served_s**2


class _Trial(NamedTuple):
    """Weights of both sides, and what programs on them report."""

    weights: tuple[Weights, Weights]
    better: tuple[Weights, Weights]
    fares: tuple[_Fares, _Fares]


class PriorityLearning:
    """Coefficients in use. While learning is off they are the declared ones.

    Attributes:
        weights: what is used where nothing is on trial.
        rounds: rounds that were decided.
        programs: programs that have ended.
        mean_stretch: of programs that ended: time from arrival to end of their requests over the
            time since each was first served. The error that is learnt to be less; 1 is least.
    """

    def __init__(self, declared: PriorityCoefficients | None = None, seed: int = 0) -> None:
        self.mean_stretch = 1.0
        self.programs = 0
        self.rounds = 0
        self._declared = declared or PriorityCoefficients()
        self._random = seed
        self.weights = Weights.of(self._declared)
        self._begun = 0
        self._trial_number = 0
        self._trial = self._next_trial()

    def adopt(self, declared: PriorityCoefficients) -> None:
        """Begin at other coefficients; the same ones again change nothing."""
        if declared == self._declared:
            return
        self._declared = declared
        self.weights = Weights.of(declared)
        self._trial = self._next_trial()

    def side(self) -> int:
        """The side that a program which begins now is on."""
        if not self._declared.learn:
            return NEITHER
        turn, place = divmod(self._begun, TURN)
        self._begun += 1
        is_counted = TURN <= 3 * place < 2 * TURN
        return (2 * self._trial_number if is_counted else 0) + turn % 2

    def weights_on(self, side: int) -> Weights:
        """Coefficients of a side that was given just now."""
        return self.weights if side == NEITHER else self._trial.weights[side % 2]

    def finished(self, side: int, there_s: float, served_s: float) -> None:
        """A program has ended.

        Args:
            side: the one it began on.
            there_s: time from arrival to end, summed over its requests.
            served_s: time since each was first served, likewise; more than 0.
        """
        self.programs += 1
        share = 1 / min(self.programs, MEAN_OVER_PROGRAMS)
        self.mean_stretch += (there_s / served_s - self.mean_stretch) * share
        if side // 2 != self._trial_number:
            return
        fares = self._trial.fares
        fares[side % 2].add(there_s, served_s)
        if min(each.count for each in fares) >= ENOUGH:
            self._decide()

    def _decide(self) -> None:
        first, second = self._trial.fares
        difference = first.stretch - second.stretch
        if abs(difference) > sqrt(first.squared_error + second.squared_error):
            self.weights = self._trial.better[difference > 0]
        self.rounds += 1
        self._trial = self._next_trial()

    def _next_trial(self) -> _Trial:
        # Trials are numbered from 1: the sides 0 and 1 are of programs that are not counted.
        self._trial_number += 1
        self._begun = 0
        taker, giver = _PAIRS[self._draw() % len(_PAIRS)]
        return _Trial(
            (self._moved(taker, giver, TRIAL), self._moved(giver, taker, TRIAL)),
            (self._moved(taker, giver, STEP), self._moved(giver, taker, STEP)),
            (_Fares(), _Fares()),
        )

    def _moved(self, taker: int, giver: int, amount: float) -> Weights:
        """The coefficients after a move that leaves them in reach of the declared ones."""
        declared, moved = Weights.of(self._declared), list(self.weights)
        room = min(
            declared[taker] + REACH - moved[taker],
            moved[giver] - max(0.0, declared[giver] - REACH),
        )
        amount = max(0.0, min(amount, room))
        moved[taker] += amount
        moved[giver] -= amount
        return Weights(*moved)

    def _draw(self) -> int:
        """A pseudo-random number: splitmix64 (Steele, Lea and Flood 2014)."""
        self._random = (self._random + 0x9E3779B97F4A7C15) % 2**64
        value = self._random
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
        return value ^ (value >> 31)
