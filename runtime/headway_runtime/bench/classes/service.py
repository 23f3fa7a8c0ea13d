"""What tenants were served, and when they were waiting. Pure.

Service counts 1 for each prompt token and 2 for each output token, as in "Fairness in Serving Large
Language Models" (arXiv 2401.00588). A prompt counts when its first token comes: that is when a
client can know that it was computed. Prompts are counted whole; where the prefix cache saves some
of them, that was not served.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headway_runtime.bench.outcome import Ending, Outcome

PROMPT_TOKEN = 1.0
OUTPUT_TOKEN = 2.0

Times = npt.NDArray[np.float64]


class Service:
    """What a tenant was served up to each time, and whether it was waiting.

    Args:
        outcomes: its requests.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes = outcomes
        times = np.concatenate([np.empty(0), *(o.token_s for o in outcomes)])
        amounts = np.concatenate([np.empty(0), *(_amounts(o) for o in outcomes)])
        order = np.argsort(times, kind="stable")
        self._times = times[order]
        self._total = np.concatenate([[0.0], np.cumsum(amounts[order])])
        sent = [o for o in outcomes if o.ending not in (Ending.REFUSED, Ending.UNSENT)]
        self._sent = np.sort([o.sent_s for o in sent])
        self._served = np.sort([first_s(o) for o in sent])

    def until(self, times_s: npt.ArrayLike) -> Times:
        """Tokens served up to these times."""
        return np.asarray(self._total[np.searchsorted(self._times, times_s, side="right")])

    def between(self, begin_s: float, end_s: float) -> float:
        """Tokens served after the one time up to the other."""
        return float(self.until(end_s) - self.until(begin_s))

    def waiting(self, times_s: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Requests that wait for their first token at these times."""
        sent = np.searchsorted(self._sent, times_s, side="right")
        return np.asarray(sent - np.searchsorted(self._served, times_s, side="right"))


def first_s(outcome: Outcome) -> float:
    """When a request's wait ended."""
    return outcome.token_s[0] if outcome.token_s else outcome.ended_s


def most_running_output_tokens(outcomes: Sequence[Outcome]) -> int:
    """Most output tokens that all requests that run at one time have got so far."""
    served = [o for o in outcomes if o.token_s]
    if not served:
        return 0
    times = np.concatenate([*(o.token_s for o in served), [o.token_s[-1] for o in served]])
    ended = np.array([-len(o.token_s) for o in served])
    amounts = np.concatenate([np.ones(len(times) - len(served)), ended])
    # Of what happens at one time, tokens come before ends.
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(amounts[order]).max())


def _amounts(outcome: Outcome) -> Times:
    amounts = np.full(len(outcome.token_s), OUTPUT_TOKEN)
    if len(amounts):
        amounts[0] += PROMPT_TOKEN * outcome.prompt_tokens
    return amounts
