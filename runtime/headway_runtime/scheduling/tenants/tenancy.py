"""Follows what each tenant of an engine has waiting and was served; what both executors share."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.lazy import Lazy
from headway_runtime.scheduling.tenants.queues import TenantQueues
from headway_runtime.scheduling.tenants.rate import Rate
from headway_runtime.scheduling.tenants.shares import Shares, charge
from headway_runtime.scheduling.urgency import BACKGROUND
from headway_runtime.scheduling.view import (
    NO_TENANTS,
    Readiness,
    Tenants,
    TenantView,
    Urgency,
    WaitingRequest,
)

_Request = TypeVar("_Request")

LOOKS = 16
"""So many of a tenant's waiting requests are looked at to see whether it could go on."""

REVIEW_PERIOD_S = 0.25
"""Who has more than a share is found out so often."""


class Served(NamedTuple):
    """What steps computed.

    Attributes:
        prompt_tokens: tokens of prompts.
        output_tokens: tokens that were generated.
        is_background: for work without a TTFT to keep.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    is_background: bool = False


class Tenancy(Generic[_Request]):
    """Tenants of an engine.

    Attributes:
        shares: what they were served.
        drain: prompt tokens of work without a TTFT that are computed, while some of it waits.
        turnover: requests that leave the batch, while others wait.
    """

    def __init__(self) -> None:
        self.shares = Shares()
        self.drain = Rate()
        self.turnover = Rate()
        self._queues: TenantQueues[_Request] = TenantQueues()
        self._waiting: dict[str, tuple[str, str]] = {}
        self._classes: Counter[str] = Counter()
        self._window = 100
        self._reviewed_s = float("-inf")

    def declare(self, policy: Policy) -> None:
        """Follow another policy's tenants."""
        self.shares.declare({each.name: each.weight for each in policy.tenants})
        self._window = policy.fairness_window

    def nobody_waits(self) -> None:
        """Who waits is to be told anew, for instance because urgencies have changed."""
        self.shares.begin_anew()
        self._queues.clear()
        self._waiting.clear()
        self._classes.clear()

    @property
    def waiting_by_class(self) -> Mapping[str, int]:
        """Requests that wait, by class; those without one under an empty name."""
        return self._classes

    @property
    def urgent(self) -> int:
        """Requests that wait with a TTFT to keep."""
        return len(self._waiting) - len(self._queues)

    def waits(self, known: WaitingRequest, urgency: Urgency, request: _Request) -> None:
        """A request waits, or stands elsewhere from now on.

        Args:
            known: what the planner knows of it.
            urgency: where it stands.
            request: the executor's own object.
        """
        name = known.request_id
        if name not in self._waiting:
            tenant = self.shares.known_as(known.tenant)
            traffic_class = known.traffic_class.name if known.traffic_class is not None else ""
            self._waiting[name] = (tenant, traffic_class)
            self._classes[traffic_class] += 1
            self.shares.waits(tenant)
        if urgency[0] == BACKGROUND:
            self._queues.put(name, self._waiting[name][0], urgency, request)

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests wait no more."""
        for each in request_ids:
            known = self._waiting.pop(each, None)
            if known is not None:
                tenant, traffic_class = known
                self._classes[traffic_class] -= 1
                self._queues.take(each)
                self.shares.waits_no_more(tenant)

    def served(self, tenant: str, traffic_class: TrafficClass | None, served: Served) -> None:
        """A request of a tenant was in a step.

        Args:
            tenant: whose it is.
            traffic_class: its class.
            served: what the step computed of it.
        """
        tokens = charge(traffic_class, served.prompt_tokens, served.output_tokens)
        self.shares.charge(self.shares.known_as(tenant), tokens)
        if served.is_background:
            self.drain.count(served.prompt_tokens)

    def request(self, request_id: str) -> _Request | None:
        """A request that waits without a TTFT to keep."""
        return self._queues.request(request_id)

    def view(self, now_s: float, seen: Callable[[_Request], WaitingRequest]) -> Tenants:
        """Who waits, as the planner is to know it.

        Args:
            now_s: now, in seconds of any clock.
            seen: tells what is known of a waiting request.
        """
        shares = self.shares
        if now_s - self._reviewed_s >= REVIEW_PERIOD_S:
            self._reviewed_s = now_s
            shares.age(now_s)
            self.drain.age(now_s, waits=len(self._queues) > 0)
            self.turnover.age(now_s, waits=len(self._waiting) > 0)
        if len(shares) < 2:  # noqa: PLR2004 - who is alone shares with nobody
            return NO_TENANTS
        waiting = [self._tenant(each, seen) for each in shares.waiting]
        ready = tuple([each for each in waiting if each is not None])
        return Tenants(ready if len(ready) > 1 else (), shares.levels, self._window)

    def _tenant(self, name: str, seen: Callable[[_Request], WaitingRequest]) -> TenantView | None:
        """A tenant; None if all that it has waiting is nothing the engine would admit."""
        entries = self._queues.of(name)
        background: Sequence[WaitingRequest] = Lazy(
            len(entries), lambda place: seen(entries[place].request)
        )
        if not any(map(_is_ready, background[:LOOKS])):
            if self.shares.waiting_of(name) == len(entries):
                return None
            background = ()
        return TenantView(name, self.shares.counter(name), self.shares.weight(name), background)


def _is_ready(request: WaitingRequest) -> bool:
    return request.readiness is Readiness.READY and not request.is_misfit


def begin_of_background(urgencies: Sequence[Urgency]) -> int:
    """Where in a queue that is nearly in order those without a TTFT begin."""
    return bisect_left(urgencies, BACKGROUND, key=itemgetter(0))
