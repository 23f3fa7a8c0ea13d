"""Follows each request from its arrival to its end, and holds it against its class's objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from headway_runtime.executors.vllm.class_table import ClassTable
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.policy import MAX_CLASSES, Policy, TrafficClass

_NS = 10**9
_NEW_TOKENS = attrgetter("new_token_ids")
_SWEEP_BEYOND = 256


class _Request:
    """A request under way: vLLM's object, its class when it arrived, when its first token came."""

    __slots__ = ("first_token_ns", "request", "traffic_class")

    def __init__(self, request: Any, traffic_class: TrafficClass) -> None:
        self.request = request
        self.traffic_class = traffic_class
        self.first_token_ns: int | None = None


class ClassAccounts:
    """Requests under way and what became of those that ended.

    Times are wall-clock, since that is what vLLM's front-end stamps arrivals with. A paused
    session has no first token or end in the sense of an objective and is left out.

    Attributes:
        table: what has become of requests, by class.
    """

    def __init__(self) -> None:
        self.table = ClassTable(MAX_CLASSES)
        self._classifier: Classifier | None = None
        self._under_way: dict[str, _Request] = {}
        self._without_token: set[str] = set()
        self._sweep_at = _SWEEP_BEYOND

    def __len__(self) -> int:
        return len(self._under_way)

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy: requests under way keep the objectives they arrived with."""
        self._classifier = None if policy is None else Classifier(policy)
        self.table.set_classes([] if policy is None else [each.name for each in policy.classes])

    def arrived(self, request: Any) -> None:
        """The engine has taken in a request."""
        if self._classifier is None or request.resumable:
            return
        traffic_class = self._classifier.traffic_class(request)
        request_id = request.request_id
        if traffic_class is None or request_id in self._under_way:
            return
        self._under_way[request_id] = _Request(request, traffic_class)
        self._without_token.add(request_id)
        if len(self._under_way) > self._sweep_at:
            self._sweep()

    def tokens_came(self, outputs: Mapping[Any, Any], now_ns: int) -> tuple[int, list[str]]:
        """The output of a step: vLLM's ``EngineCoreOutputs`` by client.

        Returns:
            How many tokens there were, and which requests have ended.
        """
        tokens = 0
        ended: list[str] = []
        for client in outputs.values():
            of_client = client.outputs
            # Whole lists at a time: this is all that is done for every token.
            tokens += sum(map(len, map(_NEW_TOKENS, of_client)))
            for each in self._first_or_last(of_client):
                if each.new_token_ids and each.request_id in self._without_token:
                    self._first_token(each.request_id, now_ns)
                if each.finish_reason is not None:
                    self._ended(each.request_id, each.finish_reason.name, now_ns)
                    ended.append(each.request_id)
        return tokens, ended

    def ended(self, requests: Iterable[Any], now_ns: int, *, by_client: bool) -> None:
        """The engine has ended these requests from outside of a step.

        Args:
            requests: vLLM's requests.
            now_ns: now, nanoseconds since the epoch.
            by_client: whether their clients may have asked for it.
        """
        for each in requests:
            reason = each.get_finished_reason()
            name = reason.name if reason is not None else "ERROR"
            if name == "ABORT" and not by_client:
                name = "ERROR"
            self._ended(each.request_id, name, now_ns)

    def _first_or_last(self, outputs: Sequence[Any]) -> list[Any]:
        """Outputs of requests that had no token before, or that have ended."""
        without_token = self._without_token
        if not without_token:
            return [each for each in outputs if each.finish_reason is not None]
        return [
            each
            for each in outputs
            if each.finish_reason is not None or each.request_id in without_token
        ]

    def _first_token(self, request_id: str, now_ns: int) -> None:
        self._without_token.discard(request_id)
        known = self._under_way[request_id]
        known.first_token_ns = now_ns
        target_ms = known.traffic_class.ttft_ms
        entry = self.table.entry(known.traffic_class.name)
        if entry is not None and target_ms is not None:
            entry.at(now_ns).ttft.count(_since_arrival_s(known, now_ns) * 1000 / target_ms)

    def _ended(self, request_id: str, reason: str, now_ns: int) -> None:
        known = self._under_way.pop(request_id, None)
        if known is None:
            return
        self._without_token.discard(request_id)
        if reason == "ABORT" and not _may_have_met_a_stop_string(known):
            return
        entry = self.table.entry(known.traffic_class.name)
        if entry is None:
            return
        entry = entry.at(now_ns)
        entry.requests += 1
        if reason == "ERROR":
            return
        tpot_ratio = _tpot_ratio(known, now_ns)
        if tpot_ratio is not None:
            entry.tpot.count(tpot_ratio)
        entry.attained += _attained(known, tpot_ratio, now_ns)

    def _sweep(self) -> None:
        """Drop what ended without a word, so that nothing piles up whatever the engine does."""
        gone = [name for name, known in self._under_way.items() if known.request.is_finished()]
        for each in gone:
            del self._under_way[each]
            self._without_token.discard(each)
        self._sweep_at = 2 * len(self._under_way) + _SWEEP_BEYOND


def _may_have_met_a_stop_string(known: _Request) -> bool:
    """Whether an abort may mean that the request is complete.

    Stop strings are found in the text, which only the front-end has: it then aborts the request.
    """
    return known.first_token_ns is not None and bool(known.request.sampling_params.stop)


def _since_arrival_s(known: _Request, then_ns: int) -> float:
    return then_ns / _NS - float(known.request.arrival_time)


def _tpot_ratio(known: _Request, last_token_ns: int) -> float | None:
    """Mean time per output token after the first, over its target."""
    target_ms, gaps = known.traffic_class.tpot_ms, known.request.num_output_tokens - 1
    if target_ms is None or known.first_token_ns is None or gaps < 1:
        return None
    mean_ms: float = (last_token_ns - known.first_token_ns) / 1e6 / gaps
    return mean_ms / target_ms


def _attained(known: _Request, tpot_ratio: float | None, ended_ns: int) -> bool:
    """Whether a request that ended well met every objective of its class."""
    promised = known.traffic_class
    # Without any token its end is all the client has seen.
    first_ns = ended_ns if known.first_token_ns is None else known.first_token_ns
    return (
        (promised.ttft_ms is None or _since_arrival_s(known, first_ns) * 1000 <= promised.ttft_ms)
        and (tpot_ratio is None or tpot_ratio <= 1)
        and (
            promised.deadline_s is None or _since_arrival_s(known, ended_ns) <= promised.deadline_s
        )
    )
