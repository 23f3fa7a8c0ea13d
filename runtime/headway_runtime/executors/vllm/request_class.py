"""Which class of traffic a vLLM request belongs to."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from headway_runtime.executors.vllm.readiness import readiness
from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.order import urgency
from headway_runtime.scheduling.view import Urgency, WaitingRequest

CLASS_KEY = "headway_class"
"""Key under ``vllm_xargs`` of a request's body that names its class."""


class Classifier:
    """Classes of one policy. A request that names none or an unknown one gets the default class.

    Args:
        policy: whose classes count.
        late: ids of waiting requests that can keep their TTFT no more; it changes meanwhile.
    """

    def __init__(self, policy: Policy, late: AbstractSet[str] = frozenset()) -> None:
        self._late = late
        self._classes = {each.name: each for each in policy.classes}
        self._default = self._classes.get(policy.default_class or "")

    def traffic_class(self, request: Any) -> TrafficClass | None:
        """The request's class, None when it has no objective. Never fails on what clients send."""
        parameters = request.sampling_params
        extra = parameters.extra_args if parameters is not None else None
        name = extra.get(CLASS_KEY) if isinstance(extra, dict) else None
        return self._classes.get(name, self._default) if isinstance(name, str) else self._default

    def urgency(self, request: Any) -> Urgency:
        """Where the request stands in the order of waiting work."""
        is_late = request.request_id in self._late
        return urgency(request.arrival_time, self.traffic_class(request), is_late=is_late)

    def waiting(self, request: Any) -> WaitingRequest:
        """What the planner knows of a waiting request."""
        traffic_class = self.traffic_class(request)
        return WaitingRequest(
            request.request_id,
            request.arrival_time,
            traffic_class,
            readiness(request),
            request.num_tokens - request.num_computed_tokens,
            request.request_id in self._late,
        )
