"""Whether a request that comes now is let in, or refused at once because it would wait too long.

Decided where requests come in, since an engine that works looks at what has come only between two
steps. What it needs to know of the engine is a :class:`Board`, which the engine renews while it
works.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headway_runtime.policy import TrafficClass, WhenUnmet

MOST_RETRY_AFTER_S = 60

TTFT_SHARE = 0.9
"""A request is let in if its first token is predicted within this share of its TTFT: a queue that
is full to the last moment loses somebody with each error of a prediction."""

LITTLE = 0.1
"""Nobody is refused while others take no more than this share of the time: of its own prompt the
prefix cache may hold the most, and a time after which to try again would be made up."""

DEADLINE_SHARE = 0.75
"""The same where a whole answer has a deadline, the rest being for its tokens."""


class ClassWait(NamedTuple):
    """How long a request of a class would wait.

    Attributes:
        waiting: requests of the class that wait in the engine.
        wait_s: until the first token of a request with an empty prompt that came when the board
            was written; of a class without a TTFT, until it would be admitted.
        light_wait_s: the same for a tenant that has less than its share, who does not wait for
            those that have more.
    """

    waiting: int = 0
    wait_s: float = 0.0
    light_wait_s: float = 0.0


@dataclass(frozen=True)
class Board:
    """What an engine lets those know who let requests in.

    Attributes:
        written_s: when the engine last looked at what had come, seconds since the epoch: what came
            later is not on it.
        prompt_token_s: how much longer everybody waits for each prompt token that is let in.
        classes: by name, classes of the policy.
        heavy: tenants that have more than their share.
        free_slots: how many more requests the batch has room for.
        prompt_token_work_s: what a prompt token takes, in engine-seconds.
        answer_work_s: what an answer like recent ones takes, likewise.
    """

    written_s: float
    prompt_token_s: float
    classes: Mapping[str, ClassWait] = field(default_factory=dict)
    heavy: frozenset[str] = frozenset()
    free_slots: int = 0
    prompt_token_work_s: float = 0.0
    answer_work_s: float = 0.0

    def work_s(self, prompt_tokens: int) -> float:
        """Engine-seconds that a request would have been, as far as can be told without it."""
        return prompt_tokens * self.prompt_token_work_s + self.answer_work_s


class LetIn(NamedTuple):
    """What was let in since the board was written, so that the engine may not have seen it.

    Attributes:
        requests: of the class.
        prompt_tokens: of all classes with a TTFT that is not longer.
    """

    requests: int = 0
    prompt_tokens: int = 0


NOTHING_LET_IN = LetIn()


class RefusalReason(str, enum.Enum):
    """Why a request is refused."""

    QUEUE_FULL = "QueueFull"
    """As many requests of its class wait as may."""
    OBJECTIVE_UNMET = "ObjectiveUnmet"
    """Its first token could not come in time."""


class Refusal(NamedTuple):
    """A request is refused.

    Attributes:
        reason: why.
        retry_after_s: whole seconds after which it may be let in.
    """

    reason: RefusalReason
    retry_after_s: int


def refusal(
    board: Board | None,
    promised: TrafficClass | None,
    tenant: str,
    prompt_tokens: int,
    let_in: LetIn = NOTHING_LET_IN,
) -> Refusal | None:
    """Why a request is not let in; None lets it in.

    Args:
        board: what the engine let know; without one, everybody is let in.
        promised: the request's class.
        tenant: who sends it.
        prompt_tokens: length of its prompt, or an estimate.
        let_in: what was let in since the board was written.
    """
    if board is None or promised is None:
        return None
    known = board.classes.get(promised.name, ClassWait())
    wait_s = known.wait_s if tenant in board.heavy else known.light_wait_s
    wait_s += board.prompt_token_s * let_in.prompt_tokens
    # Who comes into a batch with room waits in no queue.
    queued = known.waiting + max(0, let_in.requests - board.free_slots)
    if promised.max_queued is not None and queued >= promised.max_queued:
        return Refusal(RefusalReason.QUEUE_FULL, _seconds(wait_s))
    target_s = _target_s(promised)
    if promised.when_unmet is not WhenUnmet.SHED or target_s is None:
        return None
    if wait_s <= LITTLE * target_s:
        return None
    missing_s = wait_s + board.prompt_token_s * prompt_tokens - target_s
    if missing_s <= 0:
        return None
    return Refusal(RefusalReason.OBJECTIVE_UNMET, _seconds(missing_s))


def _target_s(promised: TrafficClass) -> float | None:
    """What its wait is held against."""
    if promised.ttft_ms is not None:
        return TTFT_SHARE * promised.ttft_ms / 1000
    return DEADLINE_SHARE * promised.deadline_s if promised.deadline_s is not None else None


def _seconds(wait_s: float) -> int:
    return max(1, min(MOST_RETRY_AFTER_S, math.ceil(wait_s)))
