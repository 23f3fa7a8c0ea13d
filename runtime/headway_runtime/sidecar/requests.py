"""What is told of requests: looked up in the engines' files, and put in JSON with an explanation.

Nothing of a prompt or an answer is there to be told, only ids, times and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from headway_runtime.exchange.history_file import Histories, HistoryFileError, find_files
from headway_runtime.exchange.history_record import Key
from headway_runtime.scheduling.history.explanation import explain
from headway_runtime.scheduling.history.lifecycle import LIVE, State
from headway_runtime.scheduling.history.summary import RequestSummary
from headway_runtime.sidecar.request_ids import is_asked_for

MOST_TOLD = 100
"""Requests that one answer tells of."""

_Sought = Callable[[Key], bool]
_Rank = Callable[[Key], int]


class Requests:
    """The requests in the files of a pod's engines, as they were when it was made.

    Args:
        run_dir: directory shared with the engines.
        now_ns: now, nanoseconds since the epoch.
    """

    def __init__(self, run_dir: Path, now_ns: int) -> None:
        self._files = [each for each in map(_open, find_files(run_dir)) if each is not None]
        self._now_ns = now_ns

    @property
    def lost(self) -> int:
        """Histories that were dropped, since what became of their requests made no sense."""
        return sum(each.header.lost for each in self._files)

    @property
    def dropped_spans(self) -> int:
        """Requests that have ended without their span."""
        return sum(each.header.dropped_spans for each in self._files)

    def asked_for(self, asked: str) -> list[RequestSummary]:
        """Requests with this id, newest first."""

        def is_sought(key: Key) -> bool:
            return is_asked_for(key.request_id.decode(errors="ignore"), asked)

        return self._told(self._ranked(is_sought, lambda key: key.arrived_ns), lambda _: True)

    def slowest(
        self,
        count: int,
        class_name: str | None = None,
        tenant: str | None = None,
        *,
        by_first_token: bool = False,
    ) -> list[RequestSummary]:
        """Those that took longest, or whose first token did; longest first.

        Args:
            count: at most so many.
            class_name: of this class alone.
            tenant: of this tenant alone.
            by_first_token: whether their first tokens count.
        """

        def took_ns(key: Key) -> int:
            seen_ns = key.first_token_ns if by_first_token else 0
            return (seen_ns or key.ended_ns or self._now_ns) - key.arrived_ns

        def is_sought(told: RequestSummary) -> bool:
            return class_name in (None, told.class_name) and tenant in (None, told.tenant)

        return self._told(self._ranked(lambda _: True, took_ns), is_sought, count)

    def _ranked(self, is_sought: _Sought, rank: _Rank) -> Iterator[tuple[Histories, int]]:
        """Where the records are, highest rank first. One that has ended goes before its past."""
        found = [
            (rank(key), key.serial, file, offset)
            for file in self._files
            for offset, key in file.keys()  # noqa: SIM118 - no dictionary
            if is_sought(key)
        ]
        found.sort(key=lambda each: each[:2], reverse=True)
        return ((file, offset) for _, _, file, offset in found)

    def _told(
        self,
        places: Iterable[tuple[Histories, int]],
        is_sought: Callable[[RequestSummary], bool],
        count: int = MOST_TOLD,
    ) -> list[RequestSummary]:
        told: dict[tuple[str, int], RequestSummary] = {}
        for file, offset in places:
            summary = file.summary(offset)
            if summary is None or not is_sought(summary):
                continue
            told.setdefault((summary.request_id, summary.arrived_ns), summary.at(self._now_ns))
            if len(told) >= min(count, MOST_TOLD):
                break
        return list(told.values())


def request_document(told: RequestSummary) -> dict[str, Any]:
    """One request as a JSON object. Times of day are seconds since the epoch."""
    return {
        "id": told.request_id,
        "class": told.class_name or None,
        "tenant": told.tenant or None,
        "state": State(told.state).name.capitalize(),
        "explanation": list(explain(told)),
        "arrived": told.arrived_ns / 1e9,
        "admittedAfterSeconds": _after(told, told.admitted_ns),
        "firstTokenAfterSeconds": _after(told, told.first_token_ns),
        "ttftGivenUpAfterSeconds": _after(told, told.given_up_ns),
        "endedAfterSeconds": _after(told, told.ended_ns),
        "seconds": {
            state.name.lower(): round(spent_ns / 1e9, 3)
            for state, spent_ns in zip(LIVE, told.ns_in, strict=True)
        },
        "tokens": {
            "prompt": told.prompt_tokens,
            "cached": told.cached_tokens,
            "output": told.output_tokens if told.ended_ns else None,
            "recomputed": told.recomputed_tokens,
        },
        "chunks": {
            "count": told.chunks,
            "tokens": told.chunk_tokens,
            "largest": told.largest_chunk_tokens,
            "heldBackSteps": told.held_back_steps,
        },
        "preemptions": told.preemptions,
        "waitedSteps": told.waited_steps,
        "yielded": {
            "promptTokens": told.yielded_tokens,
            "to": [
                {
                    "class": each.class_name or None,
                    "tenant": each.tenant or None,
                    "promptTokens": each.tokens,
                }
                for each in told.yielded
            ],
        },
    }


def _after(told: RequestSummary, then_ns: int) -> float | None:
    return round((then_ns - told.arrived_ns) / 1e9, 3) if then_ns else None


def _open(path: Path) -> Histories | None:
    try:
        return Histories(path)
    except (OSError, HistoryFileError):
        # Its engine is starting, or of another release.
        return None
