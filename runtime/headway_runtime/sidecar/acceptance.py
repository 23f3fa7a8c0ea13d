"""May a policy replace the one in force? Pure."""

from __future__ import annotations

import enum

from headway_runtime.policy import Policy


class Outcome(str, enum.Enum):
    """What became of a policy that was sent."""

    APPLIED = "Applied"
    """It is in force now."""
    ALREADY_APPLIED = "AlreadyApplied"
    """It was in force before."""
    OUTDATED = "Outdated"
    """A policy with a higher stamp, or another one with the same stamp, is in force."""
    WRONG_SCOPE = "WrongScope"
    """It is for another service or another pod."""
    BAD_FORMAT = "BadFormat"
    """It cannot be read."""
    BAD_SIGNATURE = "BadSignature"
    """Its signature is not that of its key."""
    UNKNOWN_KEY = "UnknownKey"
    """Its key is not among the published ones."""


def accept(candidate: Policy, current: Policy | None, service_uid: str, pod_uid: str) -> Outcome:
    """Decide on a policy whose signature is good.

    The highest stamp wins, so that neither an old policy nor an operator whose term is over can
    take a pod back. Two different policies with one stamp mean that something is wrong with their
    sender; the first one stays.
    """
    if not candidate.scope.covers(service_uid, pod_uid):
        return Outcome.WRONG_SCOPE
    if current is None or candidate.stamp > current.stamp:
        return Outcome.APPLIED
    return Outcome.ALREADY_APPLIED if candidate == current else Outcome.OUTDATED
