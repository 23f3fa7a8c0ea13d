"""What a simulation tells while it runs."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.scheduling.admission.refusal import Refusal


class Occupancy(NamedTuple):
    """How full an engine is.

    Attributes:
        running: requests that run.
        waiting: requests that wait.
        kv_usage: share of KV blocks in use.
        token_budget: of the last step.
    """

    running: int
    waiting: int
    kv_usage: float
    token_budget: int


class Recorder(Protocol):
    """Is told of every request, every step and every token.

    It may send further requests to the engine, and see to what is told nothing else.
    """

    def received(self, request: Request) -> None:
        """A request was let in."""
        ...

    def refused(self, arrival: Arrival, number: int, refusal: Refusal) -> None:
        """A request was not let in; the number counts what has come, from 1."""
        ...

    def launched(self, launched: Launched, waiting: int) -> None:
        """A step was launched; so many requests wait."""
        ...

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        ...
