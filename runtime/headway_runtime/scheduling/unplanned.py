"""What a step may take on for which there is no plan, while promises are to be kept.

A plan that is late or fails leaves the step to the engine. With all of its own token budget the
engine may compute thousands of prompt tokens in one step, for which everybody who is being answered
waits: one late plan cost every running request a fifth of a second where thirty milliseconds were
promised. So such a step gets no more prompt tokens than the plans before it gave.
"""

from __future__ import annotations

from collections import deque

from headway_runtime.scheduling.plan import StepPlan

REMEMBERED_PLANS = 8
"""Few enough to forget an idle engine's large steps soon, and more than one: a plan may happen to
be the short end of a prompt, at which planning could stop for seconds."""


class Unplanned:
    """Remembers what plans allow."""

    def __init__(self) -> None:
        self._prompt_tokens: deque[int] = deque(maxlen=REMEMBERED_PLANS)

    def planned(self, plan: StepPlan) -> None:
        """A plan was put in force."""
        if plan.prompt_tokens:
            self._prompt_tokens.append(plan.prompt_tokens)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens that a step without a plan may compute; None where no plan gave any."""
        return max(self._prompt_tokens, default=None)
