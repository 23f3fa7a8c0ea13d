"""The requests that are followed, and which of them a step has to look at."""

from __future__ import annotations

from headway_runtime.executors.vllm.followed import Followed

_SWEEP_BEYOND = 256


class UnderWay:
    """Requests that have arrived and not ended.

    Attributes:
        requests: all of them, by id.
        without_token: ids of those whose next token counts.
        computing: those that run and whose prompt is not scheduled to its end.
    """

    def __init__(self) -> None:
        self.requests: dict[str, Followed] = {}
        self.without_token: set[str] = set()
        self.computing: dict[str, Followed] = {}
        self._sweep_at = _SWEEP_BEYOND

    def add(self, name: str, followed: Followed) -> None:
        """A request has arrived."""
        self.requests[name] = followed
        self.without_token.add(name)

    def remove(self, name: str) -> Followed | None:
        """A request is followed no more; None if it was not."""
        self.without_token.discard(name)
        self.computing.pop(name, None)
        return self.requests.pop(name, None)

    def sweep(self) -> list[Followed]:
        """Remove those that ended without a word, now and then.

        So nothing piles up whatever the engine does.
        """
        if len(self.requests) <= self._sweep_at:
            return []
        gone = [name for name, known in self.requests.items() if known.request.is_finished()]
        removed = [self.remove(name) for name in gone]
        self._sweep_at = 2 * len(self.requests) + _SWEEP_BEYOND
        return [each for each in removed if each is not None]
