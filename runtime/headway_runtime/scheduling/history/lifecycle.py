"""The states a request goes through."""

from __future__ import annotations

import enum


class State(enum.IntEnum):
    """Where a request is."""

    WAITING = 0
    """It has not been admitted: it waits for its turn, or for something it needs."""
    PREFILLING = 1
    """Its prompt is being computed, until the token comes that follows it."""
    DECODING = 2
    """Its tokens come."""
    PREEMPTED = 3
    """It has lost its KV blocks and waits again."""
    PAUSED = 4
    """A streaming session between its parts: it waits for its client."""
    FINISHED = 5
    """It came to its end."""
    ABORTED = 6
    """It was ended for its client, who had gone or had enough."""
    FAILED = 7
    """The engine gave it up."""
    QUARANTINED = 8
    """It was taken out of the engine, since steps fail with it."""

    @property
    def is_end(self) -> bool:
        """Whether nothing follows."""
        return self >= State.FINISHED


LIVE = tuple(each for each in State if not each.is_end)
"""States that time is spent in; each is its own index."""

_ENDS = (State.FINISHED, State.ABORTED, State.FAILED, State.QUARANTINED)

_MAY_FOLLOW = {
    State.WAITING: (State.PREFILLING, *_ENDS),
    State.PREFILLING: (State.DECODING, State.PREEMPTED, State.PAUSED, *_ENDS),
    State.DECODING: (State.PREEMPTED, State.PAUSED, *_ENDS),
    # What it generated before may still come, and be its last.
    State.PREEMPTED: (State.PREFILLING, State.PAUSED, *_ENDS),
    State.PAUSED: (State.WAITING, *_ENDS),
}

_LEGAL = tuple(sum(1 << then for then in _MAY_FOLLOW.get(state, ())) for state in State)
"""The same as bits, which are faster to look at than a set of members of an enumeration."""


class IllegalTransitionError(Exception):
    """A request cannot be there after where it was."""


def follow(state: State, then: State) -> State:
    """The state ``then``, which a request reaches from ``state``.

    Raises:
        IllegalTransitionError: it cannot.
    """
    if not _LEGAL[state] & 1 << then:
        raise IllegalTransitionError(f"{then.name.lower()} after {state.name.lower()}")
    return then
