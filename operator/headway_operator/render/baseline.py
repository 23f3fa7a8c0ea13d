"""The policy that follows from a spec alone."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api.scheduling import Priority
from headway_operator.api.spec import InferenceServiceSpec
from headway_operator.api.traffic import Tenant as DeclaredTenant
from headway_operator.api.traffic import TrafficClass as DeclaredClass
from headway_runtime.policy import (
    Mode,
    Policy,
    PriorityCoefficients,
    Scope,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
    within_version,
)

_BEFORE_ALL_OTHERS = Stamp(0, 0, 0)


def policy_from_spec(spec: InferenceServiceSpec, service_uid: str, stamp: Stamp) -> Policy:
    """What the user declared, as a policy for every pod of the service."""
    return Policy(
        scope=Scope(service_uid),
        stamp=stamp,
        mode=Mode(spec.scheduling.mode),
        max_batch_size=spec.scheduling.max_batch_size,
        token_budget=spec.scheduling.token_budget,
        classes=tuple(_class(each) for each in spec.classes),
        default_class=spec.default_class,
        tenants=tuple(_tenant(each) for each in spec.tenants),
        trust_headers=spec.trust_headers,
        fairness_window=spec.scheduling.fairness_window,
        priority=_priority(spec.scheduling.priority),
    )


def baseline_policy(
    spec: InferenceServiceSpec, service_uid: str, generation: int, format_version: int
) -> Policy:
    """The policy pods start with, and keep while no operator runs. Every decision outranks it.

    It says no more than its readers understand: a pod that cannot read it never starts. If that is
    not all, it is for pods without any policy: others keep theirs, which was retuned.
    """
    policy = policy_from_spec(spec, service_uid, Stamp(generation, epoch=0, counter=0))
    understood = within_version(policy, format_version)
    return policy if understood == policy else replace(understood, stamp=_BEFORE_ALL_OTHERS)


def _class(declared: DeclaredClass) -> TrafficClass:
    return TrafficClass(
        name=declared.name,
        ttft_ms=declared.ttft_milliseconds,
        tpot_ms=declared.tpot_milliseconds,
        deadline_s=declared.deadline_seconds,
        weight=declared.weight,
        when_unmet=WhenUnmet(declared.when_unmet),
        max_queued=declared.max_queued,
    )


def _tenant(declared: DeclaredTenant) -> Tenant:
    return Tenant(declared.name, declared.weight, declared.api_key_sha256)


def _priority(declared: Priority) -> PriorityCoefficients:
    return PriorityCoefficients(
        base=declared.base_percent,
        depth=declared.depth_percent,
        progress=declared.progress_percent,
        learn=declared.learn,
    )
