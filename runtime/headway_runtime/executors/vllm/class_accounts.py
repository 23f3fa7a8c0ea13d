"""Holds requests against the objectives of their classes."""

from __future__ import annotations

from typing import Any

from headway_runtime.executors.vllm.class_table import ClassTable
from headway_runtime.executors.vllm.followed import Followed
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.policy import MAX_CLASSES, Policy, TrafficClass

_NS = 10**9


class ClassAccounts:
    """What became of requests, by the class that each had when it arrived.

    Times are wall-clock, since that is what vLLM's front-end stamps arrivals with. A session that
    pauses has no first token or end in the sense of an objective and is left out.

    Attributes:
        table: what has become of requests, by class.
    """

    def __init__(self) -> None:
        self.table = ClassTable(MAX_CLASSES)
        self._classifier: Classifier | None = None

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy: requests under way keep the objectives they arrived with."""
        self._classifier = None if policy is None else Classifier(policy)
        self.table.set_classes([] if policy is None else [each.name for each in policy.classes])

    def traffic_class(self, request: Any) -> TrafficClass | None:
        """The class of a vLLM request; None when it has no objective."""
        return None if self._classifier is None else self._classifier.traffic_class(request)

    def first_token(self, followed: Followed, now_ns: int) -> None:
        """The first token of a request has come."""
        if followed.promised is None:
            return
        target_ms = followed.promised.ttft_ms
        entry = self.table.entry(followed.promised.name)
        if entry is not None and target_ms is not None:
            entry.at(now_ns).ttft.count(_since_arrival_s(followed, now_ns) * 1000 / target_ms)

    def ended(self, followed: Followed, reason: str, now_ns: int) -> bool | None:
        """A request has ended for this reason, by the name that vLLM has for it.

        Returns:
            Whether it met every objective; None where its client gave it up.
        """
        promised = followed.promised
        if reason == "ABORT" and not _may_have_met_a_stop_string(followed):
            return None
        is_well = reason != "ERROR"
        if promised is None:
            return is_well
        tpot_ratio = _tpot_ratio(followed, promised, now_ns) if is_well else None
        attained = is_well and _attained(followed, promised, tpot_ratio, now_ns)
        entry = self.table.entry(promised.name)
        if entry is not None:
            entry = entry.at(now_ns)
            entry.requests += 1
            entry.attained += attained
            if tpot_ratio is not None:
                entry.tpot.count(tpot_ratio)
        return attained


def _may_have_met_a_stop_string(followed: Followed) -> bool:
    """Whether an abort may mean that the request is complete.

    Stop strings are found in the text, which only the front-end has: it then aborts the request.
    """
    return followed.first_token_ns is not None and bool(followed.request.sampling_params.stop)


def _since_arrival_s(followed: Followed, then_ns: int) -> float:
    return then_ns / _NS - float(followed.request.arrival_time)


def _tpot_ratio(followed: Followed, promised: TrafficClass, last_token_ns: int) -> float | None:
    """Mean time per output token after the first, over its target."""
    target_ms, gaps = promised.tpot_ms, followed.request.num_output_tokens - 1
    if target_ms is None or followed.first_token_ns is None or gaps < 1:
        return None
    mean_ms: float = (last_token_ns - followed.first_token_ns) / 1e6 / gaps
    return mean_ms / target_ms


def _attained(
    followed: Followed, promised: TrafficClass, tpot_ratio: float | None, ended_ns: int
) -> bool:
    """Whether a request that ended well met every objective of its class."""
    # Without any token its end is all the client has seen.
    first_ns = ended_ns if followed.first_token_ns is None else followed.first_token_ns
    return (
        (
            promised.ttft_ms is None
            or _since_arrival_s(followed, first_ns) * 1000 <= promised.ttft_ms
        )
        and (tpot_ratio is None or tpot_ratio <= 1)
        and (
            promised.deadline_s is None
            or _since_arrival_s(followed, ended_ns) <= promised.deadline_s
        )
    )
