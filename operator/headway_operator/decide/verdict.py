"""A condition before it has a time: what holds and why. Conditions are chains of small checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from headway_operator.decide.facts import Facts

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        truth: whether the condition holds.
        reason: one word.
        message: for people.
        alarming: somebody has to look at it.
    """

    truth: Truth
    reason: str
    message: str
    alarming: bool = False


Check = Callable[[Facts], Verdict | None]


def first(checks: Iterable[Check], facts: Facts) -> Verdict:
    """The finding of the first check that finds anything.

    Raises:
        LookupError: none did; the last check of a chain must always find something.
    """
    for check in checks:
        verdict = check(facts)
        if verdict is not None:
            return verdict
    raise LookupError("a chain of checks must end with one that always finds something")
