"""Requests that the plug-in cannot make sense of: it plans around them, and vLLM serves them.

Else one such request would fail the plan of every step while it waits, and nobody's steps would be
planned. It has no class and no objective, and goes by when it was set aside.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from headway_runtime.scheduling.urgency import urgency
from headway_runtime.scheduling.view import Urgency, WaitingRequest

_REMEMBERED = 4_096
_MOST_KINDS = 16

_LOGGER = logging.getLogger("vllm.headway")


class SetAside:
    """Requests that were set aside, by id.

    Attributes:
        count: how many so far.
        tell: told the count whenever it has changed.

    Args:
        clock: tells the time, in seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.count = 0
        self.tell: Callable[[int], None] = lambda _: None
        self._clock = clock
        self._since_s: dict[str, float] = {}
        self._kinds: set[tuple[str, str]] = set()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._since_s

    def add(self, request_id: str, error: Exception) -> None:
        """Set a request aside: this error came of it."""
        if request_id in self._since_s:
            return
        if len(self._since_s) >= _REMEMBERED:
            self._since_s.clear()
        self._since_s[request_id] = self._clock()
        self.count += 1
        self._log(error)
        self.tell(self.count)

    def waiting(self, request_id: str) -> WaitingRequest:
        """All that the planner knows of one that waits."""
        # It has a prompt: a plan that admits it has room for it.
        return WaitingRequest(request_id, self._since_s[request_id], prefill_tokens=1)

    def urgency(self, request_id: str) -> Urgency:
        """Where it stands in the order of waiting work."""
        return urgency(self._since_s[request_id], None)

    def ended(self, request_id: str) -> None:
        """It is gone."""
        self._since_s.pop(request_id, None)

    def _log(self, error: Exception) -> None:
        """Once for each kind and place; not its text, which may be a client's."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        kind = type(error).__name__, place
        if kind not in self._kinds and len(self._kinds) < _MOST_KINDS:
            self._kinds.add(kind)
            _LOGGER.error("Headway leaves a request to vLLM's own order: %s at %s", *kind)
