"""What activators tell: whether anybody asks for a service that has no engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

SILENCES_TOLERATED = 5
"""A pod that did not answer so many times in a row, some seconds, is out of reach."""

_MOST = 10**9


@dataclass(frozen=True)
class ActivatorReport:
    """What one activator told last.

    Attributes:
        held: requests that wait for an engine.
        passing: requests that it passes on.
        asked_at: when a request came last that no engine could take, as Unix time in seconds; None
            where none has come yet.
    """

    held: int
    passing: int
    asked_at: float | None


def parse_report(answer: Mapping[str, Any], now: float) -> ActivatorReport | None:
    """Read an answer that came now (Unix time in seconds); None for what no activator tells."""
    counts = [answer.get("held"), answer.get("passing")]
    since = answer.get("secondsSinceAsked")
    if not all(isinstance(each, int) and 0 <= each <= _MOST for each in counts):
        return None
    if since is not None and not (isinstance(since, (int, float)) and 0 <= since <= _MOST):
        return None
    asked_at = None if since is None else now - since
    return ActivatorReport(int(counts[0] or 0), int(counts[1] or 0), asked_at)


class Activators:
    """What activators told last, by pod uid, kept between reconciliations."""

    def __init__(self) -> None:
        self._told: dict[str, ActivatorReport] = {}
        self._silences: dict[str, int] = {}

    def of(self, pod_uids: Iterable[str]) -> dict[str, ActivatorReport]:
        """Of these pods, as far as they have told."""
        return {uid: self._told[uid] for uid in pod_uids if uid in self._told}

    def silent(self, pod_uids: Iterable[str]) -> frozenset[str]:
        """Those of these pods that were asked in vain, again and again."""
        return frozenset(
            uid for uid in pod_uids if self._silences.get(uid, 0) >= SILENCES_TOLERATED
        )

    def told(self, pod_uid: str, report: ActivatorReport) -> bool:
        """Note what a pod told. Returns whether that is news."""
        was_silent = self._silences.pop(pod_uid, 0) >= SILENCES_TOLERATED
        before = self._told.get(pod_uid)
        self._told[pod_uid] = report
        return was_silent or before != report

    def silence(self, pod_uid: str) -> bool:
        """Note that a pod did not answer. Returns whether that is news."""
        count = self._silences[pod_uid] = self._silences.get(pod_uid, 0) + 1
        return self._told.pop(pod_uid, None) is not None or count == SILENCES_TOLERATED

    def shift(self, seconds: float) -> None:
        """The clock was set by so many seconds: what was asked was asked as long ago as before."""
        self._told = {
            uid: each if each.asked_at is None else replace(each, asked_at=each.asked_at + seconds)
            for uid, each in self._told.items()
        }

    def forget(self, pod_uid: str) -> None:
        """The pod is not asked any more."""
        self._told.pop(pod_uid, None)
        self._silences.pop(pod_uid, None)
