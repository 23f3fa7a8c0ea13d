"""How work without a deadline is ranked among that of its tenant (design T6).

A priority is ``alpha * base + beta * depth + gamma * (1 - progress)`` with terms from 0 to 1. It is
set when a request arrives and becomes a time at which the request is due, so waiting costs no
priority, and nothing is overtaken by what comes :data:`HORIZON_S` later or more.

What the terms say, and why so (they were chosen by simulation of chains and of maps with a reduce):

- base: what was served to the program before, or what its prompt is if that is more. Many programs
  are short and few are long, so what was served little is likely to be done soon (least attained
  service, as in Autellix), and of first calls the prompt is all that is known.
- depth: how near the end of its program the request is, by what is declared to come. Where nothing
  is declared, or only a part, it is nearer to the end the more calls came before it: what is nearly
  done is not overtaken by all that is new, and long programs do not yield without an end.
- progress: how far the branch of the request is ahead of the longest branch of its program, so that
  of the calls of one program those that all others wait for go first.
"""

from __future__ import annotations

from typing import NamedTuple

from headway_runtime.policy import PriorityCoefficients
from headway_runtime.scheduling.urgency import NO_DEADLINE_S

HORIZON_S = 600.0
"""Work of priority 0 is due so long after work of priority 1 that came with it."""

OUTPUT_WEIGHT = 2
"""An output token is so many times the service of a prompt token. Close enough to what they cost,
and what shares of tenants are counted in as well (VTC, arXiv 2401.00588)."""

UNIT_TOKENS = 512
"""One unit of age in weighted tokens. With 0.99 for each unit the base halves every 35,000 weighted
tokens, which is about twenty calls of agents: it tells programs of 3 calls from those of 30, and
hardly those of 3 from those of 8, which would else wait for all that come after them. Smaller units
are closer to pure least attained service, whose longer programs wait longest; larger ones are
closer to first come, first served."""

DECAY = 0.99
"""What is left of the base after one more unit of service."""

UNKNOWN_DEPTH = 0.5
"""Depth of the first call of a program that does not say what comes, which is that of a call with
six or seven to come. With less, programs that do say so would go before those of one call."""

HALFWAY_CALLS = 8
"""After so many calls it is halfway from there to 1."""

NEARNESS = 0.9
"""What is left of the depth for each call that is known to come."""


class Weights(NamedTuple):
    """Coefficients of the terms; they are not negative and add up to 1."""

    base: float
    depth: float
    progress: float

    @classmethod
    def of(cls, declared: PriorityCoefficients) -> Weights:
        """The coefficients of a policy."""
        total = max(1, declared.base + declared.depth + declared.progress)
        return cls(declared.base / total, declared.depth / total, declared.progress / total)


class Terms(NamedTuple):
    """What a priority is made of, each from 0 to 1.

    Attributes:
        base: 1 when nothing was served yet, less with all that was.
        depth: 1 at the end of a program.
        progress: 0 for what the whole program waits for, more for what has time.
    """

    base: float = 1.0
    depth: float = UNKNOWN_DEPTH
    progress: float = 0.0


FIRST = Terms()
"""Of the first call of a program of which nothing is known, and of work that is in none."""


def weighted_tokens(prompt_tokens: int, output_tokens: int) -> int:
    """Service in weighted tokens.

    Args:
        prompt_tokens: prompt tokens that were computed; what a cache saved is no service.
        output_tokens: tokens that were sampled.
    """
    return prompt_tokens + OUTPUT_WEIGHT * output_tokens


def base(service_tokens: float) -> float:
    """Term for the service received so far, in weighted tokens."""
    return float(DECAY ** (service_tokens / UNIT_TOKENS))


def depth_among_past(calls_before: int) -> float:
    """Term for a call of which only the calls before it are known: its longest chain of those."""
    return UNKNOWN_DEPTH + (1 - UNKNOWN_DEPTH) * calls_before / (calls_before + HALFWAY_CALLS)


def depth_among_known(calls_left: int) -> float:
    """Term for a call of a program that says what comes: calls that are not done besides it."""
    return float(NEARNESS**calls_left)


def progress(through: int, longest: int) -> float:
    """Term for a call by the longest chain of calls through it and of its whole program."""
    return 1 - through / longest


def priority(weights: Weights, terms: Terms) -> float:
    """Priority from 0 to 1; more goes earlier."""
    value = (
        weights.base * terms.base
        + weights.depth * terms.depth
        + weights.progress * (1 - terms.progress)
    )
    # Sums of floats may leave the range by a hair.
    return min(1.0, max(0.0, value))


def due_s(arrival_s: float, weights: Weights, terms: Terms) -> float:
    """When work without a deadline is due, on the clock of ``arrival_s``.

    Work that is in no program is due when any work without a deadline is; the rest by how much more
    or less its priority is.
    """
    ahead = priority(weights, terms) - priority(weights, FIRST)
    return arrival_s + NO_DEADLINE_S - HORIZON_S * ahead
