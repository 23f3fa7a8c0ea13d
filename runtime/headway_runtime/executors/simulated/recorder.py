"""What a simulation tells while it runs."""

from __future__ import annotations

from typing import Protocol

from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.request import Request


class Recorder(Protocol):
    """Is told of every step and every token."""

    def launched(self, launched: Launched, waiting: int) -> None:
        """A step was launched; so many requests wait."""
        ...

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        ...
