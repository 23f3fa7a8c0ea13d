"""From the pods that a service needs to those that it gets of the GPUs that all share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.decide.scaling.scaled import GpuShare, Scaled
from headway_operator.decide.scaling.sharing import divide
from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.observe.records import ServiceKey
from headway_operator.render.resources import gpus_of
from headway_operator.snapshot import Snapshot


def claim_of(
    key: ServiceKey, spec: InferenceServiceSpec, scaled: Scaled, runs: int | None = None
) -> GpuClaim | None:
    """What a service wants, once it was decided what it needs; None without GPUs.

    Where others say how many pods run they do: it is not for the operator to give them fewer.

    Args:
        key: the service.
        spec: its spec.
        scaled: what was decided.
        runs: pods that run of those. Where that is fewer, as some are given up for now, GPUs that
            stay empty are not kept from others.
    """
    claim = _full_claim(key, spec, scaled)
    if claim is None or runs is None or runs >= scaled.replicas:
        return claim
    least, wanted, running = (min(n, runs) for n in (claim.least, claim.wanted, claim.running))
    return replace(claim, least=least, wanted=wanted, running=running)


def _full_claim(key: ServiceKey, spec: InferenceServiceSpec, scaled: Scaled) -> GpuClaim | None:
    gpus, memory = gpus_of(spec.engine), scaled.memory
    if gpus == 0:
        return None
    if memory is None or scaled.replicas == 0:
        return GpuClaim(key, gpus, scaled.replicas, scaled.replicas, scaled.replicas)
    scaling = spec.scaling
    # A service that somebody uses has a pod, also where it has none otherwise.
    least = min(max(1, scaling.min_replicas), memory.claimed)
    return GpuClaim(key, gpus, least, memory.claimed, memory.replicas, scaling.priority)


def within_quota(scaled: Scaled, snapshot: Snapshot, spec: InferenceServiceSpec) -> Scaled:
    """The same, with no more pods than the service gets; more where others left it some."""
    quota, memory = snapshot.quota, scaled.memory
    claim = claim_of(snapshot.service.key, spec, scaled)
    if quota is None or claim is None or memory is None:
        return scaled
    decided = scaled.replicas if scaled.before is None else scaled.before
    granted = _granted(quota, replace(claim, running=_has(snapshot, quota, decided)))
    others = sum(each.running * each.gpus for each in quota.others)
    share = GpuShare(quota.gpus, granted * claim.gpus, others)
    limited = share if granted < claim.wanted else None
    why = str(share) if limited or not scaled.message else ""
    return replace(
        scaled,
        replicas=granted,
        memory=replace(memory, replicas=granted),
        before=decided if granted != decided else None,
        message="; ".join(filter(None, (scaled.message, why))),
        limited=limited,
    )


def _has(snapshot: Snapshot, quota: GpuQuota, decided: int) -> int:
    """Pods of those decided on last that others leave room for.

    When pods that were given up are tried again, their GPUs may be somebody else's by now. Until
    then the number stands: no pod comes of it.
    """
    gives_up = any(
        each.step is Step.FEWER_REPLICAS and not each.retrying
        for each in snapshot.service.status.degradation
    )
    return decided if gives_up or quota.own is None else min(decided, quota.own.running)


def _division(quota: GpuQuota, claim: GpuClaim) -> Mapping[ServiceKey, int]:
    """Pods of each service; divided once for all while nobody claims anything new."""
    if claim != quota.own:
        return divide(quota.gpus, (claim, *quota.others))
    known = (quota.gpus, quota.everybody)
    return quota.memo.last("division", known, lambda all_claims: divide(*all_claims))


def _granted(quota: GpuQuota, claim: GpuClaim) -> int:
    """Pods that a service gets now: more only of GPUs that nobody has any more."""
    granted = _division(quota, claim)[claim.key]
    if granted <= claim.running:
        return granted
    free = quota.gpus - sum(each.running * each.gpus for each in quota.others)
    room = free // claim.gpus if quota.is_complete else 0
    return max(claim.least, claim.running, min(granted, room))
