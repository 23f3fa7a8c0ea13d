"""One change of an operating point, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class What(StrEnum):
    """What is changed."""

    THETA = "theta"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - not a secret
    MAX_BATCH = "max_batch"
    CLASS_LIMIT = "class_limit"


class Reason(StrEnum):
    """Why it is changed."""

    UTILISATION = "Utilisation"
    """The switching threshold follows how busy the GPUs are."""
    TPOT_MISSED = "TpotMissed"
    """A class gets its tokens more slowly than promised."""
    TPOT_KEPT = "TpotKept"
    """Every class gets its tokens well in time, and there is more work to take on."""
    NO_TPOT = "NoTpot"
    """No class with a TPOT target has requests."""
    TTFT_MISSED = "TtftMissed"
    """A class waits longer for its first tokens than promised, and no slot is free."""
    TTFT_KEPT = "TtftKept"
    """Every class gets its first tokens well in time, and slots are free."""
    NO_OBJECTIVES = "NoObjectives"
    """No class with a TTFT or TPOT target has requests."""
    KV_PRESSURE = "KvPressure"
    """KV blocks run out: requests lose theirs and are computed again."""
    KV_ROOM = "KvRoom"
    """Requests wait while KV blocks are free."""


@dataclass(frozen=True)
class Change:
    """One change of an operating point.

    Attributes:
        what: what is changed.
        before: its value; None is at the cap, or no limit.
        after: likewise.
        reason: why, in one word.
        message: why, in one sentence with numbers.
    """

    what: What
    before: int | None
    after: int | None
    reason: Reason
    message: str
