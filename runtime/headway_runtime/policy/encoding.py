"""Writes policies, each in the oldest version of the format that can say it.

Pods keep their runtime over an upgrade of the operator. What their release knows of, they go on
being told in its own words.
"""

from __future__ import annotations

import json
from typing import Any

from headway_runtime.policy.bounds import FORMAT_VERSION, OLDEST_VERSION, TENANTS_SINCE
from headway_runtime.policy.document import Policy, PriorityCoefficients, Tenant, TrafficClass


def within_version(policy: Policy, version: int) -> Policy:
    """What a reader of this version of the format can be told of a policy."""
    if version >= TENANTS_SINCE:
        return policy
    return Policy(
        scope=policy.scope,
        stamp=policy.stamp,
        mode=policy.mode,
        max_batch_size=policy.max_batch_size,
        token_budget=policy.token_budget,
        theta_ppm=policy.theta_ppm,
        classes=tuple(
            TrafficClass(each.name, each.ttft_ms, each.tpot_ms, each.deadline_s, each.max_running)
            for each in policy.classes
        ),
        default_class=policy.default_class,
    )


def version_of(policy: Policy) -> int:
    """The oldest version of the format that can say all of a policy."""
    return OLDEST_VERSION if within_version(policy, OLDEST_VERSION) == policy else FORMAT_VERSION


def encode(policy: Policy) -> bytes:
    """Canonical JSON of a policy: equal policies give equal bytes."""
    version = version_of(policy)
    document: dict[str, Any] = {
        "version": version,
        "serviceUid": policy.scope.service_uid,
        "podUid": policy.scope.pod_uid,
        "generation": policy.stamp.generation,
        "epoch": policy.stamp.epoch,
        "counter": policy.stamp.counter,
        "mode": policy.mode.value,
        "maxBatchSize": policy.max_batch_size,
        "tokenBudget": policy.token_budget,
        "thetaPpm": policy.theta_ppm,
        "classes": [_class(each, version) for each in policy.classes],
        "defaultClass": policy.default_class,
    }
    if version >= TENANTS_SINCE:
        document |= {
            "tenants": [_tenant(each) for each in policy.tenants],
            "trustHeaders": policy.trust_headers,
            "fairnessWindow": policy.fairness_window,
            "priority": _priority(policy.priority),
        }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _class(traffic_class: TrafficClass, version: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": traffic_class.name,
        "ttftMs": traffic_class.ttft_ms,
        "tpotMs": traffic_class.tpot_ms,
        "deadlineS": traffic_class.deadline_s,
        "maxRunning": traffic_class.max_running,
    }
    if version >= TENANTS_SINCE:
        document |= {
            "weight": traffic_class.weight,
            "whenUnmet": traffic_class.when_unmet.value,
            "maxQueued": traffic_class.max_queued,
        }
    return document


def _tenant(tenant: Tenant) -> dict[str, Any]:
    return {"name": tenant.name, "weight": tenant.weight, "keySha256": tenant.key_sha256}


def _priority(coefficients: PriorityCoefficients) -> dict[str, Any]:
    return {
        "basePercent": coefficients.base,
        "depthPercent": coefficients.depth,
        "progressPercent": coefficients.progress,
        "learn": coefficients.learn,
    }
