"""What is remembered of the policies that were decided."""

from __future__ import annotations

from dataclasses import dataclass

from headway_runtime.policy import Policy, Stamp


@dataclass(frozen=True)
class PublishedPolicy:
    """The policy decided last in this term.

    Attributes:
        policy: the policy, with its stamp.
        since: when it was decided, as Unix time in seconds.
        before: policies decided before it, oldest first, each with when it was decided: as far
            back as to the newest that pods have had enough time for.
    """

    policy: Policy
    since: float
    before: tuple[tuple[Stamp, float], ...] = ()
