"""What the classes of a service were promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ClassTargets:
    """Objectives of a class of traffic; None promises none.

    Attributes:
        name: of the class.
        ttft_ms: time to first token, in milliseconds.
        tpot_ms: mean time per output token after the first, in milliseconds.
        deadline_s: time to the last token, in seconds.
    """

    name: str
    ttft_ms: int | None = None
    tpot_ms: int | None = None
    deadline_s: int | None = None


def is_background(ttft_ms: int | None, tpot_ms: int | None) -> bool:
    """Whether nobody waits for the tokens of such a class one by one, so that it can be limited."""
    return ttft_ms is None and tpot_ms is None


def is_mixed(classes: Sequence[ClassTargets]) -> bool:
    """Whether there are classes that can be limited, and others for whose sake."""
    kinds = {is_background(each.ttft_ms, each.tpot_ms) for each in classes}
    return len(kinds) > 1
