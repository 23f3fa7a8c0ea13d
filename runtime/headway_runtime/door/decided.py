"""What the desk may decide about a request."""

from __future__ import annotations

from dataclasses import dataclass

from headway_runtime.door.docket import Held
from headway_runtime.scheduling.admission.refusal import Refusal


@dataclass(frozen=True)
class LetIn:
    """A request is let in.

    Attributes:
        body: to go on with; the same bytes where nothing was to change.
        ticket: to tell the desk with that it has ended; None where nobody counts.
        on_trial: whether it may be what killed the engine, so that no other such may be under way.
    """

    body: bytes
    ticket: int | None = None
    on_trial: bool = False


@dataclass(frozen=True)
class Refused:
    """A request is refused.

    Attributes:
        refusal: why, and when to try again.
        class_name: its class.
    """

    refusal: Refusal
    class_name: str


@dataclass(frozen=True)
class Quarantined:
    """A request is refused since the engine died of it.

    Attributes:
        held: what is held against it.
        crashes: how often the engine died.
    """

    held: Held
    crashes: int
