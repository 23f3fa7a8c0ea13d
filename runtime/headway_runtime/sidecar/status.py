"""The answer to ``GET /v1/status``: what the operator wants to know of this pod. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_runtime.exchange.statistics_file import EngineStatistics
from headway_runtime.exchange.statistics_record import EngineState
from headway_runtime.exchange.suspects_file import Told
from headway_runtime.policy import Policy, Stamp
from headway_runtime.sidecar.engines import breaker_is_open
from headway_runtime.sidecar.quarantine import quarantined_document
from headway_runtime.sidecar.settings import Settings


def status_document(  # noqa: PLR0913 - a pod has as many sides
    settings: Settings,
    policy: Policy | None,
    engines: Sequence[EngineStatistics],
    told: Told,
    *,
    draining: bool,
    now_ns: int,
) -> dict[str, Any]:
    """The status as a JSON object.

    Args:
        settings: who this pod is.
        policy: the policy in force.
        engines: the pod's engine processes.
        told: of engines that died, and of what.
        draining: whether the pod is being emptied.
        now_ns: now, nanoseconds since the epoch.
    """
    return {
        "podUid": settings.pod_uid,
        "serviceUid": settings.service_uid,
        "policy": None if policy is None else _policy(policy),
        "draining": draining,
        "engines": [_engine(each, now_ns) for each in engines],
        "quarantined": quarantined_document(told, now_ns / 1e9),
        "setAsideRequests": sum(each.header.set_aside_requests for each in engines),
    }


def _policy(policy: Policy) -> dict[str, Any]:
    limits = {each.name: each.max_running for each in policy.classes}
    return {
        "stamp": str(policy.stamp),
        "mode": policy.mode.value,
        "thetaPpm": policy.theta_ppm,
        "tokenBudget": policy.token_budget,
        "maxBatchSize": policy.max_batch_size,
        "classLimits": {name: limit for name, limit in limits.items() if limit is not None},
    }


def _engine(engine: EngineStatistics, now_ns: int) -> dict[str, Any]:
    header, load, latest = engine.header, engine.load, engine.latest
    return {
        "rank": header.rank,
        "pid": header.pid,
        "version": header.engine_version,
        "state": EngineState(header.state).name.capitalize(),
        "stockReason": header.stock_reason or None,
        "policyStamp": None
        if latest is None
        else _stamp(latest.generation, latest.epoch, latest.counter),
        "steps": load.steps,
        "lastStepAgeSeconds": None
        if latest is None
        else round(max(0, now_ns - latest.wall_time_ns) / 1e9, 3),
        "running": load.running,
        "waiting": load.waiting,
        "tokenBudget": header.token_budget_ceiling if latest is None else latest.token_budget,
        "maxBatchSize": header.max_batch_ceiling if latest is None else latest.max_batch,
        "breakerOpen": breaker_is_open(engine, now_ns),
    }


def _stamp(generation: int, epoch: int, counter: int) -> str:
    return str(Stamp(generation, epoch, counter))
