"""Workloads of several tenants, and of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from headway_runtime.bench.classes.declarations import Declared, calls
from headway_runtime.bench.classes.program_shapes import LONG_EVERY, Shape, computed_tokens
from headway_runtime.bench.mixes import Mix
from headway_runtime.bench.scenarios import Offer
from headway_runtime.bench.workload import (
    Request,
    Workload,
    generator,
    mean_tokens_per_request,
    mixed_workload,
    poisson_arrivals,
)
from headway_runtime.policy import Tenant, TrafficClass, WhenUnmet

AGENT = TrafficClass("agent")
"""Calls of programs: nothing is promised for each of them, the whole program's time counts."""

_SAMPLES = 64 * LONG_EVERY


def shedding(offer: Offer, mix: Mix, load: float, duration_s: float) -> Workload:
    """A mix whose classes with a TTFT are refused where it cannot be kept."""
    rate_per_s = load * offer.capacity_tokens_per_s / mean_tokens_per_request(mix)
    workload = mixed_workload(mix, rate_per_s, duration_s, offer.seed)
    classes = tuple(
        replace(each, when_unmet=WhenUnmet.SHED) if each.ttft_ms is not None else each
        for each in workload.classes
    )
    return replace(workload, classes=classes)


@dataclass(frozen=True)
class TenantLoad:
    """What a tenant offers.

    Attributes:
        tenant: who.
        load: share of the capacity.
        claims: the class that it says all of its requests are of; empty to tell the truth.
    """

    tenant: Tenant
    load: float
    claims: str = ""


def shared(offer: Offer, mix: Mix, loads: Sequence[TenantLoad], duration_s: float) -> Workload:
    """Tenants that offer one mix at different rates."""
    tokens = mean_tokens_per_request(mix)
    classes: tuple[TrafficClass, ...] = ()
    requests: list[Request] = []
    for each in loads:
        rate_per_s = each.load * offer.capacity_tokens_per_s / tokens
        # Of its own for each tenant: who claims what changes nobody's requests.
        seed = generator(offer.seed, each.tenant.name).getrandbits(48)
        own = mixed_workload(mix, rate_per_s, duration_s, seed)
        classes = own.classes
        requests += [
            replace(request, tenant=each.tenant.name, class_name=each.claims or request.class_name)
            for request in own.requests
        ]
    return Workload(
        classes,
        tuple(sorted(requests, key=lambda request: request.arrival_s)),
        duration_s,
        tuple(each.tenant for each in loads),
    )


def programs(  # noqa: PLR0913, PLR0917 - each is one thing that scenarios differ in
    offer: Offer,
    shape: Shape,
    load: float,
    duration_s: float,
    declared: Mapping[Tenant, Declared],
    beside: Workload | None = None,
) -> Workload:
    """Programs that begin at random times; each is of one of the tenants.

    Args:
        offer: the engine's capacity and the seed.
        shape: draws the programs.
        load: share of the capacity that they need, with what the prefix cache saves not counted.
        duration_s: time in which they begin.
        declared: what each tenant declares.
        beside: other requests.
    """
    rate_per_s = load * offer.capacity_tokens_per_s / _mean_computed_tokens(shape)
    # What is declared is drawn apart, so that it changes nothing of what is sent.
    rng, made_up = generator("programs", offer.seed), generator("declared", offer.seed)
    requests = list(beside.requests) if beside is not None else []
    tenants = list(declared)
    # Sorted with their places, since calls name those they wait for by place.
    sent: list[tuple[Request, tuple[int, ...]]] = [(each, ()) for each in requests]
    for number, arrival_s in enumerate(poisson_arrivals(rate_per_s, duration_s, rng)):
        tenant = tenants[rng.randrange(len(tenants))]
        drawn = shape(rng, is_long=is_long(number))
        first, name = len(sent), f"{tenant.name}-{number}"
        told = calls(name, drawn, declared[tenant], made_up)
        for each, call in zip(drawn, told, strict=True):
            request = Request(
                arrival_s,
                AGENT.name,
                each.prompt_tokens,
                each.output_tokens,
                rng.getrandbits(48),
                each.prefix_blocks(number),
                tenant.name,
                name,
                call,
                delay_s=each.delay_s,
            )
            sent.append((request, tuple(first + parent for parent in each.after)))
    others = (beside.classes, beside.tenants) if beside is not None else ((), ())
    return Workload((*others[0], AGENT), _in_order(sent), duration_s, (*others[1], *tenants))


def _in_order(sent: Sequence[tuple[Request, tuple[int, ...]]]) -> tuple[Request, ...]:
    """Requests by arrival, with the places of those they wait for."""
    order = sorted(range(len(sent)), key=lambda index: sent[index][0].arrival_s)
    place = {before: after for after, before in enumerate(order)}
    return tuple(
        replace(request, after=tuple(place[parent] for parent in after))
        for request, after in (sent[index] for index in order)
    )


def _mean_computed_tokens(shape: Shape) -> float:
    rng = generator("mean")
    return fmean(computed_tokens(shape(rng, is_long=is_long(number))) for number in range(_SAMPLES))


def is_long(number: int) -> bool:
    """Whether a program is long, by its number: by chance, a run would have many or hardly any."""
    return number % LONG_EVERY == LONG_EVERY // 4
