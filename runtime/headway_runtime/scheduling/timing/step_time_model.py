"""How long a step takes: two linear models of its work, fitted online to steps that were timed.

One for steps that only decode and one for those with prefill: what the first reads from memory and
what the second computes grow with different things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

import numpy as np
import numpy.typing as npt

from headway_runtime.scheduling.timing.step_shape import StepShape

_Vector = npt.NDArray[np.float64]

DECODE_PRIOR_MS = (5.2, 1.0, 3.5)
"""Of every step, of 64 decodes, of 100,000 tokens before them."""
MIXED_PRIOR_MS = (3.2, 21.6, 2.3, 4.0, 1.0)
"""Of every step, of 1,000 prompt tokens, of 64 decodes, of 100,000 tokens before those, of a
million attention pairs. Both priors were fitted to a model of 8 billion parameters on one H200;
they count as much as a handful of steps."""

_PREFILL_TOKENS = 1e3
_DECODES = 64
_CONTEXT_TOKENS = 1e5
_ATTENTION_PAIRS = 1e6
"""Units of the parts, so that their coefficients are of one size."""

_PRIOR_KEPT = 0.97
_LEAST_PRIOR = 0.01
"""The prior fades with each step to what decides only where steps have shown nothing: a machine may
be a hundred times slower than the one it comes from."""
_PRIOR_SPREAD = 0.5
"""Standard deviation of the prior, as a share of its values."""
_STEP_SPREAD = 0.05
"""Standard deviation of a step's length, as a share of it."""
_OUTLIER = 0.15
"""A step that is off by more than this share counts less, so that one hiccup teaches nothing."""
_KEPT = 0.998
"""What is kept of the past with each step: some 500 steps are remembered."""
_REFIT_STEPS = ((8, 1), (64, 8), (inf, 32))
"""Up to the first number of steps, they are taken in the second number at a time: each time takes
some 20 array operations, and 32 steps among 500 change little. The first few are all there is to
tell a processor from a GPU."""
_SCALE_STEPS = 32
"""The prior is made slower or faster as a whole by the middle one of how much longer so many first
steps took than it says. Its parts know each other's proportions better than their size."""
_FASTEST, _SLOWEST = 0.01, 1e4
_LEAST_SHARE_OF_PRIOR = 0.02
"""No part of a step takes less than this share of its prior, so that none is free."""
_WILD_AFTER = 50
_WILD_FACTOR = 3.0
_WILD_S = 0.05
"""After so many steps, one longer than this is no step but a pause of the machine. There are not
more: those that come before another so many steps show a machine that has become slower, or steps
of a kind that was not seen yet."""


@dataclass(frozen=True)
class Coefficients:
    """Of one of the two models, in seconds for each of its parts; see :class:`StepTimeModel`.

    Attributes:
        step_s: of every step.
        prefill_token_s: of each prompt token; 0 in the decode-only model.
        decode_s: of each request that decodes.
        context_token_s: of each token before those that decode.
        attention_pair_s: of each attention pair; 0 in the decode-only model.
    """

    step_s: float
    prefill_token_s: float
    decode_s: float
    context_token_s: float
    attention_pair_s: float


class StepTimeModel:
    """Predicts lengths of steps and learns from those that were timed.

    Weighted recursive least squares with a prior: relative errors count, outliers count less, and
    the past fades. Fitting is a 5 x 5 solve every few steps.
    """

    def __init__(
        self,
        decode_prior_ms: tuple[float, float, float] = DECODE_PRIOR_MS,
        mixed_prior_ms: tuple[float, float, float, float, float] = MIXED_PRIOR_MS,
    ) -> None:
        self._decode = _Fit(decode_prior_ms)
        self._mixed = _Fit(mixed_prior_ms)

    @property
    def decode(self) -> Coefficients:
        """Coefficients of steps that only decode."""
        return self._decode.coefficients

    @property
    def mixed(self) -> Coefficients:
        """Coefficients of steps with prefill."""
        return self._mixed.coefficients

    @property
    def steps_learnt(self) -> int:
        """Steps that it has learnt from."""
        return self._decode.steps + self._mixed.steps

    def seconds(self, shape: StepShape) -> float:
        """Predicted length of a step, in seconds."""
        cost = self.mixed if shape.prefill_tokens else self.decode
        return (
            cost.step_s
            + cost.prefill_token_s * shape.prefill_tokens
            + cost.decode_s * shape.decodes
            + cost.context_token_s * shape.decode_context
            + cost.attention_pair_s * shape.attention_pairs
        )

    def learn(self, shape: StepShape, seconds: float) -> None:
        """A step took so long."""
        fit, other = self._fits(shape)
        fit.learn(_features(shape), self.seconds(shape), seconds)
        other.begin_as(fit)

    def learn_bound(self, shape: StepShape, seconds: float) -> None:
        """A step took no longer than that, which is less than was predicted.

        It says nothing of steps of the other kind, nor how fast the machine is as a whole.
        """
        fit, _ = self._fits(shape)
        if seconds > 0:
            fit.take(_features(shape), self.seconds(shape), seconds)

    def _fits(self, shape: StepShape) -> tuple[_Fit, _Fit]:
        """The model of such steps, and the other one."""
        both = (self._mixed, self._decode)
        return both if shape.prefill_tokens else both[::-1]


def _features(shape: StepShape) -> tuple[float, ...]:
    """Of what the length of such a step is a linear function."""
    decodes, context = shape.decodes / _DECODES, shape.decode_context / _CONTEXT_TOKENS
    if not shape.prefill_tokens:
        return (1.0, decodes, context)
    tokens, pairs = shape.prefill_tokens / _PREFILL_TOKENS, shape.attention_pairs / _ATTENTION_PAIRS
    return (1.0, tokens, decodes, context, pairs)


class _Fit:
    """One linear model.

    Attributes:
        coefficients: what it has learnt.
        steps: steps learnt from.
    """

    def __init__(self, prior_ms: Sequence[float]) -> None:
        self.steps = 0
        self._steps_since_wild = 0
        self._prior = np.array(prior_ms) / 1e3
        self._slower = 1.0
        self._first_ratios: list[float] = []
        self._squares = np.zeros((len(prior_ms), len(prior_ms)))
        self._products = np.zeros(len(prior_ms))
        self._fresh: list[tuple[float, ...]] = []
        self.coefficients = _coefficients(self._prior)

    def learn(self, features: Sequence[float], predicted_s: float, seconds: float) -> None:
        """Take in one step."""
        if seconds <= 0 or self._is_pause(predicted_s, seconds):
            return
        if len(self._first_ratios) < _SCALE_STEPS:
            self._first_ratios.append(seconds / float(self._prior @ features))
            self._slower = min(max(median(self._first_ratios), _FASTEST), _SLOWEST)
        self.take(features, predicted_s, seconds)

    def take(self, features: Sequence[float], predicted_s: float, seconds: float) -> None:
        """Take in one step, whatever it says of the machine."""
        off_by = abs(seconds - predicted_s) / predicted_s
        trust = min(1.0, _OUTLIER / off_by) if off_by else 1.0
        weight = trust / (_STEP_SPREAD * predicted_s) ** 2
        self._fresh.append((weight, seconds, *features))
        self.steps += 1
        if len(self._fresh) >= next(
            at_a_time for until, at_a_time in _REFIT_STEPS if self.steps <= until
        ):
            self._take_in()
            self._refit()

    def begin_as(self, other: _Fit) -> None:
        """Believe what another one found of the machine, as long as no step was seen."""
        if not self.steps and self._slower != other._slower:
            self._slower = other._slower
            self.coefficients = _coefficients(self._slower * self._prior)

    def _is_pause(self, predicted_s: float, seconds: float) -> bool:
        is_wild = seconds > _WILD_FACTOR * predicted_s + _WILD_S
        is_pause = is_wild and self._steps_since_wild > _WILD_AFTER
        self._steps_since_wild = 0 if is_wild else self._steps_since_wild + 1
        return is_pause

    def _take_in(self) -> None:
        """What one step at a time would have come to."""
        fresh = np.array(self._fresh)
        count = len(self._fresh)
        self._fresh.clear()
        aged_weights = fresh[:, 0] * _KEPT ** np.arange(count - 1, -1, -1)
        seconds, features = fresh[:, 1], fresh[:, 2:]
        weighted = aged_weights * features.T
        self._squares = _KEPT**count * self._squares + weighted @ features
        self._products = _KEPT**count * self._products + weighted @ seconds

    def _refit(self) -> None:
        prior = self._slower * self._prior
        belief = max(_LEAST_PRIOR, _PRIOR_KEPT**self.steps)
        prior_weight = np.diag(belief / (_PRIOR_SPREAD * prior) ** 2)
        target = self._products + prior_weight @ prior
        least = _LEAST_SHARE_OF_PRIOR * prior
        self.coefficients = _coefficients(_solved(self._squares + prior_weight, target, least))


def _solved(matrix: npt.NDArray[np.float64], target: _Vector, least: _Vector) -> _Vector:
    """The least-squares solution of which no part is below its least value.

    Parts that are too low are set to it and the others solved for again: decodes and the tokens
    before them grow together, so that what one lost the other would have too much.
    """
    theta = least.copy()
    theta[:] = np.linalg.solve(matrix, target)
    low = below = theta < least
    while below.any():
        rest = ~low
        theta = least.copy()
        owed = target[rest] - matrix[np.ix_(rest, low)] @ least[low]
        theta[rest] = np.linalg.solve(matrix[np.ix_(rest, rest)], owed)
        below = theta < least
        low |= below
    return theta


def _coefficients(theta: _Vector) -> Coefficients:
    """As plain numbers: they are used many times in a step, and numpy's scalars are slow."""
    values = [float(each) for each in theta]
    if len(values) == len(DECODE_PRIOR_MS):
        values = [values[0], 0.0, *values[1:], 0.0]
    step_s, tokens_s, decodes_s, context_s, pairs_s = values
    return Coefficients(
        step_s,
        tokens_s / _PREFILL_TOKENS,
        decodes_s / _DECODES,
        context_s / _CONTEXT_TOKENS,
        pairs_s / _ATTENTION_PAIRS,
    )
