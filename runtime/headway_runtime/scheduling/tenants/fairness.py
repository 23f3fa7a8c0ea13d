"""Whose turn it is among tenants, and who has had so much that deadlines do not help.

Work with a TTFT goes first in the order of its deadlines, whoever's it is. That alone would give
all there is to who calls all of its requests urgent. So a tenant that is ahead of another one that
waits by more than the window loses that privilege for what it has waiting: the rest goes by turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace
from math import inf
from types import MappingProxyType

from headway_runtime.scheduling.tenants.shares import charge
from headway_runtime.scheduling.urgency import BACKGROUND
from headway_runtime.scheduling.view import (
    BackgroundRequest,
    Prefill,
    Readiness,
    TenantView,
)

LOOKS = 24
"""Most requests whose turn it is in a step."""

MISSES = 16
"""So many requests of a tenant are passed over in a step, since they cannot run."""

_ALL = ""
"""Stands for slots of the batch where classes have room."""

NO_LIMITS: Mapping[str, int] = MappingProxyType({})

TOKENS_A_DECISION = 128
"""Between the least and the most tokens of a chunk beside decodes: what a decision gives away."""


def in_turn(
    tenants: Sequence[TenantView],
    slots: int,
    most_tokens: int,
    room: Mapping[str, int] = NO_LIMITS,
) -> list[BackgroundRequest]:
    """The requests that go next: always one of the tenant that would have been served least.

    Args:
        tenants: those of which requests wait.
        slots: most waiting requests that may be admitted.
        most_tokens: prompt tokens there is room for; more than that is not looked for.
        room: how many more requests of a class with a limit may run.
    """
    left = {**room, _ALL: slots}
    heap = [(each.counter, number, 0, 0) for number, each in enumerate(tenants) if each.background]
    heapify(heap)
    found: list[BackgroundRequest] = []
    while heap and len(found) < LOOKS and most_tokens > 0:
        counter, number, position, missed = heap[0]
        tenant = tenants[number]
        request = tenant.background[position]
        if _may_run(request, left):
            found.append(request)
            most_tokens -= _tokens(request)
            counter += charge(request.traffic_class, _tokens(request)) / tenant.weight
        else:
            missed += 1
        if position + 1 < len(tenant.background) and missed < MISSES:
            heapreplace(heap, (counter, number, position + 1, missed))
        else:
            heappop(heap)
    return found


def with_room(tenants: Sequence[TenantView], room: Mapping[str, int]) -> list[TenantView]:
    """The tenants, without work of those of whom nothing could run for want of room in its class.

    Nobody is kept waiting for them.
    """
    return [each if _could_run(each, room) else replace(each, background=()) for each in tenants]


def _could_run(tenant: TenantView, room: Mapping[str, int]) -> bool:
    return any(_may_run(each, {**room, _ALL: 1}) for each in tenant.background[:MISSES])


def with_running(tenants: Sequence[TenantView], running: Sequence[Prefill]) -> list[TenantView]:
    """The tenants with what they run of such work in its place: it can be held back, too."""
    of: dict[str, list[BackgroundRequest]] = {}
    for each in running:
        if each.urgency[0] == BACKGROUND:
            of.setdefault(each.tenant, []).append(each)
    return [_with(each, of[each.name]) if each.name in of else each for each in tenants]


def _with(tenant: TenantView, running: list[BackgroundRequest]) -> TenantView:
    # Those that run stay first among equals: they hold KV blocks.
    both = sorted([*running, *tenant.background[:LOOKS]], key=lambda each: each.urgency)
    return replace(tenant, background=both)


def _tokens(request: BackgroundRequest) -> int:
    return request.remaining_tokens if isinstance(request, Prefill) else request.prefill_tokens


def _may_run(request: BackgroundRequest, left: dict[str, int]) -> bool:
    """Whether it may be admitted, and takes a place of its class if so."""
    if isinstance(request, Prefill):
        return True
    if request.readiness is not Readiness.READY or request.is_misfit:
        return False
    places = [_ALL]
    if request.traffic_class is not None and request.traffic_class.name in left:
        places.append(request.traffic_class.name)
    if min([left[each] for each in places]) <= 0:
        return False
    for each in places:
        left[each] -= 1
    return True


def over_share(tenants: Sequence[TenantView], window: int) -> frozenset[str]:
    """Tenants that are ahead by more than so many decisions of another one's work without a TTFT.

    Work with a TTFT needs no such help: who has more than a share is the first to lose its own.
    """
    if len(tenants) < 2:  # noqa: PLR2004 - nobody to be ahead of
        return frozenset()
    least = min([each.counter for each in tenants if each.background], default=inf)
    most = least + window * TOKENS_A_DECISION
    return frozenset([each.name for each in tenants if each.counter > most])
