"""Which class of traffic a vLLM request belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from headway_runtime.executors.vllm.origins import Origins
from headway_runtime.executors.vllm.readiness import readiness
from headway_runtime.executors.vllm.set_aside import SetAside
from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.urgency import MISFIT, urgency
from headway_runtime.scheduling.view import Readiness, Urgency, WaitingRequest

CLASS_KEY = "headway_class"
"""Key under ``vllm_xargs`` of a request's body that names its class."""

_REMEMBERED = 65_536
"""Most requests whose place in the order is remembered: it is asked for a dozen times for each
request that arrives."""

_UNKNOWN: tuple[Any, WaitingRequest | None] = (None, None)


class Classifier:
    """Classes of one policy. A request that names none or an unknown one gets the default class.

    Args:
        policy: whose classes count.
        late: ids of waiting requests that can keep their TTFT no more; it changes meanwhile.
        misfits: ids of those that could not be admitted when nothing ran, likewise.
        origins: whose they are, likewise.
        set_aside: those that nobody can make sense of, likewise.
    """

    def __init__(
        self,
        policy: Policy,
        late: AbstractSet[str] = frozenset(),
        misfits: AbstractSet[str] = frozenset(),
        origins: Origins | None = None,
        set_aside: SetAside | None = None,
    ) -> None:
        self._set_aside = set_aside or SetAside()
        self._origins = origins or Origins()
        self._late = late
        self._misfits = misfits
        self._urgencies: dict[str, Urgency] = {}
        self._waiting: dict[str, tuple[Any, WaitingRequest | None]] = {}
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
        known = self._urgencies.get(request.request_id)
        return self._urgency(request) if known is None else known

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests wait no more; if they do again, they have other tokens to compute."""
        for each in request_ids:
            self._waiting.pop(each, None)

    def forget(self, request_ids: Iterable[str]) -> None:
        """These requests are gone, or stand elsewhere from now on."""
        for each in request_ids:
            self._urgencies.pop(each, None)
            self._waiting.pop(each, None)

    def _urgency(self, request: Any) -> Urgency:
        if len(self._urgencies) >= _REMEMBERED:
            # Some ended without a word; those that wait are soon known again.
            self._urgencies.clear()
        name = request.request_id
        found = MISFIT
        if name not in self._misfits:
            try:
                found = self._by_promise(request, name)
            except Exception as error:  # noqa: BLE001 - whatever it is, others are to be planned
                self._set_aside.add(name, error)
                self._waiting.pop(name, None)
                found = self._set_aside.urgency(name)
        self._urgencies[name] = found
        return found

    def _by_promise(self, request: Any, name: str) -> Urgency:
        if name in self._set_aside:
            return self._set_aside.urgency(name)
        promised = self.traffic_class(request)
        return urgency(
            request.arrival_time,
            promised,
            is_late=name in self._late,
            due_s=self._origins.of(name).due_s(promised),
        )

    def waiting(self, request: Any) -> WaitingRequest:
        """What the planner knows of a waiting request.

        Those at the front are looked at in every step. One that is ready stays what it is for as
        long as it waits, unless it becomes another part of its session.
        """
        name = request.request_id
        status, known = self._waiting.get(name, _UNKNOWN)
        if (
            known is not None
            and status is request.status
            and known.arrival_s == request.arrival_time
        ):
            return known
        if name in self._set_aside:
            return self._set_aside.waiting(name)
        try:
            return self._seen(request, name)
        except Exception as error:  # noqa: BLE001 - whatever it is, others are to be planned
            self._set_aside.add(name, error)
            self.forget((name,))
            return self._set_aside.waiting(name)

    def _seen(self, request: Any, name: str) -> WaitingRequest:
        standing, promised = self._origins.of(name), self.traffic_class(request)
        found = WaitingRequest(
            name,
            request.arrival_time,
            promised,
            readiness(request),
            request.num_tokens - request.num_computed_tokens,
            name in self._late,
            name in self._misfits,
            standing.tenant,
            standing.due_s(promised),
        )
        if found.readiness is Readiness.READY:
            if len(self._waiting) >= _REMEMBERED:
                self._waiting.clear()
            self._waiting[name] = (request.status, found)
        return found
