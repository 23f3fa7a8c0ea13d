"""The status as it should read, from the verdicts."""

from __future__ import annotations

from collections.abc import Mapping

from headway_operator.api import Condition, ConditionType, InferenceServiceStatus
from headway_operator.decide.activator import activator_ready
from headway_operator.decide.degradation import degraded
from headway_operator.decide.facts import Facts
from headway_operator.decide.metrics_available import metrics_available
from headway_operator.decide.policy_applied import holders, policy_applied, unacknowledged
from headway_operator.decide.readiness import model_loaded, progressing, ready
from headway_operator.decide.router import router_ready
from headway_operator.decide.scaling_limited import scaling_limited
from headway_operator.decide.stalled import stalled
from headway_operator.decide.verdict import Verdict
from headway_operator.render.names import endpoint, selector_text

_MAX_MESSAGE = 1024

_OPTIONAL = (ConditionType.ROUTER_READY, ConditionType.ACTIVATOR_READY)
"""Conditions that are only there while what they are about is to be."""


def verdicts(facts: Facts) -> dict[ConditionType, Verdict]:
    """What holds now, by condition; one that cannot be told yet is missing."""
    found = {
        ConditionType.READY: ready(facts),
        ConditionType.PROGRESSING: progressing(facts),
        ConditionType.MODEL_LOADED: model_loaded(facts),
        ConditionType.POLICY_APPLIED: policy_applied(facts),
        ConditionType.METRICS_AVAILABLE: metrics_available(facts),
        ConditionType.SCALING_LIMITED: scaling_limited(facts),
        ConditionType.ROUTER_READY: router_ready(facts),
        ConditionType.ACTIVATOR_READY: activator_ready(facts),
        ConditionType.DEGRADED: degraded(facts),
        ConditionType.STALLED: stalled(facts),
    }
    return {kind: verdict for kind, verdict in found.items() if verdict is not None}


def decide_status(facts: Facts, found: Mapping[ConditionType, Verdict]) -> InferenceServiceStatus:
    """The status; equal facts give an equal one, whenever it is asked for."""
    service, rollout = facts.snapshot.service, facts.snapshot.rollout
    return InferenceServiceStatus(
        observed_generation=service.generation,
        replicas=rollout.replicas if rollout else 0,
        ready_replicas=facts.ready if facts.spec else service.status.ready_replicas,
        selector=selector_text(service.key.name),
        endpoint=endpoint(*service.key),
        policy_generation=_policy_generation(facts),
        conditions=_conditions(facts, found),
        degradation=facts.degradation if facts.spec else service.status.degradation,
    )


def _policy_generation(facts: Facts) -> int | None:
    """The generation acknowledged last; there is none before the first pod took a policy."""
    previous = facts.snapshot.service.status.policy_generation
    if facts.published is None or unacknowledged(facts) or not holders(facts):
        return previous
    return facts.published.policy.stamp.generation


def _conditions(facts: Facts, found: Mapping[ConditionType, Verdict]) -> tuple[Condition, ...]:
    previous = {each.type: each for each in facts.snapshot.service.status.conditions}
    waiting = Verdict("Unknown", "Waiting", "Waiting for the pods' first answer")
    conditions = []
    for kind in ConditionType:
        old = previous.get(kind)
        if kind in _OPTIONAL and kind not in found and facts.spec is not None:
            continue
        if kind not in found and old is not None:
            conditions.append(old)
        else:
            conditions.append(_condition(facts, kind, found.get(kind, waiting), old))
    return tuple(conditions)


def _condition(
    facts: Facts, kind: ConditionType, verdict: Verdict, old: Condition | None
) -> Condition:
    unchanged = old is not None and old.status == verdict.truth
    return Condition(
        type=kind,
        status=verdict.truth,
        reason=verdict.reason,
        message=verdict.message[:_MAX_MESSAGE],
        last_transition_time=old.last_transition_time if old and unchanged else facts.now.text,
        observed_generation=facts.snapshot.service.generation,
    )
