"""The policy that follows from a spec alone."""

from __future__ import annotations

from headway_operator.api.spec import InferenceServiceSpec
from headway_runtime.policy import Mode, Policy, Scope, Stamp, TrafficClass


def policy_from_spec(spec: InferenceServiceSpec, service_uid: str, stamp: Stamp) -> Policy:
    """What the user declared, as a policy for every pod of the service."""
    return Policy(
        scope=Scope(service_uid),
        stamp=stamp,
        mode=Mode(spec.scheduling.mode),
        max_batch_size=spec.scheduling.max_batch_size,
        token_budget=spec.scheduling.token_budget,
        classes=tuple(
            TrafficClass(
                name=each.name,
                ttft_ms=each.ttft_milliseconds,
                tpot_ms=each.tpot_milliseconds,
                deadline_s=each.deadline_seconds,
            )
            for each in spec.classes
        ),
        default_class=spec.default_class,
    )


def baseline_policy(spec: InferenceServiceSpec, service_uid: str, generation: int) -> Policy:
    """The policy pods start with, and keep while no operator runs. Every decision outranks it."""
    return policy_from_spec(spec, service_uid, Stamp(generation, epoch=0, counter=0))
