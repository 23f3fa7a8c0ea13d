"""Writes down what has become of requests: of those that have ended, and of those that last."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from headway_runtime.exchange.history_file import HistoryWriter
from headway_runtime.executors.vllm.followed import Followed
from headway_runtime.executors.vllm.request_spans import RequestSpans
from headway_runtime.scheduling.history.lifecycle import IllegalTransitionError, State
from headway_runtime.scheduling.history.request_history import RequestHistory
from headway_runtime.scheduling.history.work_done import WorkDone

_LOGGER = logging.getLogger("vllm.headway")

TOLD_AFTER_NS = 10**9
"""Requests that are under way for longer are told of meanwhile, at most as often as this."""

ONE_IN_NS = 100_000_000
MOST_AT_ONCE = 8
"""One in 100 ms, and so many after a pause: each takes 10 to 20 us of a step."""

MOST_UNWRITTEN = 64
"""So many requests that have ended are written at once."""


class HistoryLog:
    """What is written of histories.

    Args:
        writer: the file; None writes none.
        spans: told of requests that have ended; None where nothing is traced.
    """

    def __init__(
        self, writer: HistoryWriter | None = None, spans: RequestSpans | None = None
    ) -> None:
        self._writer = writer
        self._spans = spans
        self._new: deque[tuple[int, str]] = deque()
        self._again: deque[tuple[int, str]] = deque()
        self._told_ns = 0
        self._lost = 0
        self._missing = (0, 0)
        self._ended: list[tuple[RequestHistory, int | None]] = []

    def arrived(self, name: str, followed: Followed, now_ns: int) -> None:
        """A request is followed from now on."""
        if self._writer is not None:
            followed.is_queued = True
            self._new.append((now_ns + TOLD_AFTER_NS, name))

    def changed(self, name: str, followed: Followed, now_ns: int) -> None:
        """A request is where it was not to be expected."""
        if self._writer is not None and not followed.is_queued:
            followed.is_queued = True
            self._again.append((now_ns, name))

    def ended(self, followed: Followed) -> None:
        """A request has ended."""
        history = followed.history
        if history is None:
            return
        headers = getattr(followed.request, "trace_headers", None)
        if headers and self._spans is not None:
            self._spans.ended(headers, history.summary())
        if self._writer is not None:
            # Told until its end is written.
            self._ended.append((history, followed.slot))
            followed.slot = None
            if len(self._ended) >= MOST_UNWRITTEN:
                self._write_ended(self._writer)

    def note(self, followed: Followed, event: Callable[..., None], *told: Any) -> None:
        """Note an event in a history. One that makes no sense costs the history.

        Args:
            followed: the request.
            event: a method of :class:`RequestHistory`.
            told: its arguments.
        """
        if followed.history is None:
            return
        try:
            event(followed.history, *told)
        except IllegalTransitionError as error:
            followed.history = None
            self._leave(followed)
            self.lost(error)

    def lost(self, error: Exception) -> None:
        """Nothing can be told of a request, for this error."""
        if not self._lost:
            # Not which: its id is the client's text, and so may be that of other errors.
            kind = error if isinstance(error, IllegalTransitionError) else type(error).__name__
            _LOGGER.warning("Headway has lost the history of a request: %s", kind)
        self._lost += 1

    def left(self, followed: Followed) -> None:
        """A request is followed no more, and how it ended is not known."""
        self._leave(followed)

    def step_ended(self) -> None:
        """What follows belongs to another step."""
        if self._spans is not None:
            self._spans.step_ended()

    def write(self, under_way: Mapping[str, Followed], done: WorkDone, now_ns: int) -> None:
        """Write who has ended, and tell of some requests under way.

        Several at a time, which takes less than one by one.

        Args:
            under_way: all of them, by id.
            done: what the engine has done.
            now_ns: now.
        """
        if self._writer is None:
            return
        self._write_ended(self._writer)
        missing = (self._lost, self._spans.dropped if self._spans is not None else 0)
        if missing != self._missing:
            self._missing = missing
            self._writer.missing(*missing)
        # What was not told of in time is not made up for.
        self._told_ns = max(self._told_ns, now_ns - MOST_AT_ONCE * ONE_IN_NS)
        self._put_off_decodes(under_way, now_ns)
        for queue in (self._new, self._again):
            while queue and queue[0][0] <= now_ns and self._told_ns + ONE_IN_NS <= now_ns:
                name = queue.popleft()[1]
                followed = under_way.get(name)
                if followed is not None:
                    self._told_ns += ONE_IN_NS
                    self._tell(name, followed, done, now_ns)

    def _write_ended(self, writer: HistoryWriter) -> None:
        for history, slot in self._ended:
            writer.append(history.summary())
            if slot is not None:
                writer.end(slot)
        self._ended.clear()

    def _put_off_decodes(self, under_way: Mapping[str, Followed], now_ns: int) -> None:
        """Those who wait for their first token are told of before those who have it."""
        kept: list[tuple[int, str]] = []
        while self._new and self._new[0][0] <= now_ns and len(kept) < MOST_AT_ONCE:
            due = self._new.popleft()
            followed = under_way.get(due[1])
            if followed is not None:
                decodes = followed.first_token_ns is not None
                (self._again if decodes else kept).append(due)
        self._new.extendleft(reversed(kept))

    def _tell(self, name: str, followed: Followed, done: WorkDone, now_ns: int) -> None:
        history, writer = followed.history, self._writer
        followed.is_queued = False
        if history is None or writer is None:
            return
        if followed.slot is None:
            followed.slot = writer.begin()
        if followed.slot is not None:
            writer.write(followed.slot, history.summary(done.reading))
        is_settled = history.state is State.DECODING or history.state is State.PAUSED
        if followed.slot is None or not is_settled:
            # There will be more to tell, or room to.
            followed.is_queued = True
            self._again.append((now_ns + TOLD_AFTER_NS, name))

    def _leave(self, followed: Followed) -> None:
        if self._writer is not None and followed.slot is not None:
            self._writer.end(followed.slot)
            followed.slot = None
